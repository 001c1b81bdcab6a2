"""Build a plan with EasyBuild, package by package, below one prefix.

Each package is one run of `eb`: what was built stays, and the next run of the same plan continues
with the first that is missing. EasyBuild itself writes a package's module last, so that one which
was cut off counts as not built.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpigraft.build.easyconfigs import easyconfigs_of
from mpigraft.build.failure import failure_of
from mpigraft.build.folders import (
    OWNER,
    BuildFolders,
    make_folders,
    module_name,
    prefix_lock,
    unwritable,
)
from mpigraft.build.host import check_commands, check_sources, source_folders
from mpigraft.build.modules import LUA, TCL, module_files, write_both
from mpigraft.build.progress import KEPT, Meter, Report
from mpigraft.build.records import (
    BEGUN,
    BUILT,
    Builder,
    Standing,
    recipe_digests,
    recorded,
    standing,
    write_record,
)
from mpigraft.build.values import BuildPlan, BuildStep
from mpigraft.core import env
from mpigraft.core.errors import MissingError
from mpigraft.core.process import Listener, run_command
from mpigraft.core.text import printable
from mpigraft.core.write import write_whole
from mpigraft.knowledge import version_numbers
from mpigraft.native import Natives

LEAST = (5,)
LIMIT_S = 4 * 3600.0  # of one package
GRACE_S = 3.0  # in which EasyBuild may end in order, and remove its own lock
PASSED_ON = re.compile(
    r"LMOD_|MODULE|__LMOD|_ModuleTable|CPATH|LIBRARY_PATH|LD_LIBRARY_PATH|EBROOT"
    r"|((?i:https?|ftp|all|no)_(?i:proxy)|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE)$"
)
NOWHERE = "http://127.0.0.1:9"  # a proxy that refuses at once: nobody listens on that port


@dataclass(frozen=True, slots=True)
class EasyBuild:
    """The EasyBuild of this machine."""

    command: str
    version: str
    modules_tool: str  # Lmod or EnvironmentModules

    @property
    def language(self) -> str:
        """What ends the names of the modules that it writes."""
        return LUA if self.modules_tool == "Lmod" else TCL


def find_easybuild(environ: Mapping[str, str]) -> EasyBuild:
    """Find EasyBuild and the tool for its modules. Raises MissingError, also for root, for whom
    EasyBuild builds nothing."""
    if os.geteuid() == 0:
        raise MissingError.of("build-as-root")
    command = shutil.which("eb", path=environ.get("PATH", ""))
    if command is None:
        raise MissingError.of("easybuild-missing", problem="PATH has no eb")
    with tempfile.TemporaryDirectory(prefix="mpigraft-") as folder:  # it leaves files there
        inside = environment(environ) | {"TMPDIR": folder}
        done = run_command([command, "--version"], env=inside, limit_s=60)
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
    """Build each package of a plan that is not there. Raises MissingError for what this machine
    lacks and for the first package that fails, UsageError for sources that are not those of the
    plan and for packages that are there, built in another way."""
    tool = find_easybuild(environ)
    check_commands(plan, environ)
    sources: list[Path] = []
    if folders.sources:
        check_sources(plan, folders.sources)
        sources = source_folders(plan, folders.sources)
    make_folders(folders, sources)
    command = _command(tool, folders, sources)
    with prefix_lock(folders):
        try:
            _build(plan, folders, tool, command, environ, report)
        except OSError as error:
            raise unwritable(folders, error) from None


def _build(
    plan: BuildPlan,
    folders: BuildFolders,
    tool: EasyBuild,
    command: Sequence[str | Path],
    environ: Mapping[str, str],
    report: Report,
) -> None:
    digests = recipe_digests(plan)
    states = {s.id: standing(s, plan, folders, digests[s.id]) for s in plan.steps}
    files = _write_easyconfigs(plan, folders)
    builder = Builder(tool.version, _compiler(plan, environ))
    kept = frozenset(name for name, state in states.items() if state is Standing.BUILT)
    meter = Meter(plan.steps, kept, report)
    for number, (step, file) in enumerate(zip(plan.steps, files, strict=True), 1):
        if step.id in kept:
            meter.start(number, KEPT)
        else:
            meter.start(number)
            write_record(step, plan, folders, builder, BEGUN)
            argv = [*command, *_again(step, plan, folders), file]
            inside = environment(environ) | own_rows(folders)
            done = run_command(
                [*_guard(), *argv], env=inside, limit_s=LIMIT_S, listener=Listener(meter.listen)
            )
            if not done.ok or not module_files(folders.modules / module_name(step, plan)):
                raise failure_of(step, done, folders)
        _finish(step, plan, folders, tool, builder)
    for leftover in folders.temporary.iterdir():
        shutil.rmtree(leftover, ignore_errors=True)


def _again(step: BuildStep, plan: BuildPlan, folders: BuildFolders) -> list[str]:
    """Return a module of a build that was killed before it had its record: EasyBuild would take the
    package for whole."""
    return ["--rebuild"] if module_files(folders.modules / module_name(step, plan)) else []


def _finish(
    step: BuildStep, plan: BuildPlan, folders: BuildFolders, tool: EasyBuild, builder: Builder
) -> None:
    """Write what a whole package has besides what EasyBuild wrote; the record last."""
    place = folders.modules / module_name(step, plan)
    there = module_files(place)
    write_both(place, tool.language if tool.language in there else next(iter(there)))
    if not recorded(step, plan, folders):
        write_record(step, plan, folders, builder, BUILT)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what EasyBuild may see: no EASYBUILD_* that would send it elsewhere, and what the
    module tool and a site's proxy need."""
    kept = {name: value for name, value in environ.items() if PASSED_ON.match(name)}
    return env.base(environ) | kept


