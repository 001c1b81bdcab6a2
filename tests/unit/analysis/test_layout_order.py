"""Layouts are sorted as numbers: over time, across two campaigns, and where costs grow."""

from __future__ import annotations

from dataclasses import replace

from mpigraft.analysis import sort_history
from mpigraft.analysis.between_campaigns.campaigns import compare_campaigns
from mpigraft.analysis.rank_scaling.scaling import fit_growth
from mpigraft.core.model import AcrossRule, Measured, ValueRow
from tests.builders.overtime import campaign

LAYOUTS = ("16x128", "1x128", "2x128")
SORTED = ["1x128", "2x128", "16x128"]


def on_layouts(number: int) -> Measured:
    """One campaign on all of them."""
    one = campaign(number)
    return replace(
        one,
        launches=tuple(
            replace(launch, id=f"{launch.id}-{key}", layout=key)
            for key in LAYOUTS
            for launch in one.launches
        ),
        values=tuple(row._replace(layout=key) for key in LAYOUTS for row in one.values),
    )


def test_lines_of_a_history() -> None:
    lines = sort_history([on_layouts(1), on_layouts(2)])
    assert list(dict.fromkeys(line.key.series.layout for line in lines)) == SORTED


def test_curves_and_noise_of_two_campaigns() -> None:
    found = compare_campaigns(on_layouts(1), on_layouts(2), AcrossRule(0.03))
    assert list(dict.fromkeys(group.layout for group in found.groups)) == SORTED
    assert [noise.layout for noise in found.noise] == SORTED


def test_series_of_a_growth() -> None:
    rows = [
        ValueRow("key", f"{nodes}x{ranks}", "job", round_, 0, "native:init_time", "init_time", 0,
                 1.0 * nodes * ranks, "host")
        for nodes in (1, 2, 16)
        for ranks in (1, 2, 16)
        for round_ in range(3)
    ]  # fmt: skip
    series = [growth.series for growth in fit_growth(rows, {"key": "openmpi"}, {})]
    on_each = [name for name in series if name.endswith("per node")]
    assert [int(name.split()[0]) for name in on_each] == [1, 2, 16]
    on_nodes = [name for name in series if name.startswith("on ")]
    assert [int(name.split()[1]) for name in on_nodes] == [1, 2, 16]
