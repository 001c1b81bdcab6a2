"""`mpigraft check`: whether a host MPI fits under a guest, decided before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from mpigraft.cli.common import (
    Full,
    Json,
    Words,
    chosen_mpis,
    console,
    examine_machine,
    flag,
    guest_and_words,
    image_of,
    out,
    tell_image,
    tell_machine_limits,
)
from mpigraft.cli.options import GUEST, row_of, takes_request
from mpigraft.core.errors import CheckFailed, UsageError
from mpigraft.request import Asked, GraftSpec, RunSpec

if TYPE_CHECKING:
    from mpigraft.core.model import CheckResult, GuestLabel, Machine, Replace
    from mpigraft.core.serialize import Keys
    from mpigraft.selection import FitChecks, OtherFits

    GuestKeys = Annotated[dict[str, Any], GuestLabel, Keys("environment")]


class CheckRow(TypedDict):
    """Whether one host MPI fits."""

    mpi: str  # id
    replace: Replace
    ok: bool  # no part is an error
    fitting: Sequence[str]  # programs that would fit if they were alone
    parts: Sequence[CheckResult]


class CheckDocument(TypedDict):
    """Whether host MPIs fit under a guest."""

    ok: bool  # one of the checks passes
    guest: GuestKeys
    checks: Sequence[CheckRow]  # one for each host MPI
    unread: Sequence[str]  # MPIs that cannot be used or read, with the reason
    others: OtherFits


@takes_request(only=("programs", "replace", "machine", "no_glibc"))
def command(
    *,
    guest: Annotated[
        str,
        typer.Argument(
            help="Software stack; another guest is named by --image.", show_default=False
        ),
    ] = "",
    image: Annotated[str, row_of(RunSpec, "image", GUEST, "none")] = "",
    specs: Annotated[
        list[str] | None,
        row_of(GraftSpec, "mpi", "Host MPI to check: openmpi, mpich@5, a path.", "all"),
    ] = None,
    words: Words = None,
    asked: Asked[GraftSpec],
    stack: Annotated[
        bool,
        flag(
            "GUEST is a software stack; EasyBuild's and Spack's are known as such.",
            "--stack",
            panel="Container or stack",
        ),
    ] = False,
    as_json: Json = False,
    full: Full = False,
) -> int:
    """Check whether a host MPI fits under a guest; if not, say why and what to do.

    Nothing is run and nothing written. Without --mpi every MPI of the machine is checked. The exit
    code is 1 where none fits. All programs of a software stack are checked as if the MPI were
    injected: each would load it, and nothing else would change. Without --mpi, what is injected
    there now is checked.

    \b
    Examples:
      mpigraft check --image app.sif --mpi openmpi@5
      mpigraft check --image app.sif --mpi mpich -- python3 solver.py
      mpigraft check --image ./app --machine machine.json --mpi mpich --json
      mpigraft check /cvmfs/software.eessi.io/versions/2023.06
    """
    from mpigraft.core.serialize import document
    from mpigraft.report import (
        fit_lines,
        fit_screen,
        fits_screen,
        fits_table,
        print_screen,
    )
    from mpigraft.selection import cached_checks, check_fits, describe_others

    guest, job_words = guest_and_words(image, guest, words)
    if not guest:
        raise UsageError.of("check-incomplete")
    machine = Path(asked.value.machine) if asked.value.machine else None
    spec = replace(asked.value, mpi=_single_spec(specs or ()))
    if stack or _is_stack(guest):
        from mpigraft.cli.check_stack import check_stack_of

        if job_words or replace(spec, machine="", mpi="") != GraftSpec():
            raise UsageError.of("stack-option")
        return check_stack_of(image_of(guest), spec.mpi, machine, as_json=as_json, full=full)
    if not image:
        tell_image("check", guest)
    here = examine_machine(machine, [spec.mpi])
    typed = (*spec.words_of("check"), *(["--json"] if as_json else ()))
    request = replace(spec, guest=image_of(guest), words=job_words, typed=typed)
    mpis = chosen_mpis(spec.mpi, here)
    checked = cached_checks(request, here, mpis)
    if checked is None:
        with console(stderr=True).status("reading the guest"):
            checked = check_fits(request, here, mpis)
    others = checked.others
    instead = "" if checked.ok else describe_others(others.fit, others.fetch)
    if as_json:
        out(document(**as_document(checked)))
    else:
        one = (checked.tried[0], checked.own, instead)
        every = (checked.guest, checked.tried, checked.unread, instead)
        if full:
            out("\n".join(fit_lines(*one) if spec.mpi else fits_table(*every)))
        else:
            print_screen(fit_screen(*one) if spec.mpi else fits_screen(*every), console())
    if machine is None:
        _tell_limits(checked, here)
    return 0 if checked.ok else CheckFailed.exit_code


def _tell_limits(checked: FitChecks, here: Machine) -> None:
    fitting = {fit.mpi for fit in checked.tried if fit.ok}
    tell_machine_limits(here, (one for one in here.mpis if one.id in fitting))


def _is_stack(guest: str) -> bool:
    path = Path(image_of(guest))
    if not path.is_dir():
        return False
    from mpigraft.graft import is_stack

    return is_stack(path)


def _single_spec(specs: Sequence[str]) -> str:
    """Return the one that was named, if any. The last of several would answer for the others."""
    if len(specs) > 1:
        raise UsageError.of("mpi-given-twice", count=len(specs))
    return next(iter(specs), "")


def as_document(checked: FitChecks) -> CheckDocument:
    """Return the document of report/schemas/check.json."""
    from mpigraft.core.serialize import plain, row_of

    label = plain(checked.guest)
    del label["environment"]  # an image's may hold secrets, and it decides nothing here
    checks = [row_of(CheckRow, fit) for fit in checked.tried]
    return row_of(CheckDocument, checked, guest=label, checks=checks)
