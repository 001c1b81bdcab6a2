"""Build a plan with EasyBuild, package by package, below one prefix.

Each package is one run of `eb`: what was built stays, and the next run of the same plan goes on
with the first that is missing. EasyBuild itself writes a package's module last, so that one which
was cut off counts as not built.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mpigraft.build.easyconfigs import easyconfigs_of, suffix_of
from mpigraft.build.host import check_commands, check_sources
from mpigraft.build.plan import BuildPlan, BuildStep
from mpigraft.core import env
from mpigraft.core.errors import MissingError
from mpigraft.core.process import Completed, run_command
from mpigraft.core.text import printable
from mpigraft.core.write import write_whole
from mpigraft.knowledge import version_numbers

LEAST = (5,)
LIMIT_S = 4 * 3600.0  # of one package
PASSED_ON = re.compile(
    r"LMOD_|MODULE|__LMOD|_ModuleTable|CPATH|LIBRARY_PATH|LD_LIBRARY_PATH|EBROOT"
)
FAILURE = re.compile(r"== FAILED: (?P<problem>.*?)(?: \(took .*\))?$", re.MULTILINE)
LOG = re.compile(r"log file\(s\) (?P<log>\S+)")
LAST_LINES = 12

Report = Callable[[BuildStep, int, int], None]  # the package that starts, its number, of how many


@dataclass(frozen=True, slots=True)
class EasyBuild:
    """The EasyBuild of this machine."""

    command: str
    version: str
    modules_tool: str  # Lmod or EnvironmentModules


@dataclass(frozen=True, slots=True)
class BuildFolders:
    """Where a build reads and writes; everything that it writes is below `prefix`."""

    prefix: Path
    sources: Path | None = None

    @property
    def modules(self) -> Path:
        return self.prefix / "modules/all"

    @property
    def easyconfigs(self) -> Path:
        return self.prefix / "easyconfigs"

    @property
    def temporary(self) -> Path:
        return self.prefix / "tmp"

    def module(self, plan: BuildPlan) -> str:
        """The module of the MPI that a plan ends with."""
        root = plan.steps[-1]
        return f"{root.package.name}/{root.version}{suffix_of(plan)}"

    def root(self, plan: BuildPlan) -> Path:
        """The prefix of that MPI."""
        return self.prefix / "software" / self.module(plan)


def find_easybuild(environ: Mapping[str, str]) -> EasyBuild:
    """Find EasyBuild and the tool for its modules. Raises MissingError, also for root, for whom
    EasyBuild builds nothing."""
    if os.geteuid() == 0:
        raise MissingError.of("build-as-root")
    command = shutil.which("eb", path=environ.get("PATH", ""))
    if command is None:
        raise MissingError.of("easybuild-missing", problem="PATH has no eb")
    done = run_command([command, "--version"], env=environment(environ), limit_s=60)
    match = re.search(r"EasyBuild (\S+)", done.text())
    if not done.ok or not match or version_numbers(match[1]) < LEAST:
        lines = done.text().strip().splitlines() or ["it prints nothing"]
        raise MissingError.of("easybuild-missing", problem=printable(lines[-1])[:200])
    for variable, tool in (("LMOD_CMD", "Lmod"), ("MODULES_CMD", "EnvironmentModules")):
        if environ.get(variable):
            return EasyBuild(command, match[1], tool)
    raise MissingError.of("module-tool-missing")


def build(
    plan: BuildPlan, folders: BuildFolders, environ: Mapping[str, str], report: Report
) -> None:
    """Build each package of a plan. Raises MissingError for what this machine lacks and for the
    first package that fails, UsageError for sources that are not those of the plan."""
    tool = find_easybuild(environ)
    check_commands(plan, environ)
    if folders.sources:
        check_sources(plan, folders.sources)
    files = _write_easyconfigs(plan, folders)
    for number, (step, file) in enumerate(zip(plan.steps, files, strict=True), 1):
        report(step, number, len(plan.steps))
        # EasyBuild leaves a folder where temporary files go, whatever --tmpdir says.
        inside = environment(environ) | {"TMPDIR": str(folders.temporary)}
        done = run_command([*_command(tool, folders), file], env=inside, limit_s=LIMIT_S)
        if not done.ok:
            raise _failure(step, done, folders)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What EasyBuild may see: no EASYBUILD_* that would send it elsewhere, and what the module
    tool needs."""
    kept = {name: value for name, value in environ.items() if PASSED_ON.match(name)}
    return env.base(environ) | kept


def _write_easyconfigs(plan: BuildPlan, folders: BuildFolders) -> list[Path]:
    try:
        for folder in (folders.easyconfigs, folders.temporary):
            folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for name, text in easyconfigs_of(plan).items():
            paths.append(folders.easyconfigs / name)
            write_whole(paths[-1], text.encode())
    except OSError as error:
        raise MissingError.of(
            "prefix-not-writable", prefix=folders.prefix, problem=error.strerror
        ) from None
    return paths


def _command(tool: EasyBuild, folders: BuildFolders) -> list[str | Path]:
    own = folders.prefix / "sources"  # EasyBuild writes into the first folder
    sources = f"{own}:{folders.sources}" if folders.sources else str(own)
    return [
        tool.command,
        "--ignoreconfigfiles=*",
        f"--prefix={folders.prefix}",
        f"--sourcepath={sources}",
        f"--robot={folders.easyconfigs}",
        f"--modules-tool={tool.modules_tool}",
        f"--module-syntax={'Lua' if tool.modules_tool == 'Lmod' else 'Tcl'}",
        f"--parallel={len(os.sched_getaffinity(0))}",
        f"--tmpdir={folders.temporary}",
    ]


def _failure(step: BuildStep, done: Completed, folders: BuildFolders) -> MissingError:
    text = done.text()
    problem, log = FAILURE.search(text), LOG.search(text)
    lines = [line for line in text.splitlines() if line.strip()][-LAST_LINES:]
    return MissingError.of(
        "build-step-failed",
        package=f"{step.id} {step.version}",
        step=f": {printable(problem['problem'])}" if problem else f"with code {done.code}",
        lines="\n".join(lines),
        log=log["log"] if log else folders.temporary,
    )
