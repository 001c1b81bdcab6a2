"""`mpigraft report`: one self-contained HTML file that opens offline."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from mpigraft.cli import common
from mpigraft.cli.compare import parse_margin
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.write import make_folder, write_whole


def command(
    ctx: typer.Context,
    campaign: common.Campaign = None,
    output: Annotated[Path, common.option("FILE", "File to write.", True, "--output", "-o")] = Path(
        "report.html"
    ),
    baseline: common.Baseline = None,
    margin: common.Margin = "3%",
    figures: Annotated[
        Path | None,
        common.option("DIR", "Folder for the figures as SVG and PDF, for a paper."),
    ] = None,
    figure_width: Annotated[
        str,
        common.option("WIDTH", "Of these figures: page (two columns, 182 mm) or column (89 mm)."),
    ] = "page",
    public: Annotated[
        bool,
        common.flag("Leave out folders, and names of hosts and users, to publish it.", "--public"),
    ] = False,
) -> None:
    """Write a campaign as one HTML file: curves, verdicts, evidence and provenance.

    \b
    Examples:
      mpigraft report -o report.html
      mpigraft report --public -o published.html
      mpigraft report --figures figures
      mpigraft report --figures figures --figure-width column
    """
    from mpigraft.report import load_report, render_figures, render_html

    check(output)
    if figures:
        check_folder(figures)
    else:
        common.refuse_alone("--figures", figure_width=figure_width != "page")
    store = common.store_of(ctx)
    data = load_report(
        store, campaign, baseline=baseline, margin=parse_margin(margin), across="configurations"
    )
    drawn = render_figures(data, figure_width) if figures else ()
    write(output, render_html(data, public=public))
    common.console(stderr=True).print(f"wrote {output}", soft_wrap=True)
    if figures:
        count = write_figures(figures, drawn)
        common.console(stderr=True).print(f"wrote {count} files in {figures}", soft_wrap=True)


def check_folder(folder: Path) -> None:
    """Refuse a folder that is a file, or whose parent is missing. Raises UsageError."""
    if folder.exists() and not folder.is_dir():
        raise UsageError.of("output-not-folder", output=folder)
    if not folder.absolute().parent.is_dir():
        raise UsageError.of("folder-missing", folder=folder.absolute().parent)


def write_figures(folder: Path, files: Iterable[tuple[str, bytes]]) -> int:
    """Write each figure whole; their number. Raises MissingError for what cannot be written."""
    count = 0
    try:
        make_folder(folder)
        for name, content in files:
            write_whole(folder / name, content)
            count += 1
    except OSError as error:
        reason = error.strerror or error
        raise MissingError.of("report-unwritable", path=folder, reason=reason) from error
    return count


def check(output: Path, name: str = "report.html") -> None:
    """Refuse a path that can never be written, before the work is done. Raises UsageError."""
    if output.is_dir():
        raise UsageError.of("output-is-folder", output=output, example=output / name)
    if output.exists() and not output.is_file():
        raise UsageError.of("output-not-plain", output=output)
    if not output.parent.is_dir():
        raise UsageError.of("folder-missing", folder=output.parent)


def write(output: Path, text: str) -> None:
    """Write the page whole or not at all. Raises MissingError when the file cannot be written (no
    permission, disk full)."""
    try:
        write_whole(output, text.encode())
    except OSError as error:
        raise MissingError.of(
            "report-unwritable", path=output, reason=error.strerror or error
        ) from error
