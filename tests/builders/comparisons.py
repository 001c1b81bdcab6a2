"""Comparisons of hand-made campaigns, and what they say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mpigraft.analysis import comparison
from mpigraft.core.model import (
    AllocationRecord,
    CampaignRecord,
    CellGroup,
    Comparison,
    ConfigurationRecord,
    Finding,
    LaunchRecord,
    Measured,
    ValueRow,
    Verdict,
)
from tests.builders.campaigns import CAMPAIGN, arms


def side_of(
    record: CampaignRecord,
    configurations: Iterable[ConfigurationRecord],
    rows: Iterable[ValueRow],
    launches: Iterable[LaunchRecord] = (),
    allocations: Iterable[AllocationRecord] = (),
) -> Measured:
    return Measured(record, tuple(configurations), tuple(allocations), tuple(launches), tuple(rows))


def compare(
    record: CampaignRecord,
    configurations: Iterable[ConfigurationRecord],
    rows: Iterable[ValueRow],
    launches: Iterable[LaunchRecord] = (),
    allocations: Iterable[AllocationRecord] = (),
    **options: Any,
) -> Comparison:
    side = side_of(record, configurations, rows, launches, allocations)
    return comparison.compare(side, **options)


def compared(rows: Sequence[ValueRow], **changes: Any) -> Comparison:
    names = sorted({r.configuration for r in rows} - {"base"})
    rounds = 1 + max(r.round for r in rows)
    record = replace(CAMPAIGN, rounds=rounds)
    return compare(record, arms(*names), rows, **changes)


def only(made: Comparison) -> CellGroup:
    (group,) = made.groups
    return group


def verdicts(group: CellGroup) -> list[Verdict]:
    return [cell.verdict for cell in group.cells]


def codes(findings: Sequence[Finding]) -> list[str]:
    return [f.code for f in findings]
