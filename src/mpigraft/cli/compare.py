"""`mpigraft compare`: which configuration is faster, where, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli import common
from mpigraft.errors import AnswerIsNo, UsageError

if TYPE_CHECKING:
    from mpigraft.model import CellGroup, Comparison
    from mpigraft.store import Store

GATES = ("slower", "slower-cell")
CURVE_WHY = (
    "a curve is called by the joint test over its sizes, corrected for the campaign's curves, and "
    "by the interval of its pooled ratio"
)
NAMED = 12  # lines that a message lists; the rest are counted


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
        typer.Option(
            metavar="|".join(GATES),
            help="Exit 1 when a whole curve is slower, corrected for the number of curves; or when "
            "any single size is, which chance alone does in one campaign of six.",
        ),
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
    if fail_on not in (None, *GATES):
        raise UsageError(f"--fail-on {fail_on!r} is unknown", mend=" or ".join(GATES))
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
        refuse_slower(data.comparison, cells=fail_on == "slower-cell")


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


def refuse_slower(comparison: Comparison, *, cells: bool = False) -> None:
    """Raise AnswerIsNo when a curve is slower; with `cells` when a single size is as well."""
    from mpigraft.model import Verdict
    from mpigraft.report.sections import counted

    groups = counted(comparison)
    lines = [_curve(g) for g in groups if g.curve is Verdict.SLOWER]
    if cells:
        slower = [g for g in groups if any(c.verdict is Verdict.SLOWER for c in g.cells)]
        lines += [_cells(g) for g in slower]
    if not lines:
        _print_open(comparison, cells=cells)
        return
    more = len(lines) - NAMED
    listed = lines[:NAMED] + ([f"and {more} more"] if more > 0 else [])
    raise AnswerIsNo(
        "\n  ".join([f"slower than {comparison.baseline}:", *listed]),
        why=_chance(comparison) if cells else CURVE_WHY,
        mend="--fail-on slower asks for whole curves, which are the stronger sign" if cells else "",
    )


def _print_open(comparison: Comparison, *, cells: bool) -> None:
    """Nothing is slower; say on stderr how much of that is not known rather than fine."""
    from mpigraft.model import Verdict
    from mpigraft.report.sections import counted
    from mpigraft.summary import mixed

    groups = counted(comparison)
    what = "cell" if cells else "curve"
    every = [c.verdict for g in groups for c in g.cells] if cells else [g.curve for g in groups]
    lines = [f"{_where(g)}: {both}" for g in groups if not cells and (both := mixed(g))]
    if unknown := sum(verdict is Verdict.INCONCLUSIVE for verdict in every):
        are = "is" if unknown == 1 else "are"
        lines.insert(
            0, f"no {what} is slower, but {unknown} of {len(every)} {what}s {are} inconclusive"
        )
    for line in lines:
        common.console(stderr=True).print(line, soft_wrap=True, markup=False)


def _chance(comparison: Comparison) -> str:
    from mpigraft.report.sections import tally

    return f"a size is called by its own interval: {tally(comparison)}"


def _curve(group: CellGroup) -> str:
    from mpigraft.report import words

    over = f"{words.ratio(group.pooled)} {words.interval(group.pooled_low, group.pooled_high)}"
    chance = "" if group.curve_p is None else f", p {group.curve_p:.2g}"
    return f"{_where(group)}: the curve, ratio {over}{chance}"


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
