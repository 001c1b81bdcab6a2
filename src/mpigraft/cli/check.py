"""`mpigraft check`: whether a host MPI fits under a guest, decided before anything starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpigraft.cli.common import (
    Json,
    Machine,
    NoGlibc,
    Program,
    Replaced,
    Words,
    console,
    examine_machine,
    flag,
    image_of,
    option,
    out,
    read_replace,
    tell,
    typed_options,
)
from mpigraft.core.errors import CheckFailed, UsageError
from mpigraft.core.text import fold, join_some, labelled, printable

if TYPE_CHECKING:
    from mpigraft.core.model import CheckResult, Finding, Fit, GuestLabel, MpiInstall
    from mpigraft.core.model import Machine as MachineFacts
    from mpigraft.graft import GuestMpi
    from mpigraft.selection import FitVerdicts, TriedFit

PROGRAMS = 4  # that a line names
SHOWN, LONG = 8, 400  # lines of evidence of one finding, their length; --json has all
WORDS = {"error": "NO", "warning": "warning", "info": "ok"}


def command(
    guest: Annotated[
        str,
        typer.Argument(help="Program, root folder, SIF, OCI archive, podman:IMAGE, or a stack."),
    ],
    specs: Annotated[
        list[str] | None,
        option("SPEC", "Host MPI to check: openmpi, mpich@5, a path.", "all", "--mpi"),
    ] = None,
    words: Words = None,
    program: Program = None,
    replace: Replaced = "mpi",
    machine: Machine = None,
    no_glibc: NoGlibc = False,
    stack: Annotated[
        bool, flag("GUEST is a software stack; EasyBuild's and Spack's are known as such.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Check whether a host MPI fits under a guest; if not, say why and what to do.

    Nothing is run and nothing written. Without --mpi every MPI of the machine is checked. The exit
    code is 1 where none fits. All programs of a software stack are checked as if the MPI were
    injected: each would load it, and nothing else would change. Without --mpi, what is injected
    there now is checked.

    \b
    Examples:
      mpigraft check app.sif --mpi openmpi@5
      mpigraft check app.sif --mpi mpich -- python3 solver.py
      mpigraft check ./app --machine machine.json --mpi mpich --json
      mpigraft check /cvmfs/software.eessi.io/versions/2023.06/software/linux/x86_64/amd/zen3
    """
    from mpigraft.core.serialize import document
    from mpigraft.selection import FitRequest, cached_verdicts, fit_verdicts

    replaced = read_replace(replace)
    mpi = _single_spec(specs or ())
    if stack or _is_stack(guest):
        from mpigraft.cli.check_stack import check_stack_of

        if program or words or replace != "mpi" or no_glibc:
            raise UsageError.of("stack-option")
        return check_stack_of(image_of(guest), mpi, machine, as_json=as_json)
    here = examine_machine(machine, [mpi])
    asked = tuple(program or ()), tuple(words or ())
    given = {
        "--mpi": mpi,
        "--machine": machine,
        "--replace": replace,
        "--no-glibc": no_glibc,
        "--json": as_json,
    }
    typed = typed_options(given)
    request = FitRequest(image_of(guest), *asked, replaced, not no_glibc, machine, typed)
    mpis = chosen_mpis(mpi, here)
    verdicts = cached_verdicts(request, here, mpis)
    if verdicts is None:
        with console(stderr=True).status("reading the guest"):
            verdicts = fit_verdicts(request, here, mpis)
    if as_json:
        out(document(**as_document(verdicts)))
    elif mpi:
        out("\n".join([*lines(verdicts.tried[0], verdicts.own), *_alternatives(verdicts)]))
    else:
        out("\n".join([*table(verdicts), *_alternatives(verdicts)]))
    return 0 if verdicts.ok else CheckFailed.exit_code


def _is_stack(guest: str) -> bool:
    from pathlib import Path

    path = Path(image_of(guest))
    if not path.is_dir():
        return False
    from mpigraft.graft import is_stack

    return is_stack(path)


def _single_spec(specs: Sequence[str]) -> str:
    """The one that was named, if any. The last of several would answer for the others."""
    if len(specs) > 1:
        raise UsageError.of("mpi-given-twice", count=len(specs))
    return next(iter(specs), "")


def chosen_mpis(spec: str, here: MachineFacts) -> list[str]:
    """The id of the MPI that was named, or all. Of several that a family names, the first that
    works."""
    from mpigraft.selection import select_mpis

    hits = select_mpis([spec] if spec else [], here.mpis)
    if not spec:
        return [mpi.id for mpi in hits]
    return [first_usable(hits).id]


def first_usable(hits: Sequence[MpiInstall]) -> MpiInstall:
    """Choose the first that works, else the first, and name those before it, which do not."""
    broken = [*takewhile(lambda m: not m.usable, hits)]
    if len(broken) == len(hits):
        return hits[0]
    for one in broken:
        tell(f"{one.problem}; {hits[len(broken)].id} is taken instead")
    return hits[len(broken)]


# ------------------------------------------------------------------ for other tools


