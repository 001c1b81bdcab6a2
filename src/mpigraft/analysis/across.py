"""Compare layouts with each other: swap layouts and configurations.

A comparison sets configurations against a baseline on each layout. Here the two are swapped:
layouts are compared with one of them, for each configuration, in the same rounds and by the same
statistics.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from mpigraft.analysis.grouping import labels_of
from mpigraft.core.errors import MissingError
from mpigraft.core.model import (
    CampaignRecord,
    ConfigurationRecord,
    LaunchRecord,
    ValueRow,
    layout_order,
)

Swapped = tuple[
    CampaignRecord,
    tuple[ConfigurationRecord, ...],
    tuple[ValueRow, ...],
    tuple[LaunchRecord, ...],
]


def swap_layouts(
    campaign: CampaignRecord,
    configurations: Sequence[ConfigurationRecord],
    values: Sequence[ValueRow],
    launches: Sequence[LaunchRecord] = (),
) -> Swapped:
    """Swap layouts and configurations in what `judge_campaign` takes.

    The baseline is the first layout of the plan; of an import, the smallest.
    Raises MissingError for values of one layout only.
    """
    keys = tuple(dict.fromkeys(row.layout for row in values))
    if len(keys) < 2:
        raise MissingError.of("layouts-too-few", name=campaign.name, count=len(keys))
    labels = labels_of(configurations, values)
    return (
        replace(campaign, baseline=_first_planned(campaign, keys)),
        tuple(ConfigurationRecord(campaign.id, key, key, "{}") for key in keys),
        tuple(
            row._replace(configuration=row.layout, layout=labels[row.configuration])
            for row in values
        ),
        tuple(
            replace(
                launch,
                configuration=launch.layout,
                layout=labels.get(launch.configuration, launch.configuration),
            )
            for launch in launches
        ),
    )


def _first_planned(campaign: CampaignRecord, keys: Sequence[str]) -> str:
    try:
        planned = json.loads(campaign.plan).get("layouts", [])
    except (ValueError, AttributeError):  # an import has no plan
        planned = []
    return next((key for key in planned if key in keys), min(keys, key=layout_order))
