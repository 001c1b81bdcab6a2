"""Find a guest's own MPI by its bytes; nothing of a guest is run."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any
from weakref import WeakKeyDictionary

from mpigraft.binary import ElfError, Resolved, Root, RootError, Rule, closure, closures, cpu_flags
from mpigraft.core.model import Family, MpiInstall
from mpigraft.graft.guest import built
from mpigraft.knowledge import OpenedFiles, binding_of, expand_folder, is_libmpi, opened_by

MAX_LIBRARY = 1 << 27  # bytes read of a library for its version; Debian's libmpich has 40 MiB
MAX_PLUGINS = 512  # of one opener; Open MPI has some hundred components
DATE = rb"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d{1,2} [\d:]{8} \w{1,8} \d{4}"
NUMBER = rb"(\d{1,4}\.\d{1,4}[\w.]{0,24})"

# Strings in a libmpi, the most specific first: an MPI built on MPICH has MPICH's strings too.
SIGNS: tuple[tuple[Family, bytes, tuple[bytes, ...]], ...] = (
    (
        Family.CRAY_MPICH,
        b"CRAY MPICH",
        (rb"CRAY MPICH version (\d+(?:\.\d+){0,2})",),
    ),
    (
        Family.INTEL,
        b"Intel(R) MPI Library",
        (rb"\0(20\d\d(?:\.\d{1,3}){1,3})\0",),
    ),
    (
        Family.MVAPICH,
        b"MVAPICH",
        (rb"\0(?=[234])" + NUMBER + rb"\0+" + DATE, DATE + rb"\0+(?=[234])" + NUMBER + rb"\0"),
    ),
    (
        Family.OPENMPI,
        b"Open MPI v%d.%d.%d",
        (
            rb"\0v?" + NUMBER + rb"\0+Open MPI\0+%s:version:repo\0",
            rb"Open MPI [\w ]{1,60} component version ?" + NUMBER + rb"\0",
        ),
    ),
    (
        Family.MPICH,
        b"MPICH Version:",
        (DATE + rb"\0+" + NUMBER + rb"\0", rb"\0" + NUMBER + rb"\0+" + DATE + rb"\0"),
    ),
)
LAUNCHERS = {
    Family.OPENMPI: ("mpirun.openmpi", "mpirun", "mpiexec.openmpi", "mpiexec", "orterun"),
    Family.MPICH: ("mpiexec.hydra", "mpiexec.mpich", "mpiexec", "mpirun.mpich", "mpirun"),
    Family.INTEL: ("mpiexec.hydra", "mpiexec", "mpirun"),
    Family.MVAPICH: ("mpiexec.hydra", "mpiexec", "mpirun_rsh"),
    Family.CRAY_MPICH: ("mpiexec",),
}
LIBRARY_FOLDER = re.compile(r"(.*?)/(?:lib|lib64)(?:/[\w.+-]+)*?$")
PMIX = re.compile(rb"OpenPMIx (\d{1,3}\.\d{1,3}\.\d{1,3}\w{0,8})")
PMIX_COMPONENTS = {  # Open MPI before 5: what its component `pmix` supports
    re.compile(r"mca_pmix_(?:pmix|ext)(\d)x\.so"): "pmix",
    re.compile(r"mca_pmix_ext(\d)?\.so"): "pmix",
    re.compile(r"mca_pmix_(s1)\.so"): "pmi1",
    re.compile(r"mca_pmix_(s2|cray)\.so"): "pmi2",
}


@dataclass(frozen=True, slots=True)
class GuestMpi:
    """The MPI that a guest's programs would run on if nothing were grafted."""

    family: Family | None  # None: its bytes say nothing that is known
    version: str  # empty: not found in its bytes
    soname: str
    libmpi: str  # path inside, as the loader spells it
    launcher: str  # path inside; empty: none was found
    pmi: tuple[str, ...]  # what it supports: pmix, pmi2, pmi1
    pmix: str = ""  # version of its libpmix, where it says so
    plugins: tuple[tuple[str, tuple[str, ...]], ...] = ()  # (opener's soname, paths inside)
    device: str = ""  # of MPICH and its kin: ch4:ucx,ofi; empty: not known
    components: tuple[tuple[str, tuple[str, ...]], ...] = ()  # of Open MPI: (framework, names)
    # Canonical paths of libmpi on other CPUs, whose loader takes them.
    elsewhere: tuple[str, ...] = ()

    def install(self, family: Family, **facts: Any) -> MpiInstall:
        """Describe it as an installed MPI, by what is known and these facts besides."""
        return MpiInstall(
            family=family, version=self.version, abi=family.abi(self.soname), soname=self.soname,
            launcher_kind=family.launcher_kind(self.version), launcher_version=self.version,
            device=self.device, components=self.components, **facts,
        )  # fmt: skip


