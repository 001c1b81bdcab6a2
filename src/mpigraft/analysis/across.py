"""Compare layouts with each other, settings, or the values of an option of benchmarks.

A comparison sets configurations against a baseline on each layout. Here the two are swapped:
layouts are compared with one of them, for each configuration, in the same rounds and by the same
statistics. Or an option's values take the place of configurations: `dirac,halo=indexed` is compared
with `dirac,halo=packed`, for each configuration. Or settings do, each against the plain arm of its
own configuration.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace

from mpigraft.analysis.grouping import labels_of
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import (
    Benchmark,
    CampaignRecord,
    ConfigurationRecord,
    Measured,
    layout_order,
)


def swap_arms(what: str, side: Measured) -> Measured:
    """Put what is compared, configurations, layouts or an option of benchmarks, where
    `judge_campaign` takes configurations. Raises as `swap_layouts` and `swap_option`."""
    match what:
        case "configurations":
            return side
        case "layouts":
            return swap_layouts(side)
        case "settings":
            return swap_settings(side)
    return swap_option(what, side)


def swap_layouts(side: Measured) -> Measured:
    """Swap layouts and configurations in what `judge_campaign` takes.

    The baseline is the first layout of the plan; of an import, the smallest.
    Raises MissingError for values of one layout only.
    """
    campaign = side.campaign
    keys = tuple(dict.fromkeys(row.layout for row in side.values))
    if len(keys) < 2:
        raise MissingError.of("layouts-too-few", name=campaign.name, count=len(keys))
    labels = labels_of(side.configurations, side.values)
    return replace(
        side,
        campaign=replace(campaign, baseline=_first_planned(campaign, keys)),
        configurations=tuple(ConfigurationRecord(campaign.id, key, key, "{}") for key in keys),
        values=tuple(
            row._replace(configuration=row.layout, layout=labels[row.configuration])
            for row in side.values
        ),
        launches=tuple(
            replace(
                launch,
                configuration=launch.layout,
                layout=labels.get(launch.configuration, launch.configuration),
            )
            for launch in side.launches
        ),
    )


PLAIN = "plain"  # the arm without a setting


def setting_arms(configurations: Sequence[ConfigurationRecord]) -> dict[str, tuple[str, str]]:
    """Give (name of the setting, key of its plain arm) by key of a configuration: of those that
    have a setting, and of their plain arms, whose name is `PLAIN`."""
    arms: dict[str, tuple[str, str]] = {}
    for record in configurations:
        setting = json.loads(record.provenance).get("setting")
        if setting:
            arms[record.key] = setting["name"], setting["plain"]
            arms[setting["plain"]] = PLAIN, setting["plain"]
    return arms


def swap_settings(side: Measured) -> Measured:
    """Put settings in the place of configurations, and configurations in the place of layouts. What
    has no setting, nor an arm with one, is left out; the baseline is the plain arm.

    Raises MissingError where nothing was measured with a setting.
    """
    campaign, labels = side.campaign, labels_of(side.configurations, side.values)
    arms = setting_arms(side.configurations)
    names = dict.fromkeys((PLAIN, *(name for name, _ in arms.values())))
    if len(names) < 2:
        raise MissingError.of("settings-none", name=campaign.name)
    places = {row.layout for row in side.values}

    def place(plain: str, layout: str) -> str:
        return _place(labels.get(plain, plain), layout, places)

    return replace(
        side,
        campaign=replace(campaign, baseline=PLAIN),
        configurations=tuple(ConfigurationRecord(campaign.id, n, n, "{}") for n in names),
        values=tuple(
            row._replace(configuration=arms[key][0], layout=place(arms[key][1], row.layout))
            for row in side.values
            if (key := row.configuration) in arms
        ),
        launches=tuple(
            replace(one, configuration=arms[key][0], layout=place(arms[key][1], one.layout))
            for one in side.launches
            if (key := one.configuration) in arms
        ),
    )


def _place(label: str, layout: str, places: Collection[str]) -> str:
    """Name what takes the place of a layout; of a campaign with one layout by its label alone."""
    return label if len(places) < 2 else f"{layout} {label}"


def swap_option(option: str, side: Measured) -> Measured:
    """Put the values of an option of benchmarks in the place of configurations, and these in the
    place of layouts. Benchmarks without the option are left out.

    The baseline is the last value by letters. Raises UsageError where no benchmark has the option,
    MissingError where all have the same value.
    """
    campaign = side.campaign
    keys = {row.benchmark for row in side.values}
    split = {key: _without(option, key) for key in keys}
    named = sorted({value for value, _ in split.values() if value})
    if not named:
        known = sorted({name for key in keys for name, _ in Benchmark.parse(key).options})
        choices = ("configurations", "layouts", "settings", *known)
        raise UsageError.unknown("across-unknown", option, choices)
    if len(named) < 2:
        raise MissingError.of("option-one-value", name=campaign.name, option=option, value=named[0])
    labels = labels_of(side.configurations, side.values)
    places = {row.layout for row in side.values}

    def place(configuration: str, layout: str) -> str:
        return _place(labels.get(configuration, configuration), layout, places)

    return replace(
        side,
        campaign=replace(campaign, baseline=named[-1]),
        configurations=tuple(
            ConfigurationRecord(campaign.id, value, value, "{}") for value in named
        ),
        values=tuple(
            row._replace(
                configuration=split[row.benchmark][0],
                benchmark=split[row.benchmark][1],
                layout=place(row.configuration, row.layout),
            )
            for row in side.values
            if split[row.benchmark][0]
        ),
        launches=tuple(
            replace(
                launch,
                configuration=value,
                layout=place(launch.configuration, launch.layout),
                program=key,
            )
            for launch in side.launches
            for value, key in (_without(option, launch.program or "native:"),)
            if value
        ),
    )


def _without(option: str, key: str) -> tuple[str, str]:
    """(value of the option, key without it) of a benchmark; an empty value: it has none."""
    benchmark = Benchmark.parse(key)
    rest = tuple(pair for pair in benchmark.options if pair[0] != option)
    return dict(benchmark.options).get(option, ""), replace(benchmark, options=rest).key


def _first_planned(campaign: CampaignRecord, keys: Sequence[str]) -> str:
    try:
        planned = json.loads(campaign.plan).get("layouts", [])
    except (ValueError, AttributeError):  # an import has no plan
        planned = []
    return next((key for key in planned if key in keys), min(keys, key=layout_order))
