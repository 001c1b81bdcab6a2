"""`mpigraft compare`: which configuration is faster, where, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli import common
from mpigraft.core.errors import UsageError

if TYPE_CHECKING:
    from mpigraft.core.model import AcrossRule, Comparison
    from mpigraft.store import Store

GATES = ("slower", "slower-cell")


def command(
    ctx: typer.Context,
    campaign: common.Campaign = None,
    new: Annotated[
        str,
        typer.Argument(
            metavar="NEW",
            help="A later campaign: compare it with the first one.",
            show_default=False,
        ),
    ] = "",
    baseline: common.Baseline = None,
    margin: common.Margin = "3%",
    json: common.Json = False,
    markdown: Annotated[
        bool, common.flag("Print Markdown tables.", "--markdown", panel="Output")
    ] = False,
    full: common.Full = False,
    across: Annotated[
        str,
        common.option(
            "WHAT",
            "Compare these with the baseline: configurations, settings, layouts. A layout is ranks "
            "x threads. An option of benchmarks, such as halo: its values.",
            "settings if any were measured and no baseline is named, else configurations",
        ),
    ] = "",
    match: Annotated[
        list[str] | None,
        common.option(
            "OLD=NEW", "With two campaigns: compare these configurations; repeatable.", rare=True
        ),
    ] = None,
    old_store: Annotated[
        Path | None,
        common.option(
            "FOLDER", "With two campaigns: folder of the first one's results.", False, rare=True
        ),
    ] = None,
    partial: Annotated[
        bool,
        common.flag("Count imported tables that may be cut as whole.", "--partial", rare=True),
    ] = False,
    fail_on: Annotated[
        str | None,
        common.option(
            "WHAT",
            "slower: exit 1 when a whole curve is slower. It is corrected for the number of "
            "curves. slower-cell: when any single size is slower, which chance alone does in one "
            "campaign of six.",
        ),
    ] = None,
) -> None:
    """Compare the configurations of a campaign with its baseline, or two campaigns.

    Two campaigns are compared configuration by configuration, unpaired, with the list of what
    changed between them.

    \b
    Examples:
      mpigraft compare --baseline mpich@5.0.2/ucx --fail-on slower
      mpigraft compare --across layouts --baseline 1x8
      mpigraft compare --across halo --baseline packed
      mpigraft compare before-update after-update --fail-on slower
    """
    from mpigraft.core.model import AcrossRule
    from mpigraft.report import (
        load_report,
        print_answer,
        print_report,
        render_json,
        render_markdown,
    )
    from mpigraft.store import Store
    from mpigraft.trace import is_profile

    for path in (campaign, new):
        if path and is_profile(Path(path)):
            raise UsageError.of("compare-profiles", path=path)
    if json and markdown:
        raise UsageError.of("formats-exclude")
    common.refuse_unknown_gate(fail_on, GATES)
    if new:
        if baseline or across not in ("", "configurations"):
            raise UsageError.of("campaigns-two-exclude")
        show_across(
            (Store(old_store) if old_store else common.store_of(ctx), common.store_of(ctx)),
            (campaign or "", new),
            AcrossRule(parse_margin(margin), chosen=tuple(match or ()), partial=partial),
            Form(json, markdown, full, fail_on),
        )
        return
    if match or old_store:
        raise UsageError.of("campaigns-two-needed")
    data = load_report(
        common.store_of(ctx),
        campaign,
        baseline=baseline,
        margin=parse_margin(margin),
        across=across,
        partial=partial,
    )
    if json:
        common.out(render_json(data))
    elif markdown:
        common.out(render_markdown(data, full=full))
    elif full:
        print_report(data, common.console())
    else:
        print_answer(data, common.console())
    _judge(data.comparison, fail_on)


@dataclass(frozen=True, slots=True)
class Form:
    """What to print, and what to fail on."""

    json: bool
    markdown: bool
    full: bool
    fail_on: str | None


def show_across(
    stores: tuple[Store, Store],
    names: tuple[str, str],
    rule: AcrossRule,
    form: Form,
) -> None:
    """Print the second campaign compared with the first."""
    from mpigraft.report import Across

    data = Across.load(stores, names, rule)
    if form.json:
        common.out(data.json())
    elif form.markdown:
        common.out(data.markdown(brief=not form.full))
    else:
        data.show(common.console(), full=form.full)
    _judge(data.comparison, form.fail_on)


def _judge(comparison: Comparison, fail_on: str | None) -> None:
    """Raise CheckFailed where `fail_on` says so."""
    from mpigraft.report import refuse_slower

    if fail_on:
        for line in refuse_slower(comparison, cells=fail_on == "slower-cell"):
            common.console(stderr=True).print(line, soft_wrap=True)


def show(store: Store, campaign: str, *, full: bool = False) -> None:
    """Print one campaign, in short or all of it: what `bench` ends with."""
    from mpigraft.report import load_report, print_answer, print_report

    (print_report if full else print_answer)(load_report(store, campaign), common.console())


def parse_margin(text: str) -> float:
    """`3%`, `3 %` or `0.03` as a fraction. A bare 3 could be either, so it is refused."""
    number, percent, tail = text.partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if tail.strip() or not 0 < value < 1:
        raise UsageError.of("margin-invalid", text=text)
    return value