# For each root: what was found, by files and variables. All parts of a plan ask for it.
_FOUND: WeakKeyDictionary[Root, dict[tuple[object, ...], GuestMpi | None]] = WeakKeyDictionary()


def find_own_mpi(
    root: Root, subjects: Sequence[str], environment: Mapping[str, str]
) -> GuestMpi | None:
    """Find the first libmpi that the loader would take for one of these files."""
    known = _FOUND.setdefault(root, {})
    key = (tuple(subjects), tuple(sorted(environment.items())))
    if key not in known:
        known[key] = next(every(root, subjects, environment), None)
    return known[key]


def every(
    root: Root, subjects: Sequence[str], environment: Mapping[str, str]
) -> Iterator[GuestMpi]:
    """Yield each libmpi that the loader would take for one of these files, once."""
    known: set[tuple[int, int]] = set()
    for subject in subjects:
        levels = loaded_levels(root, subject, environment)
        libmpi, *others = [
            next((r for r in rows if r.path is not None and is_libmpi(r.soname, r.name)), None)
            for rows in levels
        ] or [None]
        entry = root.find(str(libmpi.path)) if libmpi is not None else None
        if libmpi is not None and entry is not None and entry.identity not in known:
            known.add(entry.identity)
            paths = [other.path for r in others if r and (other := root.find(str(r.path)))]
            elsewhere = tuple(path for path in dict.fromkeys(paths) if path != entry.path)
            yield replace(_describe(root, libmpi, levels[0]), elsewhere=elsewhere)


def usual(root: Root, machine: str) -> GuestMpi | None:
    """Find the first libmpi in the folders that every loader searches."""
    for folder in (f"/usr/lib/{machine}-linux-gnu", "/usr/local/lib", "/usr/lib64", "/usr/lib"):
        for name in sorted(root.names(folder)):
            path, binding = f"{folder}/{name}", binding_of(name)
            if binding is None or binding.language != "c" or (entry := root.find(path)) is None:
                continue
            with contextlib.suppress(ElfError, RootError):
                facts = root.elf(entry.path)
                libmpi = Resolved(name, Path(path), Rule.DEFAULT, folder, Path(path), elf=facts)
                return _describe(root, libmpi, (libmpi, *loaded_objects(root, path, {})))
    return None


def needs(root: Root, program: str) -> bool:
    """Return whether a program needs an MPI library by name, found or not."""
    return any(
        binding_of(r.name) or binding_of(r.soname) for r in loaded_objects(root, program, {})
    )


def loaded_objects(root: Root, path: str, environment: Mapping[str, str]) -> tuple[Resolved, ...]:
    """List what the loader would map on this CPU; nothing for a file that it would refuse (musl's
    programs), which a check reports."""
    try:
        return closure(path, environment=environment, root=root)
    except (ElfError, RootError):
        return ()


