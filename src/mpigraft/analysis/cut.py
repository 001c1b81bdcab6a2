"""Curves with an imported table that may lack its end: no verdict on the whole of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mpigraft.core.model import CellGroup, Finding, LaunchRecord, Verdict, layout_order
from mpigraft.core.text import join_some

MAYBE_CUT = "maybe-cut"  # the finding of an import
SHOWN = 4  # curves in a finding

Cut = set[tuple[str, str, str]]  # configuration (label), layout and benchmark of a curve


def cut_tables(launches: Sequence[LaunchRecord], labels: Mapping[str, str]) -> Cut:
    """Return the curves whose imported tables may lack the end."""
    return {
        (labels.get(launch.configuration, launch.configuration), launch.layout, benchmark)
        for launch in launches
        for finding in launch.findings
        if finding.code == MAYBE_CUT
        for benchmark in finding.evidence
    }


def withhold_cut(groups: Sequence[CellGroup], cut: Cut) -> list[CellGroup]:
    """Withhold verdicts on whole curves whose tables may lack the end; cells keep theirs."""
    return [
        replace(group, curve=Verdict.INCONCLUSIVE, look=None, joint=None)
        if (group.configuration, group.layout, group.benchmark) in cut
        else group
        for group in groups
    ]


def _place(curve: tuple[str, str, str]) -> tuple[object, ...]:
    configuration, layout, benchmark = curve
    return benchmark, configuration, layout_order(layout)


def cut_findings(cut: Cut) -> tuple[Finding, ...]:
    if not cut:
        return ()
    curves = [f"{b} of {c} on {layout}" for c, layout, b in sorted(cut, key=_place)]
    return (Finding.of("curve-maybe-cut", curves=join_some(curves, SHOWN)),)
