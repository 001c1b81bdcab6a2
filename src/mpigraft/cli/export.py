"""`mpigraft export`: a campaign as a table for other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from mpigraft.cli import common
from mpigraft.cli.report import check
from mpigraft.cli.streams import OutputLost
from mpigraft.core.errors import MissingError, UsageError

FORMATS = ("csv", "json", "parquet")


def command(
    ctx: typer.Context,
    campaign: common.Campaign = None,
    output: Annotated[
        Path | None, common.option("FILE", "File to write.", "standard output", "--output", "-o")
    ] = None,
    form: Annotated[
        str,
        common.option("F", "csv, json or parquet.", "by the file's suffix, else csv", "--format"),
    ] = "",
) -> None:
    """Write a campaign as a table: a row for each value, with its unit and where it comes from.

    `mpigraft import FILE` takes it into another store as it was. Parquet needs pyarrow.

    \b
    Examples:
      mpigraft export nightly -o nightly.csv
    """
    from mpigraft.bench import write_export
    from mpigraft.core.numbers import counted
    from mpigraft.core.write import writing_whole

    chosen = form or (output.suffix[1:].lower() if output else "") or "csv"
    if chosen not in FORMATS:
        raise UsageError.unknown("export-format", chosen, FORMATS)
    store = common.store_of(ctx)
    record = store.campaign(campaign)
    if output is None:
        if sys.stdout.isatty() and chosen == "parquet":
            raise UsageError.of("export-terminal")
        try:
            written = write_export(store, record, chosen, sys.stdout.buffer)
            sys.stdout.flush()
        except OSError as error:  # bytes go past streams.Results
            raise OutputLost(error) from error
    else:
        check(output)
        try:
            with writing_whole(output) as file:
                written = write_export(store, record, chosen, file)
        except OSError as error:
            raise MissingError.of(
                "export-unwritable", path=output, reason=error.strerror or error
            ) from error
        launches = counted(written.launches, "launch")
        common.tell(f"wrote {output}: {counted(written.values, 'value')} of {launches}")
    if written.outputs:
        outputs = counted(written.outputs, "output")
        common.tell(f"{outputs} not in it: they stay in {store.folder}, and `bundle` packs them")
    common.tell_unread(store)