def loaded_levels(
    root: Root, path: str, environment: Mapping[str, str]
) -> list[tuple[Resolved, ...]]:
    """List what the loader would map on this CPU, then what it would on others; else as
    `loaded_objects`."""
    try:
        flags = cpu_flags(root.elf(path).machine)
        levels = closures(path, environment=environment, root=root, flags=flags)
    except (ElfError, RootError):
        return []
    return list({id(rows): rows for rows in levels.values()}.values())


def _describe(root: Root, libmpi: Resolved, rows: Sequence[Resolved]) -> GuestMpi:
    path = str(libmpi.path)
    data = _bytes(root, path)
    family, version = identify(data)
    plugins = opened_in(root, rows, family)
    names = [PurePosixPath(p).name for paths in plugins.values() for p in paths]
    names += _built_in(rows)
    files = [path for paths in plugins.values() for path in paths]
    pmix = next((r for r in _all(root, rows, plugins) if r[0].startswith("libpmix.so")), None)
    return GuestMpi(
        family=family,
        version=version,
        soname=libmpi.soname,
        libmpi=path,
        launcher=_launcher(root, path, family),
        pmi=_pmi(family, data, names, _imports(libmpi), has_pmix=pmix is not None),
        pmix=_pmix_version(root, pmix[1]) if pmix else "",
        plugins=tuple(plugins.items()),
        device="" if family is Family.OPENMPI else built.device(data),
        components=built.components(rows, files) if family is Family.OPENMPI else (),
    )


def _built_in(rows: Sequence[Resolved]) -> Iterator[str]:
    """Yield Open MPI's built-in components, by the names that their files would have."""
    for r in rows:
        if r.elf is not None and r.soname.startswith("libopen-pal.so"):
            with contextlib.suppress(ElfError):
                names = [s.name for s in r.elf.exported if s.name.startswith("mca_")]
                yield from (f"{name.removesuffix('_component')}.so" for name in names)


def identify(data: bytes) -> tuple[Family | None, str]:
    """Identify family and version by the bytes of a libmpi; the version may be empty."""
    for family, sign, patterns in SIGNS:
        if sign in data:
            for pattern in patterns:
                if hit := re.search(pattern, data):
                    return family, _released(hit[1].decode("ascii"), data)
            return family, ""
    return None, ""


def _released(version: str, data: bytes) -> str:
    """Strip the suffix of Open MPI's sources: its 5.0.11 has both v5.0.11rc1 and 5.0.11."""
    plain = re.match(r"\d+(\.\d+)*", version)
    if plain and plain[0] != version and b"\0" + plain[0].encode() + b"\0" in data:
        return plain[0]
    return version


def _bytes(root: Root, path: str) -> bytes:
    try:
        return root.read(path, MAX_LIBRARY)
    except RootError:
        return b""


# ------------------------------------------------------------------ what it opens by name


def opened_in(
    root: Root, rows: Sequence[Resolved], family: Family | None
) -> dict[str, tuple[str, ...]]:
    """Give {opener's soname: paths inside} of what the libraries of a closure open by name, by the
    table that serves host MPIs too. It includes what plugins open in turn."""
    places = {r.soname: str(r.path) for r in rows if r.path is not None}
    libmpi = next(
        (str(r.path) for r in rows if r.path is not None and is_libmpi(r.soname, r.name)), ""
    )
    fixed = {
        "prefix": _prefixes(root, libmpi),
        "etc": (),
        "bin": (),
        "system": tuple(_folder(p) for n, p in places.items() if n.startswith("libc.so.")),
    }
    openers = list(places.items())
    done: set[str] = set()
    plugins: dict[str, tuple[str, ...]] = {}
    for soname, path in openers:  # grows while it is walked
        for row in opened_by(soname, family):
            if row.id in done:
                continue
            done.add(row.id)
            facts = {**fixed, "dir": _folders(root, path)}
            hits = tuple(_first(root, row.plugins, facts))[:MAX_PLUGINS]
            if hits:
                plugins[soname] = tuple(dict.fromkeys((*plugins.get(soname, ()), *hits)))
            for hit in hits:
                openers += _new(root, hit, places)
    return plugins


