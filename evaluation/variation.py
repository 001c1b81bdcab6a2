"""How much launches vary here and how much their sizes move together, from a stored campaign.

    python evaluation/variation.py [CAMPAIGN] --store FOLDER

The synthetic campaigns of verdicts_synthetic.py assume 8 to 18 % and 0.7; this says whether the
machine at hand is like them. Only the baseline's two launches of a round are used, so no
difference between configurations is in the figures: the standard deviation of the logarithm of
one launch is that of the pair's log ratio over the square root of 2.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpigraft.analysis.grouping import labels_of, table_of
from mpigraft.cli.common import default_store
from mpigraft.core.model import SeriesKey, ValueRow
from mpigraft.store import Store

FEWEST = 6  # pairs for a standard deviation


def variation(
    values: list[ValueRow],
) -> Iterator[tuple[SeriesKey, int, NDArray[np.float64], float]]:
    """Yield, per series: pairs, standard deviation of each size, correlation between sizes."""
    for key, series in sorted(table_of(values, {}, labels_of((), values)).series.items()):
        for first, second, *_ in series.logs.values():
            logs = second - first
            logs = logs[~np.isnan(logs).any(axis=1)]
            if len(logs) < FEWEST:
                continue
            spread = logs.std(axis=0, ddof=1) / np.sqrt(2)
            varied = logs[:, spread > 0]
            correlation = np.nan
            if varied.shape[1] > 1:
                table = np.corrcoef(varied.T)
                correlation = float(table[~np.eye(len(table), dtype=bool)].mean())
            yield key, len(logs), spread, correlation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("campaign", nargs="?")
    parser.add_argument("--store", type=Path, default=default_store())
    given = parser.parse_args()
    store = Store(given.store)
    campaign = store.campaign(given.campaign)
    print(f"{campaign.name} ({campaign.id[:8]}): launch to launch, standard deviation in percent")
    print("benchmark                    layout  pairs  least  typical  most  correlation")
    for key, pairs, spread, correlation in variation(store.values(campaign.id)):
        low, middle, high = 100 * np.quantile(spread, [0, 0.5, 1])
        name = f"{key.benchmark} {key.metric}"
        print(
            f"{name:28} {key.layout:7} {pairs:5} {low:6.1f} {middle:8.1f} {high:5.1f}"
            f" {correlation:12.2f}"
        )


if __name__ == "__main__":
    main()
