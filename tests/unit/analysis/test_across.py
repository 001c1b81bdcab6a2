"""Layouts held against each other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import mpigraft
from mpigraft.analysis import across
from mpigraft.analysis.comparison import compare as judged
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import (
    CampaignRecord,
    ConfigurationRecord,
    LaunchRecord,
    LaunchState,
    Origin,
    ValueRow,
    Verdict,
)
from mpigraft.report import json as as_json
from tests.builders.comparisons import compare, side_of
from tests.builders.reports import report_of

SCHEMA = json.loads((Path(mpigraft.__file__).parent / "report/schemas/compare.json").read_text())

PLAN = json.dumps({"layouts": ["1x4", "1x2x2"]})
CAMPAIGN = CampaignRecord("c" * 8, "hybrid", "2026-01-01", Origin.RUN, 1, 8, "a", PLAN, "0")
CONFIGURATIONS = tuple(ConfigurationRecord(CAMPAIGN.id, k, f"mpi@{k}", "{}") for k in "ab")


def row(configuration: str, layout: str, number: int, value: float, replica: int = 0) -> ValueRow:
    return ValueRow(
        configuration, layout, "job", number, replica, "native:allreduce", "latency", 8, value,
        "host",
    )  # fmt: skip


VALUES = tuple(
    row(configuration, layout, number, value * (1 + 0.001 * (number % 3)), replica)
    for number in range(8)
    for layout, value in (("1x4", 10.0), ("1x2x2", 5.0))
    for configuration, replica in (("a", 0), ("a", 1), ("b", 0))
)


def test_layouts_are_compared_for_each_configuration() -> None:
    comparison = judged(across.swap_layouts(side_of(CAMPAIGN, CONFIGURATIONS, VALUES)))
    assert comparison.baseline == "1x4"
    cells = {(g.layout, g.configuration): g.cells[0] for g in comparison.groups}
    assert set(cells) == {("mpi@a", "1x2x2"), ("mpi@b", "1x2x2")}
    assert all(cell.verdict is Verdict.FASTER for cell in cells.values())
    assert all(cell.ratio == pytest.approx(0.5, rel=0.01) for cell in cells.values())


def test_another_layout_may_be_the_baseline() -> None:
    swapped = across.swap_layouts(side_of(CAMPAIGN, CONFIGURATIONS, VALUES))
    comparison = judged(swapped, baseline="1x2x2")
    assert {g.configuration for g in comparison.groups} == {"1x4"}
    assert all(c.verdict is Verdict.SLOWER for g in comparison.groups for c in g.cells)


def with_arm(key: str, name: str, plain: str) -> ConfigurationRecord:
    setting = {"setting": {"name": name, "plain": plain}}
    return ConfigurationRecord(CAMPAIGN.id, key, f"mpi@{plain}+{name}", json.dumps(setting))


ARMS = (*CONFIGURATIONS, with_arm("a1", "big", "a"), with_arm("b1", "big", "b"))
OF_ARMS = tuple(
    row(configuration, "1x4", number, value * (1 + 0.001 * (number % 3)), replica)
    for number in range(8)
    for configuration, value, replica in (
        ("a", 10.0, 0), ("a", 10.1, 1), ("b", 20.0, 0), ("a1", 5.0, 0), ("b1", 40.0, 0),
    )
)  # fmt: skip


def test_a_setting_is_compared_with_its_own_plain_arm() -> None:
    comparison = judged(across.swap_settings(side_of(CAMPAIGN, ARMS, OF_ARMS)))
    assert comparison.baseline == "plain"
    cells = {(g.layout, g.configuration): g.cells[0] for g in comparison.groups}
    assert {key: round(cell.ratio, 1) for key, cell in cells.items()} == {
        ("mpi@a", "big"): 0.5, ("mpi@b", "big"): 2.0,
    }  # fmt: skip
    assert cells["mpi@a", "big"].verdict is Verdict.FASTER
    assert cells["mpi@b", "big"].verdict is Verdict.SLOWER


def test_what_has_no_setting_is_left_out_and_none_is_refused() -> None:
    side = side_of(CAMPAIGN, ARMS[:3], [one for one in OF_ARMS if one.configuration != "b1"])
    assert {row.layout for row in across.swap_settings(side).values} == {"mpi@a"}
    with pytest.raises(MissingError, match="no values of settings"):
        across.swap_settings(side_of(CAMPAIGN, CONFIGURATIONS, VALUES))


def forms(number: int, form: str, value: float, replica: int = 0) -> ValueRow:
    key = f"mini:dirac,halo={form},seed=1"
    return row("a", "1x4", number, value, replica)._replace(benchmark=key)


FORMS = tuple(
    forms(number, form, value * (1 + 0.001 * (number % 3)), replica)
    for number in range(8)
    for form, value in (("packed", 10.0), ("indexed", 15.0))
    for replica in (0, 1)
)


def test_values_of_an_option_are_compared_for_each_configuration() -> None:
    """Benchmarks without the option are left out."""
    swapped = across.swap_option("halo", side_of(CAMPAIGN, CONFIGURATIONS, (*VALUES, *FORMS)))
    comparison = judged(swapped)
    assert comparison.baseline == "packed"
    (group,) = comparison.groups
    assert (group.benchmark, group.configuration) == ("mini:dirac,seed=1", "indexed")
    assert group.layout == "1x4 mpi@a"
    assert group.cells[0].verdict is Verdict.SLOWER
    assert group.cells[0].ratio == pytest.approx(1.5, rel=0.01)
    assert judged(swapped, baseline="indexed").groups[0].configuration == "packed"


def test_launches_of_an_option_follow_its_values() -> None:
    launch = campaign_launch("mini:dirac,halo=indexed,seed=1")
    native = campaign_launch("")
    swapped = across.swap_option("halo", side_of(CAMPAIGN, CONFIGURATIONS, FORMS, (launch, native)))
    (kept,) = swapped.launches
    assert (kept.configuration, kept.layout) == ("indexed", "mpi@a")
    assert kept.program == "mini:dirac,seed=1"


def campaign_launch(program: str) -> LaunchRecord:
    return LaunchRecord(
        "1", CAMPAIGN.id, "job", "a", "1x4", 0, 0, 0, "2026-01-01", 1.0, 0, LaunchState.OK, (),
        program=program,
    )  # fmt: skip


def test_an_option_that_nothing_has_is_refused() -> None:
    with pytest.raises(UsageError, match="no benchmark"):
        across.swap_option("layout", side_of(CAMPAIGN, CONFIGURATIONS, VALUES))
    with pytest.raises(UsageError, match="did you mean halo"):
        across.swap_option("hallo", side_of(CAMPAIGN, CONFIGURATIONS, FORMS))
    alone = [one for one in FORMS if "packed" in one.benchmark]
    with pytest.raises(MissingError, match="halo=packed alone"):
        across.swap_option("halo", side_of(CAMPAIGN, CONFIGURATIONS, alone))


def test_one_layout_cannot_be_compared() -> None:
    alone = [r for r in VALUES if r.layout == "1x4"]
    with pytest.raises(MissingError, match="of 1 layout"):
        across.swap_layouts(side_of(CAMPAIGN, CONFIGURATIONS, alone))


def test_without_a_plan_the_first_by_name_is_the_baseline() -> None:
    swapped = across.swap_layouts(side_of(replace(CAMPAIGN, plan=""), CONFIGURATIONS, VALUES))
    assert swapped.campaign.baseline == "1x2x2"


def test_a_configuration_that_was_never_launched_twice_takes_the_widest_margin() -> None:
    """Only the baseline has a second launch in a round: 8 % apart here. What is 6 % better for
    another configuration is no more than that."""
    values = tuple(
        row(configuration, layout, number, value * (1 + 0.001 * (number % 3)), replica)
        for number in range(8)
        for layout, of in (("1x4", 10.0), ("1x2x2", 9.4))
        for configuration, replica, value in (("a", 0, of), ("a", 1, 1.08 * of), ("b", 0, of))
    )
    comparison = judged(across.swap_layouts(side_of(CAMPAIGN, CONFIGURATIONS, values)))
    called = {g.layout: g.cells[0].verdict for g in comparison.groups}
    assert called == {"mpi@a": Verdict.INCONCLUSIVE, "mpi@b": Verdict.INCONCLUSIVE}
    only_b = tuple(r for r in values if r.configuration == "b")
    alone = judged(across.swap_layouts(side_of(CAMPAIGN, CONFIGURATIONS, only_b)))
    assert [g.cells[0].verdict for g in alone.groups] == [Verdict.FASTER]


def test_json_calls_layouts_layouts() -> None:
    swapped = across.swap_layouts(side_of(CAMPAIGN, CONFIGURATIONS, VALUES))
    data = report_of(judged(swapped), campaign=CAMPAIGN, values=VALUES, across="layouts")
    document = json.loads(as_json.render_json(data))
    jsonschema.validate(document, SCHEMA)
    assert (document["across"], document["baseline"]) == ("layouts", "1x4")
    pairs = {(g["configuration"], g["layout"]) for g in document["comparisons"]}
    assert pairs == {("mpi@a", "1x2x2"), ("mpi@b", "1x2x2")}
    assert {n["layout"] for n in document["noise"]} == {"1x4"}
    plain = report_of(compare(CAMPAIGN, CONFIGURATIONS, VALUES, baseline="mpi@a"))
    assert json.loads(as_json.render_json(plain))["across"] == "configurations"


def test_an_import_takes_the_smallest_layout_as_baseline() -> None:
    """ARCHER2's layouts, as text: 128x128 comes first."""
    keys = ("16x128", "128x128", "2x128", "1x128")
    values = [row(c, layout, 0, 10.0) for c in "ab" for layout in keys]
    campaign = replace(CAMPAIGN, plan="{}", origin=Origin.IMPORT)
    swapped = across.swap_layouts(side_of(campaign, CONFIGURATIONS, values))
    assert swapped.campaign.baseline == "1x128"
    comparison = judged(swapped)
    assert [g.configuration for g in comparison.groups] == ["2x128", "16x128", "128x128"] * 2
