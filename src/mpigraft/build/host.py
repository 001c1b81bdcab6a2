"""What this machine offers to a build: its fabrics, its own packages, and the given sources."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from mpigraft.build.plan import BuildHost, BuildPlan, BuildStep
from mpigraft.core.cache import file_digest
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import NetDevice
from mpigraft.knowledge.builds import PlanTable, Provided

FABRICS = ("cxi", "infiniband")  # that recipes ask for


def build_host(
    architecture: str,
    fabrics: Iterable[NetDevice],
    table: PlanTable,
    compiler: str,
    environ: Mapping[str, str],
    sources: Path | None = None,
) -> BuildHost:
    """Look at this machine. With `sources` nothing is fetched: what that folder has is all.
    Raises UsageError for a folder that cannot be read."""
    kinds = {device.kind for device in fabrics}
    prefixes = {row.id: found for row in table.provided if (found := find_provided(row, environ))}
    for row in table.compilers:
        if row.id == compiler and shutil.which(row.fc, path=environ.get("PATH", "")):
            prefixes["fortran"] = row.fc
    try:
        files = frozenset(path.name for path in sources.iterdir()) if sources else frozenset()
    except OSError as error:
        raise UsageError.of("sources-unreadable", folder=sources, problem=error.strerror) from None
    return BuildHost(
        architecture, frozenset(kinds & set(FABRICS)), prefixes, files, sources is not None
    )


def find_provided(row: Provided, environ: Mapping[str, str]) -> str:
    """The first prefix that has the header of a package of this machine; empty: none."""
    for prefix in row.prefixes:
        place = environ.get(prefix[1:], "") if prefix.startswith("$") else prefix
        if place and Path(place, row.header).exists():
            return place
    return ""


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
    """Raise UsageError for a file of `folder` that is not the archive of the plan."""
    for step in plan.steps:
        path = folder / step.archive.file
        if path.name in plan.host.sources and (actual := file_digest(path)) != step.archive.sha256:
            raise UsageError.of(
                "source-changed",
                file=path,
                actual=actual,
                wanted=step.archive.sha256,
                by=step.archive.by,
            )


def _tools(step: BuildStep) -> tuple[str, ...]:
    return (*step.package.tools, *step.archive.tools)
