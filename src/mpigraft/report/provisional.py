"""What the rounds of a campaign show until now, for a terminal: nothing in it is a verdict."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from mpigraft.analysis import MIN_ROUNDS
from mpigraft.core.env import redact
from mpigraft.core.model import METRICS, Better, Measurement
from mpigraft.core.text import printable
from mpigraft.report.answer import COLUMNS, ROWS
from mpigraft.report.screen import shorten
from mpigraft.report.table import Column, Table
from mpigraft.report.wording import words

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
        ratios = {curve: self._ratios(curve) for curve in shown}
        names = list(dict.fromkeys(name for own in ratios.values() for name in own))
        if not names:
            return []
        need = max(MIN_ROUNDS - done, 0)
        wait = f"a verdict needs {need} more" if need else "verdicts come at the end"
        head = f"provisional, after round {done} of {rounds}: {wait}"
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

    def _ratios(self, curve: Curve) -> dict[str, float]:
        """Pair the values of each configuration with the baseline's of the same round and size."""
        logs = self.logs[curve]
        base = {point: fmean(every) for point, every in logs.get(self.baseline, {}).items()}
        found = {}
        for name, own in logs.items():
            both = [fmean(every) - base[point] for point, every in own.items() if point in base]
            if name != self.baseline and both:
                found[name] = math.exp(fmean(both))
        return found


def _factor(curve: Curve, ratio: float | None) -> str:
    metric = METRICS.get(curve[1])
    better, unit = (metric.better, metric.unit) if metric else (Better.LOWER, "")
    return "-" if ratio is None else words.factor(ratio, better, unit)
