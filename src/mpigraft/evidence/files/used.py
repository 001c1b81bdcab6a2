"""The programs and libraries that a launch of a configuration uses, and whether they changed.

Stamps tell cheaply that a file may have changed; its contents decide.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from mpigraft.binary import ElfError, closure
from mpigraft.core import env
from mpigraft.core.cache import file_digest
from mpigraft.core.model import Configuration, GraftPlan, GuestKind, MpiInstall, Scope, Stamp
from mpigraft.graft import changed_paths, find_engine, graft_folder, path_stamps
from mpigraft.launch import IN_GUEST
from mpigraft.native import Natives

PLUGINS = (  # opened by name at run time: providers, UCX's transports, Open MPI's components
    "*-fi.so*",
    "libfabric/*-fi.so*",
    "ucx/lib*.so*",
    "mca_*.so",
    "openmpi*/mca_*.so",
)
# What a launcher starts from its own folder: its daemons, or the program behind a script.
DAEMONS = (
    "prte", "prted", "prterun", "orted", "orterun", "mpiexec.hydra", "hydra_pmi_proxy",
    "hydra_bstrap_proxy",
)  # fmt: skip
PODMAN = ("overlay-images/images.json", "vfs-images/images.json")  # written with each image


# ------------------------------------------------------------------ which


def mpi_libraries(mpi: MpiInstall) -> tuple[Path, ...]:
    """libmpi, what the loader maps with it, and what an MPI opens for itself while it runs."""
    return _libraries(mpi.libmpi, mpi) if mpi.libmpi else ()


@lru_cache(maxsize=64)  # one command asks for each MPI as many times as it has transports
def _libraries(libmpi: Path, mpi: MpiInstall) -> tuple[Path, ...]:
    environment = env.apply(env.base(), mpi.environment, Scope.RANK)
    given = tuple(sorted(environment.items()))
    later = opened_libraries(libmpi, mpi)
    # A provider may need what nothing else does: Intel's `mlx` opens the system's UCX.
    openers = (libmpi, *(path for path in later if "-fi.so" in path.name))
    mapped = [library for opener in openers for library in _mapped(opener, given)]
    return tuple(dict.fromkeys((libmpi, *mapped, *later)))


def opened_libraries(libmpi: Path, mpi: MpiInstall) -> list[Path]:
    """libfabric, UCX and the plugins beside them and beside libmpi."""
    dirs = _plugin_dirs(replace(mpi, libmpi=libmpi))
    plugins = {p for folder in dirs for pattern in PLUGINS for p in folder.glob(pattern)}
    return [p for p in (*_networks(mpi), *sorted(plugins)) if p.is_file()]


def _networks(mpi: MpiInstall) -> list[Path]:
    return [net.path for net in (mpi.libfabric, mpi.ucx) if net and net.path and net.path.exists()]


def _plugin_dirs(mpi: MpiInstall) -> list[Path]:
    """Return folders of libmpi, libfabric and UCX."""
    own = [mpi.libmpi] if mpi.libmpi else []
    return list(dict.fromkeys(path.resolve().parent for path in (*own, *_networks(mpi))))


def plugin_folders(mpi: MpiInstall) -> tuple[tuple[str, str, str], ...]:
    """Return (folder, begin, end) of the names of plugins: one more of them may be another provider
    or component. Beside other libraries, plugins are known by their names."""
    patterns: dict[tuple[str, str, str], None] = {}
    for parent in _plugin_dirs(mpi):
        direct = [(parent, "", "-fi.so"), (parent, "mca_", ".so")]
        nested = [(parent / "libfabric", "", "-fi.so"), (parent / "ucx", "lib", "")]
        nested += [
            (path, "mca_", ".so") for path in sorted(parent.glob("openmpi*")) if path.is_dir()
        ]
        patterns |= {(str(folder), begin, end): None for folder, begin, end in direct + nested}
    return tuple(patterns)


def launcher_files(configuration: Configuration) -> tuple[Path, ...]:
    """Return the program that starts ranks, what it starts from its own folder, and their
    libraries; nothing of a launcher that is in a guest."""
    mpi, by = configuration.mpi, configuration.launcher
    path = by.path if by else mpi.launcher if mpi and mpi.source != IN_GUEST else None
    if path is None:
        return ()
    daemons = (path.parent / name for name in DAEMONS)
    programs = (path, *(program for program in daemons if not by and program.is_file()))
    rows = mpi.environment if mpi else ()
    environment = env.apply(env.base(), rows, Scope.LAUNCHER, Scope.DAEMON)
    given = tuple(sorted(environment.items()))
    libraries = [library for program in programs for library in _mapped(program, given)]
    return tuple(dict.fromkeys((*programs, *libraries)))


@lru_cache(maxsize=64)
def _mapped(file: Path, environment: tuple[tuple[str, str], ...]) -> tuple[Path, ...]:
    try:
        libraries = closure(file, environment=dict(environment))
    except ElfError:  # a script; its interpreter reports what it cannot read
        return ()
    return tuple(library.path for library in libraries if library.path)


def graft_files(plan: GraftPlan) -> tuple[Path, ...]:
    """Return the graft's own copies, what it was made from, the guest and the engine."""
    folder = graft_folder(plan)
    files = [folder / copy.name for copy in plan.copies] + [Path(i.path) for i in plan.inputs]
    if engine := find_engine(plan.engine, os.environ)[0]:
        files.append(Path(engine))
    return tuple(files)


