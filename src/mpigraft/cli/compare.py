"""`mpigraft compare`: which configuration is faster, where, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli import common
from mpigraft.errors import AnswerIsNo, UsageError

if TYPE_CHECKING:
    from mpigraft.model import CellGroup, Comparison
    from mpigraft.store import Store

NAMED = 12  # slower curves and cells that a message lists; the rest are counted


def command(
    ctx: typer.Context,
    campaign: Annotated[
        str | None,
        typer.Argument(help="Id, its beginning, or name of a campaign.", show_default="the latest"),
    ] = None,
    baseline: common.Baseline = None,
    margin: common.Margin = "3%",
    json: Annotated[bool, typer.Option("--json", help="Print a JSON document.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown tables.")] = False,
    brief: Annotated[
        bool, typer.Option("--brief", help="Leave out the tables of each size.")
    ] = False,
    across: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What is held against a baseline: configurations, or layouts (ranks x threads).",
        ),
    ] = "configurations",
    fail_on: Annotated[
        str | None,
        typer.Option(metavar="slower", help="Exit 1 when a curve or a size is slower."),
    ] = None,
) -> None:
    """Compare the configurations of a campaign with its baseline.

    \b
    Examples:
      mpigraft compare --baseline mpich@5.0.2/ucx --fail-on slower
      mpigraft compare --across layouts --baseline 1x8
    """
    from mpigraft.report import json as as_json
    from mpigraft.report import load, terminal
    from mpigraft.report import markdown as as_markdown
    from mpigraft.store import Store

    if json and markdown:
        raise UsageError("--json and --markdown are two forms of one answer", mend="give one")
    if fail_on not in (None, "slower"):
        raise UsageError(f"--fail-on {fail_on!r} is unknown", mend="--fail-on slower")
    if across not in ("configurations", "layouts"):
        raise UsageError(f"--across {across!r} is unknown", mend="configurations or layouts")
    store = Store(common.settings(ctx).store)
    data = load(
        store,
        campaign,
        baseline=baseline,
        margin=parse_margin(margin),
        layouts=across == "layouts",
    )
    if json:
        common.out(as_json.render(data))
    elif markdown:
        common.out(as_markdown.render(data))
    else:
        terminal.show(data, common.console(), brief=brief)
    if fail_on:
        refuse_slower(data.comparison)


def show(store: Store, campaign: str) -> None:
    """Print one campaign in short: what `bench` ends with."""
    from mpigraft.report import load, terminal

    terminal.show(load(store, campaign), common.console(), brief=True)


def parse_margin(text: str) -> float:
    """`3%`, `3 %` or `0.03` as a fraction. A bare 3 could be either, so it is refused."""
    number, percent, tail = text.partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if tail.strip() or not 0 < value < 1:
        raise UsageError(f"--margin {text!r} is no margin", mend="for example 3% or 0.03")
    return value


def refuse_slower(comparison: Comparison) -> None:
    """Raise AnswerIsNo when the joint test over a curve, or a cell's interval, says slower."""
    from mpigraft.model import Verdict

    curves = [g for g in comparison.groups if g.curve is Verdict.SLOWER]
    cells = [g for g in comparison.groups if any(c.verdict is Verdict.SLOWER for c in g.cells)]
    if not curves and not cells:
        _tell_open(comparison)
        return
    lines = [_curve(g) for g in curves] + [_cells(g) for g in cells]
    more = len(lines) - NAMED
    listed = lines[:NAMED] + ([f"and {more} more"] if more > 0 else [])
    raise AnswerIsNo(
        "\n  ".join([f"slower than {comparison.baseline}:", *listed]),
        why="a curve is called by the joint test over its sizes, a size by its own interval: "
        "with many sizes a few single ones are called by chance",
        mend="more rounds narrow the intervals; a curve is the stronger sign",
    )


def _tell_open(comparison: Comparison) -> None:
    """Nothing is slower; say on stderr how much of that is not known rather than fine."""
    from mpigraft.model import Verdict

    cells = [c for g in comparison.groups for c in g.cells]
    unknown = sum(c.verdict is Verdict.INCONCLUSIVE for c in cells)
    if unknown:
        text = f"nothing is called slower, but {unknown} of {len(cells)} cells are inconclusive"
        common.console(stderr=True).print(text, soft_wrap=True)


def _curve(group: CellGroup) -> str:
    from mpigraft.report import words

    over = f"{words.ratio(group.pooled)} {words.interval(group.pooled_low, group.pooled_high)}"
    return f"{_where(group)}: the curve, ratio {over}"


def _cells(group: CellGroup) -> str:
    from mpigraft.model import Verdict
    from mpigraft.report import words

    slower = [
        f"{words.size(c.size)} ({words.ratio(c.ratio)})"
        for c in group.cells
        if c.verdict is Verdict.SLOWER
    ]
    return f"{_where(group)}: {', '.join(slower)}"


def _where(group: CellGroup) -> str:
    return f"{group.configuration} on {group.benchmark} ({group.layout})"
