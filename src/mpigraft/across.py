"""Layouts held against each other: ranks x threads as what is compared.

A comparison holds configurations against a baseline on each layout. Here the two change places:
layouts are held against one of them, for each configuration, in the same rounds and by the same
statistics.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from mpigraft.blocks import labels_of
from mpigraft.errors import MissingError
from mpigraft.model import CampaignRecord, ConfigurationRecord, LaunchRecord, ValueRow

Swapped = tuple[CampaignRecord, tuple[ConfigurationRecord, ...], tuple[ValueRow, ...]]


def layouts(
    campaign: CampaignRecord,
    configurations: Sequence[ConfigurationRecord],
    values: Sequence[ValueRow],
) -> Swapped:
    """What `compare` takes, with layouts as configurations and these as layouts. The baseline is
    the first layout that was planned. Raises MissingError for values of one layout alone."""
    keys = tuple(dict.fromkeys(row.layout for row in values))
    if len(keys) < 2:
        raise MissingError(
            f"campaign {campaign.name} has values of {len(keys)} layout",
            why="layouts are held against each other within one campaign",
            mend="measure several: mpigraft bench --layout 1x4 --layout 1x2x2",
        )
    labels = labels_of(configurations, values)
    return (
        replace(campaign, baseline=_first(campaign, keys)),
        tuple(ConfigurationRecord(campaign.id, key, key, "{}") for key in keys),
        tuple(
            row._replace(configuration=row.layout, layout=labels[row.configuration])
            for row in values
        ),
    )


def launches(
    configurations: Sequence[ConfigurationRecord],
    values: Sequence[ValueRow],
    every: Sequence[LaunchRecord],
) -> tuple[LaunchRecord, ...]:
    """Launches with the two changed places as well."""
    labels = labels_of(configurations, values)
    return tuple(
        replace(
            launch,
            configuration=launch.layout,
            layout=labels.get(launch.configuration, launch.configuration),
        )
        for launch in every
    )


def _first(campaign: CampaignRecord, keys: Sequence[str]) -> str:
    try:
        planned = json.loads(campaign.plan).get("layouts", [])
    except (ValueError, AttributeError):  # an import has no plan
        planned = []
    return next((key for key in planned if key in keys), min(keys))
