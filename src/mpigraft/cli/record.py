"""`mpigraft record`: run a program and write what its ranks call of MPI, for replays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mpigraft.cli import job
from mpigraft.cli.common import DryRun, option, tell
from mpigraft.cli.options import takes_request
from mpigraft.cli.profile import no_return, refuse_place
from mpigraft.core.errors import MissingError, MpigraftError, UsageError
from mpigraft.knowledge import Given, Rules
from mpigraft.request import Asked, RunSpec

if TYPE_CHECKING:
    from mpigraft.run import Job

CONTEXT = job.CONTEXT
MIB = 1 << 20
MOST_BUDGET = 4096 * MIB  # that ranks take


@takes_request()
def command(
    *,
    program: job.Program,
    output: Annotated[
        Path,
        option("FILE", "Where the record goes.", "app.record", "--output", "-o", panel="Output"),
    ] = Path("app.record"),
    budget: Annotated[
        str,
        option("SIZE", "Memory of a rank for its record: 256MiB.", panel="Output", rare=True),
    ] = "64MiB",
    asked: Asked[RunSpec],
    dry_run: DryRun = False,
) -> int:
    """Run a program as `mpigraft run` does, and write what its ranks call of MPI.

    The program's output, exit code and signals pass through unchanged. The record is written when
    the program has ended with MPI_Finalize or MPI_Abort.

    \b
    Examples:
      mpigraft record -n 8 -o solver.record -- ./solver input.dat
      mpigraft replay solver.record
    """

    refuse_place(output)
    tracing = ("record", f"budget={budget_mib(budget)}")
    planned = job.decide_job(job.requested_job(asked, program, "record"), tracing)
    if dry_run:
        return job.print_script(planned)
    code, data = job.prove_and_collect(planned, lambda folder, _: _collect(planned, folder))
    if data is None:
        return code or MissingError.exit_code
    from mpigraft.core.write import write_whole

    try:
        write_whole(output, data)
    except OSError as error:
        missing = MissingError.of("profile-unwritable", path=output, reason=error.strerror)
        tell(f"mpigraft: {missing}")
        return code or MissingError.exit_code
    tell(f"mpigraft: the record is in {output}: {len(data)} bytes")
    return code


def budget_mib(text: str) -> int:
    """Read --budget, in MiB. Raises UsageError."""
    rules = Rules(size=True, most=MOST_BUDGET, example='"256MiB"')
    given = Given("budget", text, int, rules, named="--budget")
    budget = int(given.read())
    if budget < MIB:
        raise UsageError.of(
            "value-range", place=given.named, value=budget, least=f"from {MIB:,}", most=MOST_BUDGET
        )
    return -(-budget // MIB)


def _collect(planned: Job, folder: Path) -> bytes | None:
    """Make the file of what ranks wrote, if they did; the program's exit code is its own."""
    from dataclasses import replace

    from mpigraft.core.clock import utc_now
    from mpigraft.trace import Provenance, RecordFile, collect_ranks, read_record, write_record

    configuration = planned.configuration
    provenance = Provenance(
        program=" ".join(planned.spec.program),
        mpi=configuration.id,
        abi=str(configuration.mpi.abi) if configuration.mpi else "ompi",
        date=utc_now(),
    )
    try:
        parts, others = collect_ranks(folder, planned.layout.ranks)
        if not parts:
            raise _no_record(folder, planned.spec.program[0])
        record = read_record(RecordFile(parts, provenance), folder)
    except (MpigraftError, UsageError) as error:
        tell(f"mpigraft: {error}")
        return None
    notes = (*record.notes(), *others)
    sizes = record.totals()
    tell(
        f"mpigraft: {record.size} ranks called MPI {sizes['events']} times; the record has "
        f"{sizes['nodes']} entries, {sizes['signatures']} of them different, and how they repeat: "
        "an entry is a call, or the end of a rank"
    )
    for note in notes:
        tell(f"mpigraft: {note}")
    return write_record(parts, replace(provenance, notes=notes))


def _no_record(folder: Path, program: str) -> MissingError:
    """Return why there is none, by what ranks counted."""
    from mpigraft.trace import read_counts

    entered = sum(len(ranks) for ranks in read_counts(folder).values())
    if entered:
        return MissingError.of("record-unfinished", program=program, ranks=entered)
    return no_return(folder, program) or MissingError.of("record-nothing", program=program)
