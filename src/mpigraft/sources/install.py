"""From a place where an MPI seems to be to all that the later stages know of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mpigraft import cache, elf, env
from mpigraft.jsonout import digest
from mpigraft.model import Abi, EnvRow, Family, MpiInstall, NetLibrary, Scope
from mpigraft.sources import look, path, probe
from mpigraft.sources.candidate import LIBRARY_NAMES, TRIPLETS, Candidate, Here
from mpigraft.sources.interfaces import interfaces

# First line of MPI_Get_library_version -> family and version. Cray's fourth number counts builds.
SIGNS = (
    (Family.OPENMPI, re.compile(r"Open MPI v(\d[^\s,]*)")),
    (Family.CRAY_MPICH, re.compile(r"MPI VERSION\s*:\s*CRAY MPICH version (\d+(?:\.\d+){0,2})")),
    (Family.INTEL, re.compile(r"Intel\(R\) MPI Library (\d[^\s]*)")),
    (Family.MVAPICH, re.compile(r"MVAPICH\d* Version\s*:\s*(\d[^\s]*)")),
    (Family.MPICH, re.compile(r"MPICH Version:\s*(\d[^\s]*)")),
)
DEVICE = re.compile(r"MPICH Device:\s*(.+)")
COMPONENT = re.compile(r"mca:(\w+):(\w+):version:\"?component:")
LAUNCHER_VERSION = re.compile(r"(?:Open MPI\)|OpenRTE\)|Version:?|version)\s+v?(\d+(?:\.\w+)+)")

LAUNCHERS = {
    Family.OPENMPI: ("mpirun", "mpiexec", "orterun"),
    Family.MPICH: ("mpiexec.hydra", "mpiexec", "mpirun"),
    Family.INTEL: ("mpiexec.hydra", "mpiexec"),
    Family.MVAPICH: ("mpiexec.hydra", "mpiexec"),
    Family.CRAY_MPICH: (),  # started by srun or PALS, which belong to the machine
}
MPICH_ABI_NAME = "libmpi.so.12"
OWN_NAMES = {"mpiexec.hydra", "ompi_info", "mpichversion"}
WRAPPERS = {
    "c": ("mpicc",),
    "c++": ("mpicxx", "mpic++", "mpiCC"),
    "fortran": ("mpifort", "mpif90", "mpif77"),
}


def identify(text: str) -> tuple[Family, str] | None:
    """Family and version by what MPI_Get_library_version says; None when nobody knows it."""
    for family, sign in SIGNS:
        if found := sign.search(text):
            return family, found[1]
    return None


def abi_of(family: Family, soname: str) -> Abi:
    if soname.startswith("libmpi_abi"):
        return Abi.MPI_ABI
    return Abi.OMPI if family is Family.OPENMPI else Abi.MPICH


def device_of(text: str) -> str:
    """MPICH's device as its configure option names it: `ch4:ucx ofi` is `ch4:ucx,ofi`."""
    found = DEVICE.search(text)
    return re.sub(r"[\s,]+", ",", found[1].strip()) if found else ""


