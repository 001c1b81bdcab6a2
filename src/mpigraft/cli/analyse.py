"""`mpigraft analyse`: how the all-to-alls of a recorded application differ from a benchmark's."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import Json, option, out, tell
from mpigraft.core.errors import MissingError

if TYPE_CHECKING:
    from mpigraft.trace.record import Exchange


def command(
    record: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Record of `mpigraft record -o`.", show_default=False),
    ],
    output: Annotated[
        Path | None,
        option("FOLDER", "Write synthetic records of the longest exchange.", False, "-o"),
    ] = None,
    as_json: Json = False,
) -> int:
    """Show how the all-to-all exchanges of a recorded application differ from osu_alltoallv: empty
    blocks, ranks that send more, sizes, and ranks that come late.

    With -o it writes records of the exchange that takes longest, from the benchmark's even one to
    the application's own, each with one property more: a campaign over them says which property
    moves the ratio of two transports.

    \b
    Examples:
      mpigraft analyse solver.record
      mpigraft analyse solver.record -o steps
    """
    from mpigraft.report.profile import exchange_lines, phase_lines
    from mpigraft.trace.record import (
        find_exchanges,
        find_phases,
        read_record,
        read_record_file,
    )

    file = read_record_file(record)
    read = read_record(file, record)
    exchanges, phases = find_exchanges(read), find_phases(read)
    if as_json:
        from mpigraft.core.serialize import document

        rows = [asdict(one) for one in exchanges], [asdict(one) for one in phases]
        out(document(exchanges=rows[0], phases=rows[1]))
    else:
        out("\n".join(exchange_lines(file.provenance.program or str(record), exchanges)))
        out("\n".join(["", *phase_lines(phases)]))
    if output is not None and exchanges:
        _write_steps(exchanges[0], output)
    return 0


def _write_steps(exchange: Exchange, folder: Path) -> None:
    """Write the synthetic records and say how to measure them. Raises MissingError."""
    from mpigraft.core.write import write_whole
    from mpigraft.trace.record import make_ladder

    words = ["mpigraft", "bench", "--layout", f"1x{exchange.ranks}"]
    lines = ["", f"{exchange.routine} on {exchange.ranks} ranks, a step for each property:"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for step in make_ladder(exchange):
            path = folder / f"{step.name}.record"
            write_whole(path, step.data)
            words += ["--benchmark", f"app:{path}"]
            lines.append(f"  {path}: {step.what}")
    except OSError as error:
        raise MissingError.of(
            "record-unwritable", path=folder, reason=error.strerror or error
        ) from error
    tell("\n".join([*lines, "Measure them with two transports:", f"  {shlex.join(words)}"]))
