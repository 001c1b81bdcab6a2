"""Describe the MPI of a candidate: all that the later stages know of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mpigraft.binary import ElfError, read_elf
from mpigraft.core import cache, env
from mpigraft.core.model import EnvRow, Family, MpiInstall, NetLibrary, Scope
from mpigraft.core.serialize import digest
from mpigraft.core.write import make_folder
from mpigraft.discovery.sources import fabrics, files, path, probe
from mpigraft.discovery.sources.candidate import LIBRARY_NAMES, TRIPLETS, Candidate, Host
from mpigraft.discovery.sources.interfaces import interfaces

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
    """Identify family and version by MPI_Get_library_version; None for an unknown family."""
    for family, sign in SIGNS:
        if match := sign.search(text):
            return family, match[1]
    return None


def device_of(text: str) -> str:
    """Give MPICH's device as its configure option names it: `ch4:ucx ofi` is `ch4:ucx,ofi`."""
    match = DEVICE.search(text)
    return re.sub(r"[\s,]+", ",", match[1].strip()) if match else ""


def components_of(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Parse (framework, names) from `ompi_info --parsable`; other lines are skipped."""
    frameworks: dict[str, list[str]] = {}
    for line in text.splitlines():
        if match := COMPONENT.match(line):
            names = frameworks.setdefault(match[1], [])
            if match[2] not in names:
                names.append(match[2])
    return tuple((name, tuple(sorted(names))) for name, names in sorted(frameworks.items()))


def describe(candidate: Candidate, host: Host, devices: Sequence[str]) -> MpiInstall | str:
    """Make the row of one candidate, or say why there is none: its family is unknown.

    `devices` names the machine's network devices, on which a library's answer depends.
    """
    if candidate.libmpi is None or candidate.reason:
        return _broken(host, candidate, candidate.reason or f"no libmpi below {candidate.prefix}")
    try:
        soname = read_elf(candidate.libmpi).soname or candidate.libmpi.name
    except (OSError, ElfError) as error:
        return _broken(host, candidate, f"{candidate.libmpi} cannot be read: {error}")
    rows = _merge_rows(needed_rows(candidate, soname, host), candidate.environment)
    environment = env.apply(host.query_environment(loader=False), rows, Scope.RANK)
    plugins = _plugins(candidate)
    answer = probe.query_library("mpi", candidate.libmpi, environment, plugins, devices)
    if answer.reason:
        return _broken(host, candidate, f"libmpi does not load: {answer.reason}", soname)
    known = identify(answer.version)
    if known is None:
        first = answer.version.strip().splitlines()[:1] or [""]
        return f"{candidate.libmpi} is an MPI of an unknown family: {first[0]!r}"
    family, version = known
    if candidate.family is not family:  # query again, with what the family needs
        return describe(replace(candidate, family=family), host, devices)
    launcher = _program(candidate, LAUNCHERS[family])
    launcher_env = env.apply(host.query_environment(loader=False), rows, Scope.LAUNCHER)
    device = device_of(answer.version) or _mpichversion(candidate, family, launcher_env)
    return candidate.install(
        family,
        version,
        soname,
        launcher=launcher,
        launcher_kind=_launcher_kind(family, version, host),
        launcher_version=_launcher_version(launcher, launcher_env),
        wrappers=_wrappers(candidate, family, host),
        library_version=answer.version.strip().splitlines()[0],
        libfabric=_network("libfabric", answer.library("libfabric.so"), environment, devices),
        ucx=_network("ucx", answer.library("libucp.so"), environment, devices),
        device=device,
        components=_components(candidate, launcher_env) if family is Family.OPENMPI else (),
        environment=rows,
        usable=True,
        interfaces=interfaces(family.abi(soname), candidate.libmpi),
    )


def _broken(host: Host, candidate: Candidate, reason: str, soname: str = "") -> MpiInstall | str:
    """Make a row that gives the reason; without a family, give the reason alone."""
    if candidate.family is None:
        family, version = _guess_family(host, candidate)
        candidate = replace(candidate, family=family, version=candidate.version or version)
    if candidate.family is None:
        return f"{candidate.origin}: {reason}"
    facts = {"environment": candidate.environment, "usable": False, "reason": reason}
    return candidate.install(candidate.family, candidate.version or "unknown", soname, **facts)


def _guess_family(host: Host, candidate: Candidate) -> tuple[Family | None, str]:
    """Guess family and version of a library that cannot be queried: by its launcher, else by the
    library's name."""
    every = tuple(dict.fromkeys(name for names in LAUNCHERS.values() for name in names))
    if launcher := _program(candidate, every):
        family, version = path.identify(host, launcher)
        if family:
            return family, version
    name = candidate.libmpi.name if candidate.libmpi else ""
    return next((f for f, names in LIBRARY_NAMES.items() if names.match(name)), None), ""


# ------------------------------------------------------------------ environment


def needed_rows(candidate: Candidate, soname: str, host: Host) -> tuple[EnvRow, ...]:
    """Give what an MPI needs to run from its folder, beyond what it finds by itself.

    Programs built elsewhere have no path to this libmpi in them, so its folder goes into
    LD_LIBRARY_PATH, unless the loader searches it anyway. Intel's libraries have no RUNPATH and
    find tuning files, providers and proxies by I_MPI_ROOT. OPAL_PREFIX is not set: Open MPI
    finds its files by the folder of its libraries, and the variable leaks into children that use
    another Open MPI.
    """
    assert candidate.libmpi is not None
    folder = candidate.libmpi.parent
    values: dict[str, str] = {}
    folders = [] if _default_folder(folder, host) else [folder]
    if candidate.family is Family.INTEL:
        values["I_MPI_ROOT"] = str(candidate.prefix)
        inner = ("libfabric/lib", "opt/mpi/libfabric/lib")
        places = (folder, *(candidate.prefix / name for name in inner))
        fabric = next((f for f in places if files.exists(f / "libfabric.so.1")), None)
        if fabric is not None:
            folders = [folder, fabric]
            providers = fabric / "prov"
            values["FI_PROVIDER_PATH"] = str(providers if files.is_folder(providers) else fabric)
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
    """Make a folder in which an MPI of MPICH's ABI has the ABI's name, where it has another one
    (Debian's libmpich.so.12): the loader searches for the name that a program was linked to."""
    other = soname.startswith(("libmpich.", "libmpi_")) and not soname.startswith("libmpi_abi")
    beside = (libmpi.parent, libmpi.parent.parent / "lib-abi-mpich")
    if not other or any(files.exists(folder / MPICH_ABI_NAME) for folder in beside):
        return None
    real = os.path.realpath(libmpi)
    folder = cache.folders().cache / "names" / digest(real)[:16]
    try:
        if os.path.realpath(folder / MPICH_ABI_NAME) != real:
            make_folder(folder)
            new = folder / f"{MPICH_ABI_NAME}.{os.getpid()}"
            new.symlink_to(real)
            new.replace(folder / MPICH_ABI_NAME)
    except OSError:
        return (
            None  # without a cache there is no link: a launch will report libmpi.so.12 as missing
        )
    return folder


def _merge_rows(needed: Sequence[EnvRow], given: Sequence[EnvRow]) -> tuple[EnvRow, ...]:
    """Merge rows: what the place sets wins; folders of the rules come after its own."""
    rows = {(row.name, row.scope): row for row in needed}
    for row in given:
        before = rows.get((row.name, row.scope))
        value = row.value
        if row.name == "LD_LIBRARY_PATH" and before and before.value and value:
            value = ":".join(dict.fromkeys([*value.split(":"), *before.value.split(":")]))
        rows[row.name, row.scope] = replace(row, value=value)
    return tuple(rows.values())


def _default_folder(folder: Path, host: Host) -> bool:
    """Return whether the loader searches `folder` by default."""
    names = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")
    deeper = (f"{name}/{triplet}" for name in names[:2] for triplet in TRIPLETS)
    return folder in {host.path(name) for name in (*names, *deeper)}


def _plugins(candidate: Candidate) -> list[Path | str]:
    """List what libmpi opens in MPI_Init that decides on libfabric and UCX."""
    match candidate.family:
        case Family.INTEL:
            return ["libfabric.so.1"]
        case Family.OPENMPI:
            names = ("mca_mtl_ofi.so", "mca_pml_ucx.so", "mca_btl_ofi.so")
            folders = list(_plugin_folders(candidate))
            return [f / name for f in folders for name in names if files.exists(f / name)]
    return []


def _plugin_folders(candidate: Candidate) -> Iterator[Path]:
    """Yield folders of Open MPI's components, where they are not built into libmpi."""
    if candidate.libmpi is not None:
        for name in ("openmpi", "openmpi/lib/openmpi3", "openmpi/lib/openmpi"):
            folder = candidate.libmpi.parent / name
            if any(entry.name.startswith("mca_") for entry in files.entries(folder)):
                yield folder


# ------------------------------------------------------------------ programs


def _program(candidate: Candidate, names: Sequence[str]) -> Path | None:
    """Find the first of `names` in the candidate's folders. Where MPIs share a folder only names
    with the suffix count, and those that only one family has."""
    for name in names:
        words = (f"{name}{candidate.suffix}", name if name in OWN_NAMES else "")
        for folder in candidate.bins:
            for word in words:
                path = folder / word
                if word and files.is_file(path) and os.access(path, os.X_OK):
                    return path
    return None


def _launcher_kind(family: Family, version: str, host: Host) -> str:
    if family is Family.CRAY_MPICH:  # started by the machine's launcher
        return "pals" if files.is_folder(host.path("/opt/cray/pals")) else "srun"
    return family.launcher_kind(version)


def _launcher_version(launcher: Path | None, environment: Mapping[str, str]) -> str:
    if launcher is None:
        return ""
    match = LAUNCHER_VERSION.search(probe.tool_output([launcher, "--version"], environment))
    return match[1] if match else ""


def _wrappers(candidate: Candidate, family: Family, host: Host) -> tuple[tuple[str, Path], ...]:
    wrappers = [(lang, _program(candidate, names)) for lang, names in WRAPPERS.items()]
    if family is Family.CRAY_MPICH:
        driver = host.path("/opt/cray/pe/craype/default/bin")
        wrappers = [
            (lang, driver / name) for lang, name in (("c", "cc"), ("c++", "CC"), ("fortran", "ftn"))
        ]
        wrappers = [
            (lang, path if path and files.exists(path) else None) for lang, path in wrappers
        ]
    return tuple((lang, path) for lang, path in wrappers if path is not None)


def _components(
    candidate: Candidate, environment: Mapping[str, str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    tool = _program(candidate, ("ompi_info",))
    if tool is None:
        return ()
    folder = next(_plugin_folders(candidate), None)
    return components_of(probe.tool_output([tool, "--parsable"], environment, folder))


def _mpichversion(candidate: Candidate, family: Family, environment: Mapping[str, str]) -> str:
    """Give the device where the library does not name it (Cray's, and MPICH's before 3.3)."""
    if family in {Family.OPENMPI, Family.INTEL}:
        return ""
    parts = candidate.prefix.parts
    if family is Family.CRAY_MPICH:
        return next((f"ch4:{net}" for net in ("ofi", "ucx") if net in parts), "")
    tool = _program(candidate, ("mpichversion",))
    return device_of(probe.tool_output([tool], environment)) if tool else ""


def _network(
    name: str, path: Path | None, environment: Mapping[str, str], devices: Sequence[str]
) -> NetLibrary | None:
    if path is None:
        return None
    answer = probe.query_library(name, path, environment, (), devices)
    return NetLibrary(name, answer.version or None, path, answer.offers, answer.reason)


def network_library(name: str, path: Path | None) -> NetLibrary | None:
    """Describe a libfabric or UCX of this machine by its path, such as the one of a stack."""
    host = Host()
    up = [device.name for device in fabrics.devices(host) if device.state == "up"]
    return _network(name, path, host.query_environment(loader=False), up)