def components_of(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(framework, names) from `ompi_info --parsable`; lines of other kinds are passed over."""
    frameworks: dict[str, list[str]] = {}
    for line in text.splitlines():
        if found := COMPONENT.match(line):
            names = frameworks.setdefault(found[1], [])
            if found[2] not in names:
                names.append(found[2])
    return tuple((name, tuple(sorted(found))) for name, found in sorted(frameworks.items()))


def describe(candidate: Candidate, here: Here, devices: Sequence[str]) -> MpiInstall | str:
    """The row of one candidate, or why it can be no row: an MPI of a family nobody knows.

    `devices` names the machine's network devices: with others, a library answers otherwise.
    """
    if candidate.libmpi is None or candidate.reason:
        return _broken(here, candidate, candidate.reason or f"no libmpi below {candidate.prefix}")
    try:
        soname = elf.read(candidate.libmpi).soname or candidate.libmpi.name
    except (OSError, elf.ElfError) as error:
        return _broken(here, candidate, f"{candidate.libmpi} cannot be read: {error}")
    rows = _laid_over(needed_rows(candidate, soname, here), candidate.environment)
    environment = env.apply(here.asking(loader=False), rows, Scope.RANK)
    plugins = _plugins(candidate)
    said = probe.ask("mpi", candidate.libmpi, environment, plugins, devices)
    if said.reason:
        return _broken(here, candidate, f"libmpi does not load: {said.reason}", soname)
    known = identify(said.version)
    if known is None:
        first = said.version.strip().splitlines()[:1] or [""]
        return f"{candidate.libmpi} is an MPI of a family that is not known: {first[0]!r}"
    family, version = known
    if candidate.family is not family:  # now that it is known, ask with what the family needs
        return describe(replace(candidate, family=family), here, devices)
    launcher = _program(candidate, LAUNCHERS[family])
    told = env.apply(here.asking(loader=False), rows, Scope.LAUNCHER)
    device = device_of(said.version) or _mpichversion(candidate, family, told)
    return MpiInstall(
        id=f"{family}@{version}",
        family=family,
        version=version,
        abi=abi_of(family, soname),
        soname=soname,
        prefix=candidate.prefix,
        libmpi=candidate.libmpi,
        launcher=launcher,
        launcher_kind=_launcher_kind(family, version, here),
        launcher_version=_launcher_version(launcher, told),
        wrappers=_wrappers(candidate, family, here),
        library_version=said.version.strip().splitlines()[0],
        libfabric=_network("libfabric", said.library("libfabric.so"), environment, devices),
        ucx=_network("ucx", said.library("libucp.so"), environment, devices),
        device=device,
        components=_components(candidate, told) if family is Family.OPENMPI else (),
        environment=rows,
        source=candidate.source,
        found=(candidate.found,),
        usable=True,
        interfaces=interfaces(abi_of(family, soname), candidate.libmpi),
    )


def _broken(here: Here, candidate: Candidate, reason: str, soname: str = "") -> MpiInstall | str:
    """A row that says why; without a family there is nothing to file it under."""
    if candidate.family is None:
        family, version = _claimed(here, candidate)
        candidate = replace(candidate, family=family, version=candidate.version or version)
    if candidate.family is None:
        return f"{candidate.found}: {reason}"
    version = candidate.version or "unknown"
    return MpiInstall(
        id=f"{candidate.family}@{version}",
        family=candidate.family,
        version=version,
        abi=abi_of(candidate.family, soname),
        soname=soname,
        prefix=candidate.prefix,
        libmpi=candidate.libmpi,
        launcher=None,
        launcher_kind="",
        launcher_version="",
        wrappers=(),
        library_version="",
        libfabric=None,
        ucx=None,
        device="",
        components=(),
        environment=candidate.environment,
        source=candidate.source,
        found=(candidate.found,),
        usable=False,
        reason=reason,
    )


def _claimed(here: Here, candidate: Candidate) -> tuple[Family | None, str]:
    """Family and version of a library that cannot be asked: what its launcher says, else what
    the library's name means."""
    every = tuple(dict.fromkeys(name for names in LAUNCHERS.values() for name in names))
    if launcher := _program(candidate, every):
        family, version = path.identify(here, launcher)
        if family:
            return family, version
    name = candidate.libmpi.name if candidate.libmpi else ""
    return next((f for f, names in LIBRARY_NAMES.items() if names.match(name)), None), ""


# ------------------------------------------------------------------ environment


def needed_rows(candidate: Candidate, soname: str, here: Here) -> tuple[EnvRow, ...]:
    """What an MPI needs to run from where it lies, beyond what it finds by itself.

    Programs built elsewhere have no path to this libmpi in them, so its folder goes into
    LD_LIBRARY_PATH, unless the loader looks there anyway. Intel's libraries have no RUNPATH and
    find tuning files, providers and proxies by I_MPI_ROOT. OPAL_PREFIX is not set: Open MPI
    finds itself by where its libraries lie, and the variable leaks into children that carry
    another Open MPI.
    """
    assert candidate.libmpi is not None
    folder = candidate.libmpi.parent
    values: dict[str, str] = {}
    folders = [] if _default_folder(folder, here) else [folder]
    if candidate.family is Family.INTEL:
        values["I_MPI_ROOT"] = str(candidate.prefix)
        inner = ("libfabric/lib", "opt/mpi/libfabric/lib")
        places = (folder, *(candidate.prefix / name for name in inner))
        fabric = next((f for f in places if look.exists(f / "libfabric.so.1")), None)
        if fabric is not None:
            folders = [folder, fabric]
            providers = fabric / "prov"
            values["FI_PROVIDER_PATH"] = str(providers if look.is_folder(providers) else fabric)
    if alias := _alias(candidate.libmpi, soname):
        folders.append(alias)
    if folders:
        values["LD_LIBRARY_PATH"] = ":".join(dict.fromkeys(map(str, folders)))
    return tuple(
        EnvRow(name, value, scope, "mpi")
        for name, value in values.items()
        for scope in (Scope.LAUNCHER, Scope.RANK)
    )


def _alias(libmpi: Path, soname: str) -> Path | None:
    """A folder in which an MPI of MPICH's ABI also goes by that ABI's name, where it has another
    (Debian's libmpich.so.12): the loader looks for the name that a program was linked to."""
    other = soname.startswith(("libmpich.", "libmpi_")) and not soname.startswith("libmpi_abi")
    beside = (libmpi.parent, libmpi.parent.parent / "lib-abi-mpich")
    if not other or any(look.exists(folder / MPICH_ABI_NAME) for folder in beside):
        return None
    real = os.path.realpath(libmpi)
    folder = cache.folders().cache / "names" / digest(real)[:16]
    try:
        if os.path.realpath(folder / MPICH_ABI_NAME) != real:
            folder.mkdir(parents=True, exist_ok=True)
            new = folder / f"{MPICH_ABI_NAME}.{os.getpid()}"
            new.symlink_to(real)
            new.replace(folder / MPICH_ABI_NAME)
    except OSError:
        return None  # no cache, no other name: a launch will say that libmpi.so.12 is missing
    return folder


def _laid_over(needed: Sequence[EnvRow], given: Sequence[EnvRow]) -> tuple[EnvRow, ...]:
    """What the place itself sets wins over the rules; of folders, the rules' come after its own."""
    rows = {(row.name, row.scope): row for row in needed}
    for row in given:
        before = rows.get((row.name, row.scope))
        value = row.value
        if row.name == "LD_LIBRARY_PATH" and before and before.value and value:
            value = ":".join(dict.fromkeys([*value.split(":"), *before.value.split(":")]))
        rows[row.name, row.scope] = replace(row, value=value)
    return tuple(rows.values())


def _default_folder(folder: Path, here: Here) -> bool:
    """Whether the loader looks into `folder` without being told."""
    names = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")
    deeper = (f"{name}/{triplet}" for name in names[:2] for triplet in TRIPLETS)
    return folder in {here.at(name) for name in (*names, *deeper)}


def _plugins(candidate: Candidate) -> list[Path | str]:
    """What libmpi opens only in MPI_Init and that decides on libfabric and UCX."""
    match candidate.family:
        case Family.INTEL:
            return ["libfabric.so.1"]
        case Family.OPENMPI:
            names = ("mca_mtl_ofi.so", "mca_pml_ucx.so", "mca_btl_ofi.so")
            folders = list(_plugin_folders(candidate))
            return [f / name for f in folders for name in names if look.exists(f / name)]
    return []


def _plugin_folders(candidate: Candidate) -> Iterator[Path]:
    """Folders of Open MPI's components, where they are not built into libmpi."""
    if candidate.libmpi is not None:
        for name in ("openmpi", "openmpi/lib/openmpi3", "openmpi/lib/openmpi"):
            folder = candidate.libmpi.parent / name
            if any(entry.name.startswith("mca_") for entry in look.entries(folder)):
                yield folder


# ------------------------------------------------------------------ programs


def _program(candidate: Candidate, names: Sequence[str]) -> Path | None:
    """The first of `names` in the candidate's folders. Where MPIs share a folder only names
    with the suffix count, and those that one family alone has."""
    for name in names:
        words = (f"{name}{candidate.suffix}", name if name in OWN_NAMES else "")
        for folder in candidate.bins:
            for word in words:
                path = folder / word
                if word and look.is_file(path) and os.access(path, os.X_OK):
                    return path
    return None


def _launcher_kind(family: Family, version: str, here: Here) -> str:
    match family:
        case Family.OPENMPI:
            major = version.partition(".")[0]
            return "prrte" if major.isdecimal() and int(major) >= 5 else "orte"
        case Family.CRAY_MPICH:
            return "pals" if look.is_folder(here.at("/opt/cray/pals")) else "srun"
        case Family.MPICH | Family.INTEL | Family.MVAPICH:
            return "hydra"


def _launcher_version(launcher: Path | None, environment: Mapping[str, str]) -> str:
    if launcher is None:
        return ""
    found = LAUNCHER_VERSION.search(probe.tool([launcher, "--version"], environment))
    return found[1] if found else ""


def _wrappers(candidate: Candidate, family: Family, here: Here) -> tuple[tuple[str, Path], ...]:
    found = [(lang, _program(candidate, names)) for lang, names in WRAPPERS.items()]
    if family is Family.CRAY_MPICH:
        driver = here.at("/opt/cray/pe/craype/default/bin")
        found = [
            (lang, driver / name) for lang, name in (("c", "cc"), ("c++", "CC"), ("fortran", "ftn"))
        ]
        found = [(lang, path if path and look.exists(path) else None) for lang, path in found]
    return tuple((lang, path) for lang, path in found if path is not None)


def _components(
    candidate: Candidate, environment: Mapping[str, str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    tool = _program(candidate, ("ompi_info",))
    if tool is None:
        return ()
    folder = next(_plugin_folders(candidate), None)
    return components_of(probe.tool([tool, "--parsable"], environment, folder))


def _mpichversion(candidate: Candidate, family: Family, environment: Mapping[str, str]) -> str:
    """The device where the library does not name it (Cray's does not, MPICH's before 3.3)."""
    if family in {Family.OPENMPI, Family.INTEL}:
        return ""
    parts = candidate.prefix.parts
    if family is Family.CRAY_MPICH:
        return next((f"ch4:{net}" for net in ("ofi", "ucx") if net in parts), "")
    tool = _program(candidate, ("mpichversion",))
    return device_of(probe.tool([tool], environment)) if tool else ""


def _network(
    name: str, path: Path | None, environment: Mapping[str, str], devices: Sequence[str]
) -> NetLibrary | None:
    if path is None:
        return None
    said = probe.ask(name, path, environment, (), devices)
    return NetLibrary(name, said.version or None, path, said.offers, said.reason)
