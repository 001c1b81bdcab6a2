"""`mpigraft plan`: the host's MPI under a guest as plain data, and as commands."""

from __future__ import annotations

import shlex
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import NoGlibc, Program, Replaced, console, image_of, out, tell
from mpigraft.errors import AnswerIsNo, UsageError

if TYPE_CHECKING:
    from mpigraft.grafts import Kept
    from mpigraft.model import EnvRow, GraftPlan, Seat

FORMS = ("text", "json", "command", "shell", "cdi")
MIB = 1 << 20
UNUSED_DAYS, MOST_DAYS = 30, 36500


def command(
    guest: Annotated[
        str, typer.Argument(help="A program, a root folder, SIF, OCI archive, or podman:IMAGE.")
    ] = "",
    mpi: Annotated[
        str, typer.Option(metavar="SPEC", help="The host MPI: openmpi, mpich@5.0.2.")
    ] = "",
    engine: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="apptainer, podman, charliecloud, bwrap or none.",
            show_default="the first that is here",
        ),
    ] = "",
    program: Program = None,
    replace: Replaced = "mpi",
    no_glibc: NoGlibc = False,
    force: Annotated[
        bool, typer.Option("--force", help="Plan what the check refuses, to see it fail.")
    ] = False,
    ranks: Annotated[
        int, typer.Option("--ranks-per-node", metavar="N", help="For what ranks share.")
    ] = 2,
    form: Annotated[
        str, typer.Option("--as", metavar="FORM", help="text, json, command, shell or cdi.")
    ] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of printing.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="The plans that are kept here.")] = False,
    remove: Annotated[
        str, typer.Option("--remove", metavar="KEY", help="Remove a plan and its files.")
    ] = "",
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Remove plans that no job has used for DAYS, 30 where none are given."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --prune: show what would be removed.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --as json.")] = False,
) -> None:
    """Put a host MPI under a guest, once, as plain data that any launch can use.

    The guest and the host's libraries are never written to: what goes in is copied into a folder
    of this user, and bound over the files that the guest's loader would have taken.

    \b
    Examples:
      mpigraft plan app.sif --mpi openmpi@5
      mpigraft plan app.sif --mpi openmpi@5 --as shell -o app.sh
      mpigraft plan --list
      mpigraft plan --prune 7 --dry-run
    """
    form = "json" if as_json else form
    if form not in FORMS:
        raise UsageError(f"--as {form!r} is unknown", mend=f"one of {', '.join(FORMS)}")
    if dry_run and not prune:
        raise UsageError("--dry-run is for --prune", mend="a plan starts nothing anyway")
    if prune:
        out("\n".join(_pruned(guest, form, dry=dry_run)))
        return
    if list_ or remove:
        out("\n".join(_listed(form) if list_ else _removed(remove)))
        return
    if not guest or not mpi:
        raise UsageError(
            "a plan is of a guest and a host MPI",
            mend="mpigraft plan GUEST --mpi SPEC; `mpigraft discover` lists the MPIs",
        )
    plan = _planned(guest, tuple(program or ()), mpi, engine, replace, not no_glibc, force)
    text = _as(form, plan, ranks)
    if output:
        _write(output, text, executable=form == "shell")
        tell(f"written: {output}")
    elif text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        out(text)
    else:
        raise UsageError("a path of this plan is no text", mend="write it to a file: -o FILE")


def _planned(
    guest: str,
    programs: tuple[str, ...],
    spec: str,
    engine: str,
    replace: str,
    glibc: bool,
    force: bool,
) -> GraftPlan:
    from mpigraft import alternatives, discover, graft, grafts
    from mpigraft.configure import select_mpis
    from mpigraft.guest import examine, mpi_of
    from mpigraft.model import Replace

    if replace not in ("mpi", "libfabric"):
        raise UsageError(f"--replace {replace!r} is unknown", mend="mpi or libfabric")
    with console(stderr=True).status("reading the guest"):
        examined = examine(image_of(guest), programs)
    with console(stderr=True).status("looking at the machine"):
        here = discover.machine()
    hits = select_mpis([spec], here.mpis)
    mpi = next((m for m in hits if m.usable), hits[0])
    wanted = graft.Wanted(Replace(replace), engine, glibc=glibc, force=force)
    with console(stderr=True).status("putting it together"):
        try:
            plan = graft.planned(examined, mpi, here, wanted)
        except AnswerIsNo as no:
            fits = alternatives.fitting(
                here, [mpi.id], lambda one: graft.planned(examined, one, here, wanted)
            )
            wheels = alternatives.fetchable(
                examined, mpi_of(examined), here, wanted.replace, engine
            )
            alternatives.add_way_out(no, fits, wheels)
            raise
        grafts.make(plan)
    return plan


def _as(form: str, plan: GraftPlan, ranks: int) -> str:
    from mpigraft import engines, grafts
    from mpigraft.jsonout import document
    from mpigraft.launch import seat_of

    folder = grafts.folder(plan)
    if form == "json":
        return document(plan=plan, folder=str(folder))
    if form == "cdi":
        import json

        from mpigraft.engines import cdi

        return json.dumps(cdi.document(plan, folder), indent=2)
    seat = seat_of(plan, ranks, Path.cwd())
    if form == "shell":
        from mpigraft.engines import wrapper

        return wrapper.script(plan, seat)
    engine = engines.ENGINES[plan.engine]
    if form == "command":
        return shlex.join(engine.words(plan, seat))
    return "\n".join(lines(plan, seat, engine.shares(plan, seat)))


