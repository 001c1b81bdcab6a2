"""`mpigraft check`: whether a host MPI fits under a guest, decided before anything starts."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpigraft.cli.common import NoGlibc, Program, Replaced, console, image_of, out
from mpigraft.errors import AnswerIsNo, UsageError

if TYPE_CHECKING:
    from mpigraft.guest import GuestMpi
    from mpigraft.model import Finding, Fit, GuestLabel, Machine, Part
    from mpigraft.verdicts import Tried, Verdicts

WIDTH = 80
SHOWN, LONG = 8, 400  # lines of evidence of one finding, their length; --json has all
WORDS = {"error": "NO", "warning": "warning", "info": "ok"}


def command(
    guest: Annotated[
        str,
        typer.Argument(help="A program, a root folder, SIF, OCI archive, or podman:IMAGE."),
    ],
    specs: Annotated[
        list[str] | None,
        typer.Option(
            "--mpi",
            metavar="SPEC",
            help="The host MPI: openmpi, mpich@5.0.2.",
            show_default="all",
        ),
    ] = None,
    program: Program = None,
    replace: Replaced = "mpi",
    machine: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Another machine, by its `discover --abi --json`."),
    ] = None,
    no_glibc: NoGlibc = False,
    as_json: Annotated[bool, typer.Option("--json", help="A document for other tools.")] = False,
) -> int:
    """Say whether a host MPI fits under a guest, and if not why and what to do.

    Nothing is run and nothing written. Without --mpi every MPI of the machine is tried. Exit 1
    when the answer is no.

    \b
    Examples:
      mpigraft check app.sif --mpi openmpi@5
      mpigraft check ./app --machine machine.json --mpi mpich --json
    """
    from mpigraft import verdicts
    from mpigraft.jsonout import document
    from mpigraft.model import Replace

    if replace not in ("mpi", "libfabric"):
        raise UsageError(f"--replace {replace!r} is unknown", mend="mpi or libfabric")
    mpi = _one(specs or ())
    with console(stderr=True).status("looking at the machine"):
        here = _machine(machine)
    request = verdicts.Request(
        image_of(guest), tuple(program or ()), Replace(replace), not no_glibc, machine
    )
    mpis = _chosen(mpi, here)
    found = verdicts.kept(request, here, mpis)
    if found is None:
        with console(stderr=True).status("reading the guest"):
            found = verdicts.verdicts(request, here, mpis)
    if as_json:
        out(document(**as_document(found)))
    elif mpi:
        out("\n".join([*lines(found.tried[0], found.own), *_ways(found)]))
    else:
        out("\n".join([*table(found), *_ways(found)]))
    return 0 if found.ok else AnswerIsNo.code


def _one(specs: Sequence[str]) -> str:
    """The one that was named, if any. The last of several would answer for the others."""
    if len(specs) > 1:
        raise UsageError(
            f"--mpi was given {len(specs)} times",
            why="the answer is about one MPI, or about each MPI of the machine",
            mend="give it once, or leave it out",
        )
    return next(iter(specs), "")


def _machine(path: Path | None) -> Machine:
    from mpigraft import discover
    from mpigraft.check import saved

    return saved.machine(path) if path else discover.machine()


def _chosen(spec: str, here: Machine) -> list[str]:
    """The id of the MPI that was named, or all. Of several that a family names, the first that
    works."""
    from mpigraft.configure import select_mpis

    hits = select_mpis([spec] if spec else [], here.mpis)
    if not spec:
        return [mpi.id for mpi in hits]
    return [next((m for m in hits if m.usable), hits[0]).id]


# ------------------------------------------------------------------ for other tools


def as_document(found: Verdicts) -> dict[str, Any]:
    """What schemas/check.json describes."""
    from mpigraft.jsonout import plain

    label = plain(found.guest)
    del label["environment"]  # an image's may hold secrets, and it decides nothing here
    return {
        "ok": found.ok,
        "guest": label,
        "checks": [
            {
                "mpi": one.fit.mpi,
                "replace": one.fit.replace,
                "ok": one.fit.ok,
                "fitting": one.fitting,
                "parts": one.fit.parts,
            }
            for one in found.tried
        ],
        "unread": list(found.unread),
        "others": {"fit": list(found.others.fits), "fetch": list(found.others.fetch)},
    }


# ------------------------------------------------------------------ for a person


def lines(tried: Tried, own: GuestMpi | None = None) -> Iterator[str]:
    """One verdict in full, the worst part first."""
    from mpigraft.check.case import UNSEEN

    fit = tried.fit
    yield f"fits: {'yes' if fit.ok else 'no'}"
    yield ""
    yield from _row("guest", _guest(fit.guest))
    yield from _row("host MPI", _place(fit, own))
    yield from _row("programs", _names(fit.guest.programs))
    if tried.fitting and not fit.ok:
        yield from _row("", f"of these would fit alone: {_names(tried.fitting)}")
    order = list(WORDS)
    parts = sorted(fit.parts, key=lambda part: order.index(part.level))
    for part in parts:
        if part.level != "info":
            yield from _part(part)
    yield ""
    for part in parts:
        if part.level == "info":
            word = "" if part.said.startswith(UNSEEN) else WORDS[part.level]
            yield from _row(word, f"{part.name:13}{part.said}", 23)


def _ways(found: Verdicts) -> Iterator[str]:
    """What fits in place of what does not."""
    from mpigraft import alternatives

    if found.ok:
        return
    others = found.others
    yield ""
    if others.fits:
        yield from _row("instead", alternatives.describe_fits(others.fits))
    else:
        none = "no other MPI of this machine does"
        more = f"; {alternatives.describe_wheels(others.fetch)}" if others.fetch else ""
        yield from _row("instead", none + more)


def _guest(guest: GuestLabel) -> str:
    facts = (guest.os, guest.architecture, f"glibc {guest.glibc}" if guest.glibc else "no glibc")
    return f"{guest.name} ({guest.kind}): {', '.join(filter(None, facts))}"


def _place(fit: Fit, own: GuestMpi | None) -> str:
    name = f"{own.family} {own.version}" if own else ""
    if fit.replace == "mpi":
        return f"{fit.mpi}, in place of the guest's own {name}" if name else fit.mpi
    return f"{fit.mpi}: its libfabric or UCX under the guest's own {name or 'MPI'}"


def _names(names: Sequence[str]) -> str:
    more = len(names) - 4
    return ", ".join(names[:4]) + (f" and {more} more" if more > 0 else "")


def _part(part: Part) -> Iterator[str]:
    yield ""
    yield f"{WORDS[part.level]:10}{part.name}"
    for finding in part.findings:
        yield from _finding(finding)


def _finding(finding: Finding) -> Iterator[str]:
    if finding.level == "info":
        return  # true and harmless; --json has it
    yield from _row("  seen", finding.seen)
    for line in finding.evidence[:SHOWN]:
        cut = line if len(line) <= LONG else f"{line[:LONG].rpartition(' ')[0]} ..."
        yield from _wrapped(cut, " " * 12, " " * 14)
    if len(finding.evidence) > SHOWN:
        yield f"{'':12}and {len(finding.evidence) - SHOWN} more: --json"
    if finding.why:
        yield from _row("  why", finding.why)
    if finding.mend:
        yield from _row("  mend", finding.mend)


def _row(label: str, text: str, indent: int = 10) -> list[str]:
    return _wrapped(text, f"{label:10}", " " * indent) or [label]


def _wrapped(text: str, first: str, other: str) -> list[str]:
    return textwrap.wrap(
        visible(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=other,
        break_on_hyphens=False,
        break_long_words=False,
    )


def visible(text: str) -> str:
    """What a terminal takes for a command, or cannot show, by its escape: a guest's file names
    are chosen by whoever made it."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def table(found: Verdicts) -> Iterator[str]:
    """Every MPI in a line: yes, or the first thing in the way."""
    tried = found.tried
    yield f"fits: {sum(one.fit.ok for one in tried)} of {len(tried)} MPIs"
    yield ""
    yield from _row("guest", _guest(found.guest))
    yield from _row("programs", _names(found.guest.programs))
    yield ""
    width = max(len(one.fit.mpi) for one in tried) + 2
    for one in sorted(tried, key=lambda one: (not one.fit.ok, -len(one.fitting))):
        said = f"{one.fit.mpi:{width}}{_reason(one)}"
        yield from _row("yes" if one.fit.ok else "NO", said, 10 + width)
    for line in found.unread:
        yield from _row("left out", line)
    yield ""
    yield "--mpi SPEC says more of one of them"


def _reason(one: Tried) -> str:
    parts = one.fit.parts
    bad = [part for part in parts if part.level == "error"]
    warned = [part.name for part in parts if part.level == "warning"]
    if not bad:
        return f"with warnings: {', '.join(warned)}" if warned else "without a warning"
    alone = f"; of {len(one.fit.guest.programs)} programs {len(one.fitting)} would fit"
    return f"{bad[0].name}: {bad[0].said}" + (alone if one.fitting else "")
