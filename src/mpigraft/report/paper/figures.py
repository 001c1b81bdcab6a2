"""Figures for a paper, as files: hues are those of the page; marks, dashes and shades keep lines
apart in grey. Below them are their names and what was measured where, so that a figure can
be read without the text around it.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpigraft.core.env import redact
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.text import printable
from mpigraft.report.contents import ReportData
from mpigraft.report.html.document import colours
from mpigraft.report.paper.panels import PaperLine, paper_figures
from mpigraft.report.software import guest_words
from mpigraft.report.wording import labels

MARKS = "s^DvPX<>*d"  # of lines, by place; the baseline's is round
SHADES = (0.0, -0.5, 0.3)  # neighbours differ in grey as well
WIDTHS = {"page": 7.16, "column": 3.5}  # in inches: IEEE's; Elsevier's and ACM's are wider


def render_figures(data: ReportData, width: str = "page") -> Iterator[tuple[str, bytes]]:
    """(file name, content) of each figure, as SVG and as PDF. Raises UsageError for a width that is
    none of WIDTHS, MissingError where matplotlib is not installed: both at once."""
    if width not in WIDTHS:
        raise UsageError.unknown("word-unknown", width, WIDTHS, what="--figure-width")
    try:
        from mpigraft.report.paper.drawing import draw
    except ImportError as error:
        raise MissingError.of("figures-missing") from error
    styles = line_styles(data)

    def files() -> Iterator[tuple[str, bytes]]:
        for figure in paper_figures(data):
            columns = len(figure.panels) // 2 if len(figure.panels) > 2 else 2
            if width == "column":
                columns = 1
            kinds = ("svg", "pdf")
            for kind, content in zip(
                kinds, draw(figure, styles, WIDTHS[width], columns), strict=True
            ):
                yield f"{figure.name}.{kind}", content

    return files()


def line_styles(data: ReportData) -> dict[str, PaperLine]:
    """Return how each configuration is drawn, the baseline first."""
    baseline = data.comparison.baseline
    names = sorted({g.configuration for g in data.comparison.groups} | {baseline})
    short, page = labels.short(names, guest_words(data)), colours()
    styles = {
        baseline: PaperLine(_text(short[baseline]) + ", baseline", page["ink"], "", "o", base=True)
    }
    hues = {name: hue for name, (hue, _) in labels.styles(names).items() if name != baseline}
    for place, (name, hue) in enumerate(hues.items()):
        ink = _shade(page[f"hue{hue}"], SHADES[place % len(SHADES)])
        mark = MARKS[place % len(MARKS)]
        styles[name] = PaperLine(_text(short[name]), ink, labels.dash(place + 1), mark)
    return styles


def _text(words: str) -> str:
    return redact(printable(words))


def _shade(colour: str, shade: float) -> str:
    """Mix a colour with white, or with black where the shade is negative."""
    to, part = (255 if shade > 0 else 0), abs(shade)
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(one + (to - one) * part):02x}" for one in parts)
