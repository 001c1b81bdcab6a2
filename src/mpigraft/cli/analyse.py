"""`mpigraft analyse`: how the all-to-alls of a recorded application differ from a benchmark's, and
which of the differences moves the ratio of two transports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NotRequired, TypedDict

import typer

from mpigraft.cli import bench, ladder
from mpigraft.cli.common import DryRun, Full, Json, console, find_nodes, option, out, store_of, tell
from mpigraft.cli.options import Here, Hostfile, Hosts, SshCommand, takes_request
from mpigraft.core.errors import UsageError
from mpigraft.request import Asked, CampaignSpec, asked_campaign

if TYPE_CHECKING:
    from mpigraft.cli.ladder import LadderKeys
    from mpigraft.trace import Exchange, Phase


class AnalysisDocument(TypedDict):
    """The all-to-all exchanges of a recorded application, the one that takes longest first."""

    exchanges: Sequence[Exchange]
    phases: Sequence[Phase]  # parts that can be replayed alone
    ladder: NotRequired[LadderKeys]  # of the longest exchange, if transports were measured


@takes_request(
    only=("mpi", "transport", "layout", "baseline", "rounds", "seed", "env"),
    read=asked_campaign,
    usual={"mpi": False, "transport": False, "layout": "all nodes, evenly", "rounds": False},
    texts={
        "layout": "Layout of the exchange's ranks.",
        "rounds": "Rounds to measure; 8 at least to decide.",
    },
)
def command(
    *,
    ctx: typer.Context,
    record: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Record of `mpigraft record -o`.", show_default=False),
    ],
    output: Annotated[
        Path | None,
        option(
            "FOLDER",
            "Write synthetic records of the longest exchange.",
            False,
            "-o",
            panel="Output",
        ),
    ] = None,
    asked: Asked[CampaignSpec],
    hosts: Hosts = "",
    hostfile: Hostfile = "",
    ssh_command: SshCommand = "",
    here: Here = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    full: Full = False,
) -> int:
    """Show how the all-to-alls of a recorded application differ from osu_alltoallv.

    They may have empty blocks, ranks that send more, other sizes, and ranks that come late.

    With --mpi or --transport it puts these into a synthetic exchange one by one, measures each step
    as `bench` does, and says which of them moves the ratio of the transports. -o keeps the steps'
    records in a folder.

    \b
    Examples:
      mpigraft analyse solver.record
      mpigraft analyse solver.record --mpi mpich --transport ofi --transport ucx
      mpigraft analyse solver.record -o steps
    """
    from mpigraft.report import ladder_lines, steps_lines
    from mpigraft.trace import find_exchanges, find_phases, read_record, read_record_file

    measuring = bool(asked.value.mpi or asked.value.transport)
    if not measuring and (dry_run or asked.given or hosts or hostfile or ssh_command or here):
        raise UsageError.of("analyse-what")
    file = read_record_file(record)
    read = read_record(file, record)
    exchanges, phases = find_exchanges(read), find_phases(read)
    if measuring and not exchanges:
        raise UsageError.of("analyse-no-exchange", path=record)
    measured: LadderKeys | None = None
    if measuring:
        from mpigraft.bench import JobPart

        nodes = find_nodes(hosts, hostfile, ssh_command)
        folder = (output or ladder.usual_folder(exchanges[0])).absolute()
        paths = ladder.write_steps(exchanges[0], folder)
        spec = ladder.spec_of(paths, ladder.layout_of(exchanges[0], nodes), asked)
        task = bench.Task(spec, JobPart(nodes), here or bool(hosts or hostfile), dry_run, full)
        store = store_of(ctx)
        identity = bench.measure(store, task)
        measured = ladder.judged(store, identity, paths) if identity else None
        if dry_run:
            return 0
    elif output is not None and exchanges:
        tell("\n".join(steps_lines(exchanges[0], ladder.write_steps(exchanges[0], output))))
    if as_json:
        from mpigraft.core.serialize import document

        keys = AnalysisDocument(exchanges=exchanges, phases=phases)
        if measured:
            keys["ladder"] = measured
        out(document(**keys))
        return 0
    _show(file.provenance.program or str(record), exchanges, phases, full=full)
    if measured:
        out("\n".join(["", *ladder_lines(measured)]))
    return 0


def _show(
    program: str, exchanges: Sequence[Exchange], phases: Sequence[Phase], *, full: bool
) -> None:
    from mpigraft.report import exchange_lines, exchange_screen, phase_lines, print_screen

    if full:
        out("\n".join([*exchange_lines(program, exchanges), "", *phase_lines(phases)]))
    else:
        print_screen(exchange_screen(program, exchanges, phases), console())