def _new(root: Root, plugin: str, places: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield a plugin, and what it needs and is not loaded yet."""
    yield PurePosixPath(plugin).name, plugin
    for r in loaded_objects(root, plugin, {}):
        if r.path is not None and r.soname not in places:
            places[r.soname] = str(r.path)
            yield r.soname, str(r.path)


def _first(root: Root, files: OpenedFiles, facts: Mapping[str, tuple[str, ...]]) -> list[str]:
    for template in files.folders:
        for folder in expand_folder(template, facts):
            hits = [f"{folder}/{n}" for n in root.names(folder) if files.names.fullmatch(n)]
            if hits:
                return hits
    return []


def _folders(root: Root, path: str) -> tuple[str, ...]:
    """Give the folder of a library, as it is spelled and with links resolved."""
    entry = root.find(path)
    real = (_folder(entry.path),) if entry else ()
    return tuple(dict.fromkeys((_folder(path), *real)))


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _prefixes(root: Root, libmpi: str) -> tuple[str, ...]:
    """Guess the prefixes of an MPI: the folders above the `lib` of its libmpi."""
    if not libmpi:
        return ()
    folders = _folders(root, libmpi)[::-1]  # /lib is mostly a link to /usr/lib, the better prefix
    hits = (LIBRARY_FOLDER.fullmatch(folder) for folder in folders)
    return tuple(dict.fromkeys(hit[1] or "/" for hit in hits if hit))


# ------------------------------------------------------------------ how it is started


def _launcher(root: Root, libmpi: str, family: Family | None) -> str:
    names = LAUNCHERS[family] if family else ()
    for prefix in (*_prefixes(root, libmpi), "/usr"):
        for name in names:
            entry = root.find(f"{prefix.rstrip('/')}/bin/{name}")
            if entry is not None and entry.kind == "file" and entry.mode & 0o111:
                return f"{prefix.rstrip('/')}/bin/{name}"
    return ""


def _all(
    root: Root, rows: Sequence[Resolved], plugins: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, str]]:
    """Yield (soname, path) of the closure, then of what its plugins need."""
    places = {r.soname: str(r.path) for r in rows if r.path is not None}
    yield from tuple(places.items())
    for paths in plugins.values():
        for path in paths:
            if "pmix" in path:
                yield from _new(root, path, places)


def _imports(libmpi: Resolved) -> frozenset[str]:
    try:
        return frozenset(s.name for s in libmpi.elf.imported) if libmpi.elf else frozenset()
    except ElfError:
        return frozenset()


def _pmi(
    family: Family | None,
    data: bytes,
    plugins: Sequence[str],
    imports: frozenset[str],
    *,
    has_pmix: bool,
) -> tuple[str, ...]:
    """List the PMI protocols that an MPI supports, best first.

    Open MPI: its PMIx, built in or as components. MPICH and its kin: the words of the protocols
    themselves (`initack` of PMI-1, `fullinit` of PMI-2), or functions asked of another library.
    """
    supported = set()
    if family is Family.OPENMPI:
        names = [kind for p, kind in PMIX_COMPONENTS.items() if any(map(p.fullmatch, plugins))]
        supported = {*names, *(["pmix"] if has_pmix or b"PMIx_Init" in data else [])}
    else:
        signs = {
            "pmix": "PMIx_Init" in imports or has_pmix,
            "pmi2": "PMI2_Init" in imports or b"fullinit" in data,
            "pmi1": "PMI_Init" in imports or b"initack" in data,
        }
        supported = {kind for kind, yes in signs.items() if yes}
    return tuple(kind for kind in ("pmix", "pmi2", "pmi1") if kind in supported)


def _pmix_version(root: Root, path: str) -> str:
    match = PMIX.search(_bytes(root, path))
    return match[1].decode("ascii") if match else ""
