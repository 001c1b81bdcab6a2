"""`mpigraft report`: one self-contained HTML file that opens offline."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from mpigraft.cli import common
from mpigraft.cli.compare import parse_margin
from mpigraft.errors import MissingError, UsageError


def command(
    ctx: typer.Context,
    campaign: Annotated[
        str | None,
        typer.Argument(help="Id, its beginning, or name of a campaign.", show_default="the latest"),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write.")
    ] = Path("report.html"),
    baseline: common.Baseline = None,
    margin: common.Margin = "3%",
) -> None:
    """Write a campaign as one HTML file: curves, verdicts, evidence and provenance.

    Example: mpigraft report -o report.html
    """
    from mpigraft.report import html, load
    from mpigraft.store import Store

    check(output)
    store = Store(common.settings(ctx).store)
    data = load(store, campaign, baseline=baseline, margin=parse_margin(margin))
    write(output, html.render(data))
    common.console(stderr=True).print(f"wrote {output}", soft_wrap=True)


def check(output: Path) -> None:
    """Refuse what can never be written, before the work is done."""
    if output.is_dir():
        raise UsageError(f"{output} is a folder", mend=f"name a file: -o {output / 'report.html'}")
    if output.exists() and not output.is_file():
        raise UsageError(f"{output} is not a plain file", mend="name another file")
    if not output.parent.is_dir():
        raise UsageError(
            f"the folder {output.parent} is not there", mend="make it, or name another"
        )


def write(output: Path, text: str) -> None:
    """Write the whole file or nothing: a reader never meets half a report.

    A link is followed, so that the file it points at changes. Raises MissingError when the
    file cannot be written (no permission, disk full).
    """
    target = output.resolve()
    fresh: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        fresh = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        fresh.replace(target)
    except OSError as error:
        if fresh is not None:
            with contextlib.suppress(OSError):
                fresh.unlink()
        raise MissingError(
            f"{output} cannot be written: {error.strerror or error}",
            mend="name another file with -o, or make room",
        ) from error


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
