"""Compute the level of each curve of a campaign, for a history of many campaigns."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpigraft.analysis.between_campaigns.campaigns import campaign_table
from mpigraft.analysis.multiplicity import repeated_metric
from mpigraft.analysis.statistics import bootstrap
from mpigraft.core.arrays import np
from mpigraft.core.model import CurveLevel, Measured

MEDIAN = math.sqrt(math.pi / 2)  # error of a median over that of a mean, of normal values
ONE_LAUNCH = 0.05  # taken for the error of a curve of one round, which has none of its own


def curve_levels(side: Measured) -> Iterator[CurveLevel]:
    """Compute the levels of all curves that are measurements of their own."""
    table = campaign_table(side, side.values).series
    for key, series in table.items():
        for configuration in sorted(series.logs):
            measured = {k for k, other in table.items() if configuration in other.logs}
            if repeated_metric(key, measured):
                continue
            logs = series.launches(configuration)
            present = bootstrap.filled(logs)
            rounds = int((~np.isnan(logs).all(axis=1)).sum())
            if not rounds:
                continue
            medians = bootstrap.medians(logs[:, present]).tolist()
            means = np.nanmean(logs[~np.isnan(logs).all(axis=1)][:, present], axis=1)
            error = ONE_LAUNCH
            if rounds > 1:
                error = MEDIAN * float(means.std(ddof=1)) / math.sqrt(rounds)
            sizes = [s for s, there in zip(series.sizes, present.tolist(), strict=True) if there]
            levels = dict(zip(sizes, medians, strict=True))
            yield CurveLevel(key, configuration, levels, error, rounds)