def lines(plan: GraftPlan, seat: Seat, shares: str) -> Iterator[str]:
    """The plan for a person: what goes where, and why."""
    from mpigraft import grafts

    guest = plan.guest
    size = grafts.size(Path(seat.graft)) / MIB
    what = "libfabric and UCX of " if plan.replace == "libfabric" else ""
    yield from _wrapped(
        f"{what}{plan.mpi} under {guest.name} ({guest.os or guest.kind}), by {plan.engine}"
    )
    yield f"plan {plan.key[:12]}: {len(plan.copies)} files, {size:.0f} MiB, in {seat.graft}"
    yield f"ranks see them at {grafts.place(plan)}"
    if plan.glibc:
        yield (
            f"the guest's glibc {guest.glibc} is too old: the host's whole glibc goes in with it"
        )
    yield ""
    if plan.binds:
        yield "over the guest's files, for these are what its loader takes:"
    for bind in plan.binds:
        yield f"  {_shown(bind.target)}"
        yield f"    <- {_shown(bind.source.removeprefix('{graft}/'))}"
    yield from _environment(grafts.environment(plan))
    for bind in plan.devices:
        need = "needed" if bind.required else "where it is there"
        why = f": {bind.why}" if bind.why else ""
        yield from _wrapped(f"device  {bind.source} ({need}){why}", 8)
    yield from _wrapped(f"ranks of a node: {shares}")
    for part in plan.parts:
        if part.level != "info":
            yield from _wrapped(f"{part.level} {part.name}: {part.said}")


def _environment(rows: tuple[EnvRow, ...]) -> Iterator[str]:
    yield from (_shown(f"set     {r.name}={r.value}") for r in rows if r.value is not None)
    if drops := ", ".join(row.name for row in rows if row.value is None):
        yield from _wrapped(f"dropped {drops}", 8)


def _wrapped(text: str, indent: int = 2) -> list[str]:
    """Lines of 80 columns; a path is never broken."""
    return textwrap.wrap(
        _shown(text), 80, subsequent_indent=" " * indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _shown(text: str) -> str:
    """Without what a terminal would take for a command: names of a guest are not trusted."""
    return "".join(c if c.isprintable() else "?" for c in text)


def _listed(form: str) -> Iterator[str]:
    from mpigraft import grafts
    from mpigraft.jsonout import document

    kept = sorted(grafts.kept(), key=lambda one: -one.used)
    disk = grafts.disk()
    if form == "json":
        yield document(plans=kept, disk=disk)
        return
    if not kept:
        yield "no plans are kept here"
        return
    yield from _table(kept)
    yield ""
    yield f"{_count(len(kept))}, {_mib(disk)} on disk: copies that several have are there once"


def _table(kept: Sequence[Kept]) -> Iterator[str]:
    rows = [("plan", "made", "used", "size", "what")]
    for one in kept:
        used = "now" if one.jobs else _age(one.used)
        what = "of another version of mpigraft"
        if plan := one.plan:
            programs = [_shown(PurePosixPath(path).name) for path in plan.guest.programs]
            more = f" and {len(programs) - 1} more" if len(programs) > 1 else ""
            named = f"{programs[0]}{more} of " if programs else ""
            mpi = f"{plan.mpi} under " if plan.mpi else ""
            what = _shown(f"{mpi}{named}{plan.guest.name}, {plan.engine}")
        rows.append((one.key[:12], _age(one.made), used, _mib(one.size), what))
    wide = [max(len(row[n]) for row in rows) for n in range(4)]
    for key, made, used, size, what in rows:
        yield (f"{key:{wide[0]}}  {made:>{wide[1]}}  {used:>{wide[2]}}  {size:>{wide[3]}}  {what}")


def _age(then: float) -> str:
    """12 min, 5 h, 3 days."""
    minutes = max(0, int((time.time() - then) / 60))
    if minutes < 100:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h" if hours < 48 else f"{hours // 24} days"


def _mib(size: int) -> str:
    return f"{size / MIB:.0f} MiB"


def _count(number: int) -> str:
    return f"{number} plan" if number == 1 else f"{number} plans"


def _pruned(days: str, form: str, *, dry: bool) -> Iterator[str]:
    from mpigraft import grafts
    from mpigraft.jsonout import document

    try:
        limit = float(days or UNUSED_DAYS)
    except ValueError:
        limit = -1.0
    if not 0 <= limit <= MOST_DAYS:
        raise UsageError(
            f"{days!r} is no number of days", mend="mpigraft plan --prune 7; 0 is every plan"
        )
    done = grafts.prune(limit, dry=dry)
    if form == "json":
        yield document(removed=done.removed, busy=done.busy, freed=done.freed, dry_run=dry)
        return
    if done.removed:
        yield from _table(done.removed)
        yield ""
    if done.busy:
        keys = ", ".join(one.key[:12] for one in done.busy)
        yield f"kept, for a job has its records in it: {keys}"
    verb = "would be removed" if dry else "removed"
    yield f"{_count(len(done.removed))} {verb}, {_mib(done.freed)}: unused for {limit:g} days"


def _removed(key: str) -> Iterator[str]:
    from mpigraft import grafts

    yield f"removed {grafts.remove(key).folder}"


def _write(path: Path, text: str, *, executable: bool) -> None:
    """Whole or not at all."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_bytes(f"{text.rstrip(chr(10))}\n".encode("utf-8", "surrogateescape"))
        new.chmod(0o755 if executable else 0o644)
        new.rename(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise UsageError(f"{path}: {error.strerror}") from error
