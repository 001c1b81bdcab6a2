"""The figures that the report's charts draw, once.

The interval on an absolute value is that of the rounds' median by order statistics, which asks
nothing of the distribution: of n sorted values the k-th from either end enclose the median
with probability 1 - 2 P(Binomial(n, 1/2) < k) (Conover, Practical Nonparametric Statistics,
3.2). Fewer than 6 rounds give none at 95 %.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mpigraft.analysis import labels_of, values_by_size
from mpigraft.core import numbers
from mpigraft.core.model import Better, Cell, CellGroup, SeriesKey, ValueRow
from mpigraft.report import hardware_peaks, node_pairs, rank_scaling
from mpigraft.report.contents import ReportData
from mpigraft.report.scaling import Card, View, cards, missing_places
from mpigraft.report.software import guest_words
from mpigraft.report.wording import labels
from mpigraft.report.wording.counts import Section

Bands = dict[tuple[SeriesKey, str], dict[int, tuple[float, float]]]


def curves(data: ReportData) -> dict[str, Any]:
    """Return what the page's script draws."""
    baseline = data.comparison.baseline
    every = cards(data.comparison)
    parts = [section for card in every for section in card.sections]
    index = {id(section): number for number, section in enumerate(parts)}
    known = hardware_peaks.known(data)
    names = sorted({g.configuration for g in data.comparison.groups} | {baseline})
    bands, measured = launch_bands(data), sizes_of(data.values)
    return {
        "baseline": baseline,
        "order": names,
        "names": labels.looks(labels.short(names, guest_words(data))),
        "margin": data.margin,
        "sections": [
            _section(s, baseline, bands, hardware_peaks.of(s, known))
            | {"breaks": _breaks(s, measured)}
            for s in parts
        ],
        "cards": [[index[id(section)] for section in card.sections] for card in every],
        "views": [_view(card, view, index, measured) for card in every for view in card.views],
        "maps": node_pairs.values(data),
        "plots": rank_scaling.plots(data),
    }


def has_curve(section: Section) -> bool:
    """Return whether there is a curve to draw: two sizes at least."""
    return sum(size > 0 for size in section.sizes) > 1


Sizes = Mapping[SeriesKey, set[int]]


def sizes_of(values: Iterable[ValueRow]) -> Sizes:
    """Return all sizes that were measured, by benchmark, metric, layout and buffers."""
    sizes: dict[SeriesKey, set[int]] = defaultdict(set)
    for row in values:
        sizes[row.series].add(row.size)
    return sizes


def missing_sizes(section: Section, measured: Sizes) -> set[int]:
    """Return sizes between a section's at which no configuration was compared."""
    sizes = section.sizes
    return {s for s in measured.get(section.series, ()) if sizes[0] < s < sizes[-1]}.difference(
        sizes
    )


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Give the 95 % interval of the median of rounds; None for fewer than 6."""
    ordered = sorted(values)
    n = len(ordered)
    k, below = 0, 0.0  # below: P(Binomial(n, 1/2) < k)
    while k < n // 2 and 2 * (below + math.comb(n, k) / 2**n) <= 0.05:
        below += math.comb(n, k) / 2**n
        k += 1
    return (ordered[k - 1], ordered[n - k]) if k else None


def launch_bands(data: ReportData) -> Bands:
    """Give the 95 % intervals of the values, by benchmark, metric, layout, buffers and label."""
    names = labels_of(data.configurations, data.values)
    return {
        (key, names[name]): {
            size: band for size, one in values.items() if (band := median_interval(one.rounds))
        }
        for key, name, values in values_by_size(data.values, data.allocations, names)
    }


def layouts_of(card: Card, measured: Sizes) -> set[str]:
    """Give the layouts on which a benchmark has any value."""
    return {key.layout for key in measured if key._replace(layout=card.layout) == card.series}


def _view(card: Card, view: View, index: dict[int, int], measured: Sizes) -> dict[str, Any]:
    missing = [(x, None) for x in missing_places(view, layouts_of(card, measured))]
    points = sorted([*((x, index[id(section)]) for x, section in view.points), *missing])
    return {
        "axis": view.axis,
        "metric": card.quantity,
        "unit": card.unit,
        "x": [number for number, _ in points],
        "at": [place for _, place in points],
        "sizes": view.sizes,
    }


def _section(
    section: Section, baseline: str, bands: Bands, peak: tuple[float, str] | None
) -> dict[str, Any]:
    """List a section's figures: a cell, or null, for each of its sizes."""
    where = section.series
    absolute = section.baseline
    return {
        "benchmark": section.benchmark,
        "layout": section.layout,
        "buffers": section.buffers,
        "peak": peak,
        "unit": section.unit,
        "metric": section.quantity,
        "lower": section.better is Better.LOWER,
        "curve": has_curve(section),
        "sizes": section.sizes,
        "margin": section.noise.margin if section.noise else None,
        "base": [_figure(absolute.get(s)) for s in section.sizes],
        "baseBand": _band(bands.get((where, baseline), {}), section.sizes),
        "groups": [
            {
                "name": group.configuration,
                "curve": group.curve.value,
                "pooled": _figure(group.pooled),
                "over": len(group.used_sizes),
                "cells": _cells(group, section.sizes),
                "band": _band(bands.get((where, group.configuration), {}), section.sizes),
            }
            for group in section.groups
        ],
    }


def _breaks(section: Section, measured: Sizes) -> list[int]:
    """Numbers of the sizes after which one is missing."""
    missing = missing_sizes(section, measured)
    pairs = enumerate(itertools.pairwise(section.sizes))
    return [n for n, (low, high) in pairs if any(low < size < high for size in missing)]


def _cells(group: CellGroup, sizes: tuple[int, ...]) -> list[list[Any] | None]:
    at = {
        cell.size: [
            _figure(cell.value),
            _figure(cell.ratio),
            *_interval(cell),
            cell.verdict.value[0],
            cell.rounds,
            *([] if cell.rounds_needed is None else [cell.rounds_needed]),
        ]
        for cell in group.cells
    }
    return [at.get(size) for size in sizes]


def _band(band: dict[int, tuple[float, float]], sizes: tuple[int, ...]) -> list[Any] | None:
    if not band:
        return None
    return [[_figure(v) for v in band[s]] if s in band else None for s in sizes]


def _interval(cell: Cell) -> tuple[float | None, float | None]:
    """Return its bounds; none where they say nothing, since nobody can draw them."""
    if cell.low is None or cell.high is None or not numbers.is_informative(cell.low, cell.high):
        return None, None
    return _figure(cell.low), _figure(cell.high)


def _figure(value: float | None) -> float | None:
    """Five significant digits: more than an eye or a tooltip can tell, and a smaller file. A whole
    number is written without its point."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.5g}")
    return int(rounded) if rounded.is_integer() else rounded
