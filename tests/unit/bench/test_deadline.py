"""A campaign that has until a time, and one that goes on without its baseline."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.bench import JobPart, pipeline
from mpigraft.core.errors import MpigraftError
from mpigraft.core.model import Evidence, EvidenceRecord, Finding, Level
from mpigraft.store import Store
from tests.builders.looks import BASE, Made, planned, run


def clock(monkeypatch: pytest.MonkeyPatch, made: Made) -> None:
    """A second for each launch that was made."""
    monkeypatch.setattr(time, "monotonic", lambda: float(len(made.steps)))


def test_nothing_starts_after_the_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made()
    clock(monkeypatch, made)
    asked = planned(monkeypatch, looks=())
    identity = run(monkeypatch, made, tmp_path, asked, part=JobPart(deadline=5.0))
    assert len(made.steps) == 5
    store = Store(tmp_path)
    assert len(store.launches(identity)) == 5
    assert store.allocations(identity)[0].ended
    made = Made()
    clock(monkeypatch, made)
    run(monkeypatch, made, tmp_path, asked, part=JobPart(deadline=0.0))
    assert made.steps == []


def test_without_a_deadline_all_rounds_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made()
    clock(monkeypatch, made)
    run(monkeypatch, made, tmp_path, planned(monkeypatch, looks=(), rounds=6))
    assert len(made.steps) == 6 * 4


@pytest.mark.parametrize(("apart", "launched"), [(False, 0), (True, 2 * 6)])
def test_only_a_check_goes_on_without_its_baseline(
    apart: bool, launched: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made()
    asked = planned(monkeypatch, looks=(), rounds=6)
    named = tuple(replace(c, named=True) for c in asked.configurations)
    base = next(c for c in named if c.id == BASE)
    asked = replace(asked, configurations=named, baseline=base)
    finding = Finding(Level.ERROR, "wrong", "it ran another transport")
    wrong = Evidence("x", "y", (), (finding,), (), ok=False)
    prove = pipeline._prove

    def proved(campaign: Any, part: Any, refused: Any, judge: Any, *rest: Any) -> Any:
        def look(configuration: Any, layout: Any) -> EvidenceRecord:
            record: EvidenceRecord = judge(configuration, layout)
            return replace(record, evidence=wrong) if configuration.key == base.key else record

        return prove(campaign, part, refused, look, *rest)

    monkeypatch.setattr(pipeline, "_prove", proved)
    with pytest.raises(MpigraftError):
        run(monkeypatch, made, tmp_path, asked, part=JobPart(apart=apart))
    assert len(made.steps) == launched
