"""The steps of an exchange and their ratios, as text."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from mpigraft.core.numbers import counted
from mpigraft.report.profile.text import table
from mpigraft.trace import Exchange, make_ladder

HEADS = ("step", "ratio", "95 %", "change", "95 %", "p", "")


def ladder_lines(document: Mapping[str, Any]) -> list[str]:
    """List a table for each configuration against the baseline, and first which steps move it."""
    lines: list[str] = []
    for name, rows in groupby(document["steps"], key=lambda row: str(row["configuration"])):
        every = [*rows]
        rows_of = table("", HEADS, map(_row, every))
        lines += [_answer(every), "", f"{name} over {document['baseline']}: time in Alltoallv"]
        lines += [*rows_of.lines(), ""]
    if not lines:
        return ["one configuration has values: there is no ratio"]
    return [*lines, "A ratio below 1: faster than the baseline. change: this ratio over that of "
                    "the step before.", f"mpigraft compare {document['campaign'][:8]}"]  # fmt: skip


def steps_lines(exchange: Exchange, paths: Sequence[Path]) -> list[str]:
    """List the synthetic records of an exchange, and how to measure them."""
    words = ["mpigraft", "bench", "--layout", f"1x{exchange.ranks}"]
    lines = ["", f"{exchange.routine} on {exchange.ranks} ranks, a step for each property:"]
    for path, step in zip(paths, make_ladder(exchange), strict=True):
        words += ["--benchmark", f"app:{path}"]
        lines.append(f"  {path}: {step.what}")
    return [*lines, "Measure them with two transports:", f"  {shlex.join(words)}"]


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    change, p = row["change"], row["p"]
    return (
        row["step"],
        f"{row['ratio']['value']:.3f}",
        _interval(row["ratio"]),
        f"{change['value']:.3f}" if change else "-",
        _interval(change) if change else "-",
        f"{p:.3f}" if p is not None else "-",
        "moves it" if row["moves"] else "",
    )


def _interval(ratio: Mapping[str, Any]) -> str:
    return "-" if ratio["low"] is None else f"{ratio['low']:.3f} to {ratio['high']:.3f}"


def _answer(rows: list[Mapping[str, Any]]) -> str:
    movers = [str(row["step"]) for row in rows if row["moves"]]
    rounds = min(int(row["rounds"]) for row in rows)
    if movers:
        return f"What moves the ratio: {', '.join(movers)}, in {counted(rounds, 'round')}."
    return f"No step moves the ratio, as far as {counted(rounds, 'round')} show."
