"""Imported tables that may lack their end are in no claim on a whole curve."""

from __future__ import annotations

from dataclasses import replace

from mpigraft.analysis.cut import cut_findings, cut_tables, withhold_cut
from mpigraft.core.model import Finding
from tests.builders.campaigns import around, campaign
from tests.builders.comparisons import compared, only
from tests.builders.messages import matches
from tests.builders.verdicts import FASTER, INCONCLUSIVE
from tests.unit.analysis.test_completion import started


def test_tables_that_may_be_cut_are_named() -> None:
    finding = Finding.of(
        "maybe-cut", place="a:1", benchmark="osu:bw", size=8, usual=64, evidence=("osu:bw",)
    )
    other = replace(finding, code="other", evidence=("osu:latency",))
    launches = [replace(x, findings=(finding, other) * (x.round == 2)) for x in started(6, 6)]
    cut = cut_tables(launches, {"k0": "mpi@k0"})
    assert cut == {("mpi@k0", "1x2", "osu:bw"), ("base", "1x2", "osu:bw")}
    (named,) = cut_findings(cut)
    assert matches(
        named, "curve-maybe-cut", curves="osu:bw of base on 1x2; osu:bw of mpi@k0 on 1x2"
    )
    whole = [launch.without("maybe-cut") for launch in launches]
    assert [f.code for launch in whole for f in launch.findings] == ["other"] * 3
    assert cut_findings(cut_tables(whole, {})) == ()


def test_a_table_that_may_be_cut_withholds_its_curve_and_no_other() -> None:
    group = only(compared(campaign(around(0.5), rounds=6)))
    assert (group.curve, group.configuration, group.layout) == (FASTER, "mpi@k0", "1x2")
    place = (group.configuration, group.layout, group.benchmark)
    (cut,) = withhold_cut([group], {place})
    assert (cut.curve, cut.joint, cut.cells) == (INCONCLUSIVE, None, group.cells)
    others = {("x", *place[1:]), (place[0], "x", place[2]), (*place[:2], "x")}
    assert withhold_cut([group], others) == [group]
