"""Figures for a paper, as files: colours and dashes are those of the page.

Names are at the ends of curves; below them is what was measured where, so that a figure can be
read without the text around it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpigraft.core.env import redact
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.text import printable
from mpigraft.report.contents import ReportData
from mpigraft.report.html.document import colours
from mpigraft.report.paper.panels import paper_figures
from mpigraft.report.wording import labels

WIDTHS = {"page": 7.16, "column": 3.5}  # in inches: IEEE's; Elsevier's and ACM's are wider


def render_figures(data: ReportData, width: str = "page") -> Iterator[tuple[str, bytes]]:
    """(file name, content) of each figure, as SVG and as PDF. Raises UsageError for a width that is
    none of WIDTHS, MissingError where matplotlib is not installed: both at once."""
    if width not in WIDTHS:
        raise UsageError.of("figure-width-unknown", width=width)
    try:
        from mpigraft.report.paper.drawing import Style, draw
    except ImportError as error:
        raise MissingError.of("figures-missing") from error
    names, inks, dashes = _style(data)
    style = Style(names, inks, dashes)

    def files() -> Iterator[tuple[str, bytes]]:
        for figure in paper_figures(data):
            columns = len(figure.panels) // 2 if len(figure.panels) > 2 else 2
            if width == "column":
                columns = 1
            kinds = ("svg", "pdf")
            for kind, content in zip(
                kinds, draw(figure, style, WIDTHS[width], columns), strict=True
            ):
                yield f"{figure.name}.{kind}", content

    return files()


def _style(data: ReportData) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    baseline = data.comparison.baseline
    names = sorted({g.configuration for g in data.comparison.groups} | {baseline})
    short = {n: redact(printable(label)) for n, label in labels.short(names).items()}
    styles, page = labels.styles(names), colours()
    inks = {n: page["ink" if n == baseline else f"hue{hue}"] for n, (hue, _) in styles.items()}
    dashes = {name: labels.dash(v) for name, (_, v) in styles.items()}
    return short, inks, dashes
