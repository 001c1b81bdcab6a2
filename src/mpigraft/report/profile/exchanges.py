"""All-to-all exchanges of a recorded application, beside what a benchmark measures."""

from __future__ import annotations

from collections.abc import Sequence

from mpigraft.core.numbers import counted
from mpigraft.core.text import printable
from mpigraft.report.profile.text import percent, seconds, size, table
from mpigraft.report.screen import Screen
from mpigraft.report.table import Line
from mpigraft.trace import Exchange, Phase

END = 2**63  # of calls: those that a rank has
SHOWN = 5  # exchanges that are shown
OSU = ("osu_alltoallv", "", "", "0.0 %", "0.0 %", "1.00", "all alike", "0 s")
MEANINGS = (
    "rank    bytes that a rank sends in a call, on average",
    "empty   blocks of no bytes; silent: pairs of ranks that never send any",
    "skew    bytes of the rank that sends most, over the mean",
    "block   median and most bytes of the blocks that are not empty",
    "spread  between the ranks that compute least and most before a call",
)
UNEVEN = 1.1  # a skew that is more than rounding of block sizes
LATE = 0.1  # of the time of a call: less is no waiting
HEADS = ("routine", "calls", "rank", "empty", "silent", "skew", "block", "spread")


def exchange_screen(program: str, exchanges: Sequence[Exchange], phases: Sequence[Phase]) -> Screen:
    """Say in one screen how the exchanges differ from a benchmark's."""
    answer, *about = exchange_lines(program, exchanges)
    rest = [f"--full: what columns mean; {counted(len(phases), 'phase')} for `replay --phase`"]
    if not exchanges:
        return Screen([answer], rest=rest)
    one = exchanges[0]
    unlike = {
        "empty blocks": one.zeros,
        "ranks that send more than others": one.skew > UNEVEN,
        "ranks that come late": one.spread_s > LATE * one.time_s / one.calls,
    }
    named = " and ".join(what for what, differs in unlike.items() if differs) or "nothing else"
    lines: list[Line] = [[(line, "")] for line in about[1 : -1 - len(MEANINGS)]]
    return Screen([answer, f"The first has, unlike osu_alltoallv: {named}."], lines, rest=rest)


def exchange_lines(program: str, exchanges: Sequence[Exchange]) -> list[str]:
    """List a row for each exchange, the longest first, and what the columns mean."""
    if not exchanges:
        return [f"{printable(program)}: no all-to-all exchange in which every rank took part"]
    rows = [_row(one) for one in exchanges[:SHOWN]]
    first = exchanges[0]
    return [
        f"{printable(program)}: {counted(len(exchanges), 'all-to-all exchange')}, "
        f"{seconds(first.time_s)} of a rank in the first",
        "",
        *table("", HEADS, [*rows, OSU]).lines(),
        "",
        *MEANINGS,
    ]


def _row(one: Exchange) -> tuple[str, ...]:
    return (
        f"{one.routine} on {one.ranks}",
        str(one.calls),
        size(one.total / one.ranks),
        percent(one.zeros),
        percent(one.silent),
        f"{one.skew:.2f}",
        f"{size(one.block(0.5))} to {size(one.block(1))}",
        seconds(one.spread_s),
    )


def phase_lines(phases: Sequence[Phase]) -> list[str]:
    """Give the phases that `replay --phase` takes, with their time on rank 0."""
    rows = tuple((str(one.number), seconds(one.time_s), _calls(one)) for one in phases)
    return table("", ("phase", "time", "calls of rank 0"), rows).lines()


def _calls(phase: Phase) -> str:
    first, end = phase.calls[0]
    return f"{first} to the end" if end == END else f"{first} to {end - 1}"