def as_document(verdicts: FitVerdicts) -> dict[str, Any]:
    """What report/schemas/check.json describes."""
    from mpigraft.core.serialize import plain

    label = plain(verdicts.guest)
    del label["environment"]  # an image's may hold secrets, and it decides nothing here
    return {
        "ok": verdicts.ok,
        "guest": label,
        "checks": [
            {
                "mpi": one.fit.mpi,
                "replace": one.fit.replace,
                "ok": one.fit.ok,
                "fitting": one.fitting,
                "parts": one.fit.parts,
            }
            for one in verdicts.tried
        ],
        "unread": list(verdicts.unread),
        "others": {"fit": list(verdicts.others.fits), "fetch": list(verdicts.others.fetch)},
    }


# ------------------------------------------------------------------ for a person


def lines(tried: TriedFit, own: GuestMpi | None = None) -> Iterator[str]:
    """One verdict in full, the worst part first."""
    from mpigraft.graft import NOT_CHECKED

    fit = tried.fit
    yield f"fits: {'yes' if fit.ok else 'no'}"
    yield ""
    yield from row("guest", _guest(fit.guest))
    yield from row("host MPI", _place(fit, own))
    yield from row("programs", join_some(fit.guest.programs, PROGRAMS, ", "))
    if tried.fitting and not fit.ok:
        yield from row("", "of these would fit alone: " + join_some(tried.fitting, PROGRAMS, ", "))
    order = list(WORDS)
    parts = sorted(fit.parts, key=lambda part: order.index(part.level))
    for part in parts:
        if part.level != "info":
            yield from _part(part)
    yield ""
    for part in parts:
        if part.level == "info":
            word = "" if part.message.startswith(NOT_CHECKED) else WORDS[part.level]
            yield from fold(printable(f"{part.name:13}{part.message}"), f"{word:10}", 23)


def _alternatives(verdicts: FitVerdicts) -> Iterator[str]:
    """What fits in place of what does not."""
    from mpigraft.selection import describe_fits, describe_wheels

    if verdicts.ok:
        return
    others = verdicts.others
    yield ""
    if others.fits:
        yield from row("instead", describe_fits(others.fits))
    else:
        none = "no other MPI of this machine does"
        more = f"; {describe_wheels(others.fetch)}" if others.fetch else ""
        yield from row("instead", none + more)


def _guest(guest: GuestLabel) -> str:
    facts = (guest.os, guest.architecture, f"glibc {guest.glibc}" if guest.glibc else "no glibc")
    return f"{guest.name} ({guest.kind}): {', '.join(filter(None, facts))}"


def _place(fit: Fit, own: GuestMpi | None) -> str:
    name = f"{own.family} {own.version}" if own else ""
    if fit.replace == "mpi":
        return f"{fit.mpi}, in place of the guest's own {name}" if name else fit.mpi
    return f"{fit.mpi}: its libfabric or UCX under the guest's own {name or 'MPI'}"


def _part(part: CheckResult) -> Iterator[str]:
    yield ""
    yield f"{WORDS[part.level]:10}{part.name}"
    for finding in part.findings:
        if finding.level != "info":  # true and harmless; --json has it
            yield from finding_lines(finding)


def finding_lines(finding: Finding) -> Iterator[str]:
    yield from row("  note" if finding.level == "info" else "  problem", finding.message)
    for line in finding.evidence[:SHOWN]:
        cut = line if len(line) <= LONG else f"{line[:LONG].rpartition(' ')[0]} ..."
        yield from fold(printable(cut), " " * 12, 14)
    if len(finding.evidence) > SHOWN:
        yield f"{'':12}and {len(finding.evidence) - SHOWN} more: --json"
    if finding.why:
        yield from row("  why", finding.why)
    if finding.fix:
        yield from row("  fix", finding.fix)


def row(label: str, text: str) -> list[str]:
    return labelled(label, printable(text), column=10)  # a guest's names: line breaks too


def table(verdicts: FitVerdicts) -> Iterator[str]:
    """Every MPI in a line: yes, or the first thing in the way."""
    tried = verdicts.tried
    yield f"fits: {sum(one.fit.ok for one in tried)} of {len(tried)} MPIs"
    yield ""
    yield from row("guest", _guest(verdicts.guest))
    yield from row("programs", join_some(verdicts.guest.programs, PROGRAMS, ", "))
    yield ""
    width = max(len(one.fit.mpi) for one in tried) + 2
    for one in sorted(tried, key=lambda one: (not one.fit.ok, -len(one.fitting))):
        text = f"{one.fit.mpi:{width}}{_reason(one)}"
        yield from fold(printable(text), f"{'yes' if one.fit.ok else 'NO':10}", 10 + width)
    for line in verdicts.unread:
        yield from row("left out", line)
    yield ""
    yield "--mpi SPEC says more of one of them"


def _reason(one: TriedFit) -> str:
    parts = one.fit.parts
    bad = [part for part in parts if part.level == "error"]
    warned = [part.name for part in parts if part.level == "warning"]
    if not bad:
        return f"with warnings: {', '.join(warned)}" if warned else "without a warning"
    alone = f"; of {len(one.fit.guest.programs)} programs {len(one.fitting)} would fit"
    return f"{bad[0].name}: {bad[0].message}" + (alone if one.fitting else "")
