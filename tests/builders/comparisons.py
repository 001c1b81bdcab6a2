"""Comparisons of hand-made campaigns, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mpigraft.analysis import comparison as under_test
from mpigraft.core.model import (
    CellGroup,
    Comparison,
    Finding,
    ValueRow,
    Verdict,
)
from tests.builders.campaigns import CAMPAIGN, arms


def compared(rows: Sequence[ValueRow], **changes: object) -> Comparison:
    names = sorted({r.configuration for r in rows} - {"base"})
    rounds = 1 + max(r.round for r in rows)
    record = replace(CAMPAIGN, rounds=rounds)
    return under_test.compare(record, arms(*names), rows, **changes)  # type: ignore[arg-type]


def only(comparison: Comparison) -> CellGroup:
    (group,) = comparison.groups
    return group


def verdicts(group: CellGroup) -> list[Verdict]:
    return [cell.verdict for cell in group.cells]


def codes(findings: Sequence[Finding]) -> list[str]:
    return [f.code for f in findings]