def image_lists(plan: GraftPlan | None) -> tuple[Path, ...]:
    """Return files that podman writes whenever the image of some name changes."""
    if plan is None or plan.guest.kind is not GuestKind.PODMAN:
        return ()
    homes = (Path("/var/lib/containers/storage"), Path("~/.local/share/containers/storage"))
    return tuple(home.expanduser() / name for home in homes for name in PODMAN)


def used_files(configuration: Configuration, natives: Natives) -> tuple[Path, ...]:
    """Return every program and library of this machine that a launch uses. `natives` as they lie
    here or as ranks in a guest see them: then their copies are the graft's."""
    mpi, plan = configuration.mpi, configuration.graft
    files = [natives.guard, *(p for p in (natives.gpu_select,) if p.is_file())]
    if plan:
        files += graft_files(plan)
    else:
        files += [natives.bench, natives.probe, natives.witness]
    if mpi is not None and mpi.source != IN_GUEST:
        files += mpi_libraries(mpi)
    return tuple(dict.fromkeys((*files, *launcher_files(configuration))))


# ------------------------------------------------------------------ whether they changed


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Files as they were: stamps of all, digests of those that can be read."""

    stamps: tuple[Stamp, ...]
    digests: tuple[tuple[str, str], ...]  # (path, SHA-256)
    config: tuple[tuple[str, str], ...] = ()  # the same of files that libraries read

    @property
    def named(self) -> tuple[tuple[str, str], ...]:
        """(file name, SHA-256) of the files that exist: other nodes may have them elsewhere."""
        pairs = (*self.digests, *self.config)
        return tuple(sorted({(Path(path).name, sum_) for path, sum_ in pairs if sum_}))


def fingerprint_files(paths: Iterable[Path]) -> Fingerprint:
    """Return the stamps come first: what changes while its content is read has another one
    afterwards."""
    before = path_stamps(str(path.absolute()) for path in paths)
    return Fingerprint(before, tuple((stamp.path, digest_of(stamp.path)) for stamp in before))


def digest_of(path: str) -> str:
    """SHA-256 of a file; empty where it is not there or is a folder."""
    try:
        return file_digest(path)
    except OSError:
        return ""


def changed_files(before: Fingerprint) -> tuple[str, ...]:
    """Return paths of files whose content is not what it was, or that came or went. What was only
    touched, or restored, has not changed."""
    known = dict(before.digests)
    return tuple(path for path in changed_paths(before.stamps) if digest_of(path) != known[path])
