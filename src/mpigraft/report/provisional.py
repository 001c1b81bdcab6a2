"""What the rounds of a campaign show until now, for a terminal: nothing in it is a verdict."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from mpigraft.analysis import MIN_ROUNDS, ratio_so_far
from mpigraft.core.env import redact
from mpigraft.core.model import METRICS, Better, Measurement
from mpigraft.core.text import printable
from mpigraft.report.answer import COLUMNS, ROWS
from mpigraft.report.screen import shorten
from mpigraft.report.table import Column, Table
from mpigraft.report.wording import words

FEWEST = 3  # rounds with an interval of any use
MOST = 10.0  # factor of the widest interval that is shown, to either side

Curve = tuple[str, str, str]  # benchmark, metric, layout
Point = tuple[int, int]  # round and size


class Provisional:
    """Ratios to the baseline over the rounds that have been measured."""

    def __init__(self, baseline: str) -> None:
        self.baseline = baseline
        self.logs: dict[Curve, dict[str, dict[Point, list[float]]]] = {}

    def add(
        self, configuration: str, layout: str, number: int, measured: Iterable[Measurement]
    ) -> None:
        """Take the values of a launch in a round."""
        for one in measured:
            if one.value > 0:
                curve = one.benchmark.key, one.metric, layout
                own = self.logs.setdefault(curve, {}).setdefault(configuration, defaultdict(list))
                own[number, one.size].append(math.log(one.value))

    def lines(self, done: int, rounds: int, width: int) -> list[str]:
        """Tabulate the factors after `done` rounds; empty without any."""
        curves: dict[tuple[str, str], Curve] = {}
        for curve in self.logs:  # of two metrics the first
            curves.setdefault((curve[0], curve[2]), curve)
        shown = list(curves.values())[:COLUMNS]
        ratios = {curve: self._logs(curve) for curve in shown}
        names = list(dict.fromkeys(name for own in ratios.values() for name in own))
        if not names:
            return []
        need = max(MIN_ROUNDS - done, 0)
        wait = f"a verdict needs {need} more" if need else "verdicts come at the end"
        so_far = "; ±: its 95 % interval so far" if done >= FEWEST else ""
        head = f"provisional, after round {done} of {rounds}: {wait}{so_far}"
        columns = (
            Column(f"against {printable(redact(self.baseline))}"),
            *(Column(f"{name.removeprefix('native:')} {layout}") for name, _, layout in shown),
        )
        rows = tuple(
            (redact(name), *(_factor(curve, ratios[curve].get(name)) for curve in shown))
            for name in names[:ROWS]
        )
        lines = [head, *Table("", columns, rows, before=1).lines()]
        return [shorten(line, width) for line in lines]

    def _logs(self, curve: Curve) -> dict[str, list[float]]:
        """Pair the values of each configuration with the baseline's of the same round and size:
        the mean log ratio of each round."""
        logs = self.logs[curve]
        base = {point: fmean(every) for point, every in logs.get(self.baseline, {}).items()}
        found = {}
        for name, own in logs.items():
            rounds: dict[int, list[float]] = defaultdict(list)
            for point, every in own.items():
                if point in base:
                    rounds[point[0]].append(fmean(every) - base[point])
            if name != self.baseline and rounds:
                found[name] = [fmean(logs) for logs in rounds.values()]
        return found


def _factor(curve: Curve, logs: list[float] | None) -> str:
    """Give the factor over all rounds, and how far its 95 % interval reaches: a curve whose
    interval is far from 1 is near its verdict."""
    if logs is None:
        return "-"
    metric = METRICS.get(curve[1])
    better, unit = (metric.better, metric.unit) if metric else (Better.LOWER, "")
    ratio, low, high = ratio_so_far(logs)
    factor = words.factor(ratio, better, unit)
    if len(logs) < FEWEST:
        return factor
    return f"{factor} ±{100 * (min(math.sqrt(high / low), MOST) - 1):.0f} %"