def own_rows(folders: BuildFolders) -> dict[str, str]:
    """Return the other variables of a build. EasyBuild leaves a folder where temporary files go,
    despite --tmpdir, and prints late into a pipe. It always tries to fetch a script (config.guess),
    so with a folder of sources the network is closed to it."""
    rows = {
        "TMPDIR": str(folders.temporary),
        "PYTHONUNBUFFERED": "1",
        OWNER: str(folders.prefix),
    }
    if folders.sources:
        for name in ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy"):
            rows |= dict.fromkeys((name, name.upper()), NOWHERE)
        rows |= dict.fromkeys(("no_proxy", "NO_PROXY"), "")  # some read one, some the other
    return rows


def _guard() -> list[str | Path]:
    """Return the words that end EasyBuild and its children when this process is killed."""
    guard = Natives.guard_for(platform.machine())
    if guard is None:
        return []
    return [guard, "--grace", f"{GRACE_S:g}", "--parent", str(os.getpid()), "--"]


def _compiler(plan: BuildPlan, environ: Mapping[str, str]) -> str:
    done = run_command([plan.compiler.cc, "--version"], env=environment(environ), limit_s=60)
    return next(iter(done.text().splitlines()), plan.compiler.cc).strip()


def _write_easyconfigs(plan: BuildPlan, folders: BuildFolders) -> list[Path]:
    paths = []
    for name, text in easyconfigs_of(plan).items():
        paths.append(folders.easyconfigs / name)
        write_whole(paths[-1], text.encode())
    return paths


def _command(tool: EasyBuild, folders: BuildFolders, sources: Iterable[Path]) -> list[str | Path]:
    places = [folders.downloads, *sources]  # EasyBuild writes into the first folder
    return [
        tool.command,
        "--ignoreconfigfiles=*",
        "--ignore-locks",  # of one that was killed; two builds are kept apart by our own lock
        f"--prefix={folders.prefix}",
        f"--sourcepath={':'.join(map(str, places))}",
        f"--robot={folders.easyconfigs}",
        f"--modules-tool={tool.modules_tool}",
        f"--module-syntax={'Lua' if tool.language == LUA else 'Tcl'}",
        f"--parallel={len(os.sched_getaffinity(0))}",
        f"--tmpdir={folders.temporary}",
    ]
