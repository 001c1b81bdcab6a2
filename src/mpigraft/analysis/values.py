"""Reduce the launches of a configuration to the value that every table, page and document shows.

It is the median over rounds of the geometric mean of a round's launches; the baseline has two of
them. All is done on logarithms, so the value of two rounds is their geometric mean too: 10 and 1000
give 100, which is also what their ratio to another configuration rests on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mpigraft.analysis.grouping import table_of
from mpigraft.analysis.statistics import bootstrap
from mpigraft.core.arrays import np
from mpigraft.core.model import AllocationRecord, SeriesKey, Value, ValueRow
from mpigraft.core.numbers import from_log


def values_by_size(
    rows: Sequence[ValueRow], allocations: Sequence[AllocationRecord], labels: Mapping[str, str]
) -> Iterator[tuple[SeriesKey, str, dict[int, Value]]]:
    """Yield the values of each series and configuration (key), by size. `labels` has the labels of
    configurations by key."""
    table = table_of(rows, {a.id: a.nodes for a in allocations}, labels)
    for key, series in sorted(table.series.items(), key=lambda item: item[0].order):
        for configuration, cube in series.logs.items():
            rounds = series.launches(configuration)
            values = {}
            for column, size in enumerate(series.sizes):
                own = rounds[~np.isnan(rounds[:, column]), column]
                if len(own):
                    middle = float(bootstrap.medians(own[:, None])[0])
                    launches = cube[..., column][~np.isnan(cube[..., column])]
                    every = (tuple(map(from_log, logs.tolist())) for logs in (own, launches))
                    values[size] = Value(from_log(middle), *every)
            yield key, configuration, values
