"""`mpigraft replay`: make the MPI calls of a record on an MPI of this machine."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli import job
from mpigraft.cli.common import DryRun, Json, examine_machine, flag, option, tell
from mpigraft.cli.options import takes_request
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.request import Asked, RunSpec

if TYPE_CHECKING:
    from mpigraft.core.model import Machine

NOT_HERE = (
    "image", "stack", "programs", "ranks", "engine", "engine_option", "replace", "bind", "stdin",
)  # fmt: skip
MOST_GAPS = 1e6  # that mpigraft-replay takes


@takes_request(*NOT_HERE)
def command(
    *,
    record: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Record of `mpigraft record -o`.", show_default=False),
    ],
    gaps: Annotated[
        str | None,
        option(
            "FACTOR",
            "Factor for the time between calls, or none.",
            "1; none with --only",
            panel="What to run",
        ),
    ] = None,
    check: Annotated[
        bool, flag("Check the data that arrives, off the clock.", "--check", panel="What to run")
    ] = False,
    only: Annotated[
        str | None,
        option(
            "ROUTINES",
            "Make these calls alone: Alltoallv, p2p, onesided.",
            "all",
            panel="What to run",
        ),
    ] = None,
    phase: Annotated[
        int,
        option(
            "N",
            "Make this phase's calls alone; `analyse` lists phases.",
            "all",
            min=0,
            panel="What to run",
        ),
    ] = 0,
    as_json: Json = False,
    asked: Asked[RunSpec],
    dry_run: DryRun = False,
) -> int:
    """Make the MPI calls of a record once, and show the time of each routine beside the program's.

    \b
    Examples:
      mpigraft replay solver.record
      mpigraft replay solver.record --mpi mpich --gaps none --check
      mpigraft replay solver.record --phase 2
      mpigraft replay solver.record --only Alltoallv --transport ofi-lnx
    """
    from dataclasses import replace

    from mpigraft.trace import Prepared, read_record_file

    file = read_record_file(record)
    words = ["--gaps", _factor(gaps)] if gaps is not None else []
    words += ["--check"] if check else []
    words += ["--only", file.match_routines(only, record)] if only is not None else []
    words += [] if as_json else ["--table"]
    prepared = str(Prepared(file.digest, phase).keep(file, record))
    asked = asked.also(ranks=len(file.parts), stdin="none")
    requested = job.requested_job(asked, ["mpigraft-replay", prepared, *words])
    machine = examine_machine(mpis=requested.mpi_places)
    spec = _as_recorded(requested, machine, file.provenance.mpi)
    program = _program(spec, machine, file.provenance.abi)
    planned = job.decide_job(replace(spec, program=(program, prepared, *words)), machine=machine)
    if dry_run:
        return job.print_script(planned)
    for note in file.provenance.notes:
        tell(f"mpigraft: {record}: {note}")
    return job.prove_and_start(planned)


def _factor(gaps: str) -> str:
    """Return the factor as it was typed. Raises UsageError for anything else."""
    try:
        good = gaps == "none" or 0 <= float(gaps) <= MOST_GAPS
    except ValueError:
        good = False
    if not good:
        raise UsageError.of("replay-gaps", gaps=gaps, most=f"{MOST_GAPS:.0f}")
    return gaps


def _as_recorded(spec: RunSpec, machine: Machine, configuration: str) -> RunSpec:
    """Request the recorded MPI, if it is here and the user requests none: its times are compared
    with the program's."""
    from dataclasses import replace

    mpi = configuration.partition("/")[0]
    here = any(one.usable and one.id == mpi for one in machine.mpis)
    return replace(spec, mpi=mpi) if here and not any(spec.mpi_names) else spec


def _program(spec: RunSpec, machine: Machine, recorded: str) -> str:
    """Return the program for the ABI of the MPI that was requested; where several MPIs may be
    taken, of one with the ABI that was recorded. Raises MissingError."""
    from mpigraft.native import Natives
    from mpigraft.selection import select_mpis

    abis = [recorded]
    for name in spec.mpi_names:
        try:
            mpis = select_mpis((name,) if name else (), machine.mpis)
        except MissingError:  # the plan says so, unless another one of a site's list is here
            continue
        abis = [str(mpi.abi) for mpi in mpis if mpi.usable]
        break
    abi = recorded if recorded in abis or not abis else abis[0]
    return str(Natives.replay_for(abi, platform.machine()))
