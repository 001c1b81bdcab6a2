"""What a machine offers to a build: its fabrics, its own packages, and the given sources."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mpigraft.build.stack import Needed, with_stack
from mpigraft.build.values import ASSUMED, FABRICS, BuildHost, BuildPlan, BuildStep, Offer
from mpigraft.core.cache import file_digest
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import Machine
from mpigraft.knowledge import PlanTable, Provided, packages


@dataclass(frozen=True, slots=True)
class HostOptions:
    """How a machine is looked at."""

    compiler: str = "gnu"
    sources: Path | None = None  # nothing is fetched: what this folder has is all
    use: Mapping[str, str] = field(default_factory=dict)  # packages, and where they are
    here: bool = True  # else the machine is another one, and its files cannot be looked at
    stack: Path | None = None  # that the build is for
    toolchain: str = ""  # the GCC of that stack whose packages count; empty: its newest MPI's
    needed: Needed = lambda _, __: {}  # reads what programs of the stack need


def build_host(
    machine: Machine, table: PlanTable, options: HostOptions, environ: Mapping[str, str]
) -> BuildHost:
    """Say what a machine offers, and the stack that is built for. Raises UsageError for a folder of
    sources that cannot be read, for a package to use that is none, and for a folder that is no
    stack."""
    _check_use(table, options)
    features = features_of(machine)
    offers = {
        row.id: offer
        for row in table.provided
        if (offer := _offer(row, features, options, environ))
    }
    for row in table.compilers:
        if options.compiler not in (row.id, row.cc) or "fortran" in offers:
            continue
        if not options.here:
            offers["fortran"] = Offer(row.fc, by=ASSUMED)
        elif shutil.which(row.fc, path=environ.get("PATH", "")):
            offers["fortran"] = Offer(row.fc)
    files = source_files(options.sources) if options.sources else {}
    patches = {patch.file for package in packages().values() for patch in package.patches}
    host = BuildHost(
        architecture=machine.cpu.architecture,
        features=features & (frozenset(FABRICS) | {"xpmem", "gdrcopy"}),
        provided=offers,
        sources=frozenset(files),
        offline=options.sources is not None,
        patches={name: _digest(files[name]) for name in sorted(patches & files.keys())},
        name=machine.hostname,
        glibc=_glibc() if options.here else "",
    )
    if options.stack is None:
        return host
    return with_stack(host, options.stack, packages(), environ, options.toolchain, options.needed)


def _glibc() -> str:
    """Return the version of this machine's C library: 2.36. Others than GNU's have none."""
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").rpartition(" ")[2]
    except (OSError, ValueError):
        return ""


def _check_use(table: PlanTable, options: HostOptions) -> None:
    headers = {row.id: row.header for row in table.provided}
    for name, folder in options.use.items():
        problem = "" if name in headers else f"{name!r} is no package of a machine"
        if options.here and name in headers and not Path(folder, headers[name]).exists():
            problem = f"there is no {headers[name]} in it"
        if problem:
            word, known = f"{name}={folder}", ", ".join(headers)
            raise UsageError.of("use-invalid", word=word, problem=problem, known=known)


def features_of(machine: Machine) -> frozenset[str]:
    """Return what discover found of fabrics, devices and schedulers, by the names of the tables."""
    names = {device.kind for device in machine.fabrics if device.kind in FABRICS}
    names |= {gpu.vendor for gpu in machine.gpus}
    names |= {way.name for way in machine.single_copy if way.usable and way.name == "xpmem"}
    if any(dict(gpu.details).get("gdrcopy") for gpu in machine.gpus):
        names.add("gdrcopy")
    scheduler = machine.scheduler.name if machine.scheduler else ""
    if scheduler == "slurm" or any(launcher.name == "srun" for launcher in machine.launchers):
        names.add("slurm")
    return frozenset(names)


def _offer(
    row: Provided, features: frozenset[str], options: HostOptions, environ: Mapping[str, str]
) -> Offer | None:
    if place := options.use.get(row.id):
        return Offer(place)
    if options.here:
        offered = find_provided(row, environ)
        return Offer(offered) if offered else None
    return Offer(row.usual, by=ASSUMED) if row.usual and row.on in features else None


def find_provided(row: Provided, environ: Mapping[str, str]) -> str:
    """Return the first prefix that has the header of a package of this machine; empty: none."""
    for prefix in row.prefixes:
        place = environ.get(prefix[1:], "") if prefix.startswith("$") else prefix
        if place and Path(place, row.header).exists():
            return place
    return ""


def source_files(folder: Path) -> dict[str, Path]:
    """Return the files of a folder of sources by their names. They are in it, or in NAME/ or
    LETTER/NAME/ below, where EasyBuild keeps what it fetched and Spack what it mirrors."""
    try:
        next(folder.iterdir(), None)
    except OSError as error:
        raise UsageError.of("sources-unreadable", folder=folder, problem=error.strerror) from None
    files: dict[str, Path] = {}
    for pattern in ("*", "*/*", "*/*/*"):
        for path in sorted(folder.glob(pattern)):
            if path.is_file():
                files.setdefault(path.name, path)
    return files


def source_folders(plan: BuildPlan, folder: Path) -> list[Path]:
    """Return the folders of a folder of sources that have files of a plan."""
    files = source_files(folder)
    return list(dict.fromkeys(files[name].parent for name, _, _ in _pinned(plan) if name in files))


def check_commands(plan: BuildPlan, environ: Mapping[str, str]) -> None:
    """Raise MissingError for commands that a package of the plan starts and PATH lacks."""
    wanted: dict[str, list[str]] = {}
    for step in plan.steps:
        for command in (plan.compiler.cc, plan.compiler.cxx, "make", *_tools(step)):
            wanted.setdefault(command, []).append(step.id)
    path = environ.get("PATH", "")
    missing = {c: names for c, names in wanted.items() if not shutil.which(c, path=path)}
    if missing:
        packages = ", ".join(sorted({name for names in missing.values() for name in names}))
        commands = ", ".join(sorted(missing))
        raise MissingError.of("commands-missing", commands=commands, packages=packages)


def check_sources(plan: BuildPlan, folder: Path) -> None:
    """Raise UsageError for a file of `folder` that is not the one of the plan."""
    files = source_files(folder)
    for file, sha256, by in _pinned(plan):
        path = files.get(file)
        if path and sha256 and (actual := _digest(path)) != sha256:
            raise UsageError.of("source-changed", file=path, actual=actual, wanted=sha256, by=by)


def _digest(path: Path) -> str:
    try:
        return file_digest(path)
    except OSError as error:
        raise UsageError.of("sources-unreadable", folder=path, problem=error.strerror) from None


def _pinned(plan: BuildPlan) -> Iterable[tuple[str, str, str]]:
    """Yield each file of a plan, its SHA-256 and whose it is."""
    for step in plan.steps:
        yield step.archive.file, step.archive.sha256, step.archive.by
        for planned in step.patches:
            yield planned.patch.file, planned.sha256, planned.patch.source


def _tools(step: BuildStep) -> tuple[str, ...]:
    return (*step.package.tools, *step.archive.tools, *(("patch",) if step.patches else ()))
