"""A graft as text, and the list of those that are stored."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mpigraft.core.numbers import counted
from mpigraft.core.text import fold, join_some, printable
from mpigraft.report.table import list_rows

if TYPE_CHECKING:
    from mpigraft.core.model import EngineContext, EnvRow, GraftPlan
    from mpigraft.graft import GraftFolder, Pruned

MIB = 1 << 20


def graft_plan_lines(plan: GraftPlan, context: EngineContext, shares: str) -> Iterator[str]:
    """Describe a graft: what goes where, and why."""
    from mpigraft.graft import disk_usage, graft_environment, path_in_guest

    guest = plan.guest
    size = disk_usage(Path(context.graft)) / MIB
    what = "libfabric and UCX of " if plan.replace == "libfabric" else ""
    yield from fold(
        f"{what}{plan.mpi} under {guest.name} ({guest.os or guest.kind}), by {plan.engine}"
    )
    yield f"plan {plan.key[:12]}: {len(plan.copies)} files, {size:.0f} MiB, in {context.graft}"
    yield f"ranks see them at {path_in_guest(plan)}"
    if plan.glibc:
        yield (f"the guest's glibc {guest.glibc} is too old: the host's whole glibc replaces it")
    yield ""
    if plan.binds:
        yield "bound over the files that the guest's loader would load:"
    for bind in plan.binds:
        yield f"  {printable(bind.target)}"
        yield f"    <- {printable(bind.source.removeprefix('{graft}/'))}"
    yield from _environment(graft_environment(plan))
    for bind in plan.devices:
        need = "required" if bind.required else "where it exists"
        why = f": {bind.why}" if bind.why else ""
        yield from fold(f"device  {bind.source} ({need}){why}", rest=8)
    yield from fold(f"ranks of a node: {shares}")
    for part in plan.parts:
        if part.level != "info":
            yield from fold(f"{part.level} {part.name}: {part.message}")


def _environment(rows: tuple[EnvRow, ...]) -> Iterator[str]:
    yield from (printable(f"set     {r.name}={r.value}") for r in rows if r.value is not None)
    if drops := ", ".join(row.name for row in rows if row.value is None):
        yield from fold(f"dropped {drops}", rest=8)


def stored_plans_lines(plans: Sequence[GraftFolder], disk: int) -> Iterator[str]:
    """Lay out a row for each stored plan, and the bytes of all on `disk`."""
    if not plans:
        yield "no plans are stored"
        return
    yield from _rows(plans)
    yield ""
    number = counted(len(plans), "plan")
    text = f"{number}, {mebibytes(disk)} on disk; copies that plans share are stored once"
    yield from fold(text)


def pruned_lines(done: Pruned, days: float, *, dry: bool) -> Iterator[str]:
    """Describe what was removed, or would be, as no job used it for `days`; and what was kept."""
    if done.removed:
        yield from _rows(done.removed)
        yield ""
    if done.busy:
        keys = ", ".join(one.key[:12] for one in done.busy)
        yield f"kept, as a job writes its records there: {keys}"
    verb = "would be removed" if dry else "removed"
    number = counted(len(done.removed), "plan")
    yield f"{number} {verb}, {mebibytes(done.freed)}: unused for {days:g} days"


def _rows(plans: Sequence[GraftFolder]) -> Iterator[str]:
    rows, whats = [], ["what"]
    for one in plans:
        used = "now" if one.jobs else _age(one.used)
        what = "of another version of mpigraft"
        if plan := one.plan:
            programs = [printable(PurePosixPath(path).name) for path in plan.guest.programs]
            named = f"{join_some(programs, 1)} of " if programs else ""
            mpi = f"{plan.mpi} under " if plan.mpi else ""
            what = printable(f"{mpi}{named}{plan.guest.name}, {plan.engine}")
        whats.append(what)
        rows.append((one.key[:12], _age(one.made), used, mebibytes(one.size)))
    lines = list_rows(("plan", "made", "used", "size"), rows, right=("made", "used", "size"))
    for line, what in zip(lines, whats, strict=True):
        yield from fold(what, f"{line}  ", len(line) + 2)


def _age(then: float) -> str:
    """Write `12 min`, `5 h`, `3 days`."""
    minutes = max(0, int((time.time() - then) / 60))
    if minutes < 100:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h" if hours < 48 else f"{hours // 24} days"


def mebibytes(size: int) -> str:
    """Write a number of bytes in MiB."""
    return f"{size / MIB:.0f} MiB"
