"""Evidence as JSON comes back as it was, and what ranks share is written and held once."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import EvidenceRecord, MappedLibrary, RankRecord
from mpigraft.core.serialize import canonical, plain
from mpigraft.store import Store
from mpigraft.store.evidence_columns import flatten_evidence, revive_evidence
from tests.builders.records import CAMPAIGN, evidence

text = st.text(max_size=6)
number = st.integers(-1, 2**63)
libraries = st.lists(st.builds(MappedLibrary, text, number, number), max_size=3).map(tuple)
lists = st.lists(number, max_size=3).map(tuple)
texts = st.lists(text, max_size=2).map(tuple)
rank = st.builds(
    RankRecord, number, number, text, number, text, lists, libraries, lists, texts, texts, text
)
ranks = st.lists(rank, max_size=5).flatmap(
    lambda some: st.lists(st.sampled_from(some), max_size=9) if some else st.just([])
)


@given(ranks)
def test_evidence_comes_back(told: list[RankRecord]) -> None:
    one = replace(evidence("ob1-sm"), ranks=tuple(told))
    assert revive_evidence(json.loads(canonical(flatten_evidence(one)))) == one
    assert revive_evidence(json.loads(canonical(plain(one)))) == one  # stores of version 2


def a_world(nodes: int, per_node: int) -> tuple[RankRecord, ...]:
    """Nodes that see a file server's disk under other numbers each."""
    return tuple(
        RankRecord(
            node * per_node + seat, nodes * per_node, f"nid{node:06}", 1000 + seat, "Open MPI v5",
            (seat,), tuple(MappedLibrary(f"/opt/lib/lib{n}.so", 40 + node, n) for n in range(50)),
        )
        for node in range(nodes)
        for seat in range(per_node)
    )  # fmt: skip


def test_a_rank_costs_numbers_and_no_paths() -> None:
    few, many = (
        canonical(flatten_evidence(replace(evidence("x"), ranks=a_world(n, 32)))) for n in (2, 64)
    )  # fmt: skip
    alone = canonical(flatten_evidence(replace(evidence("x"), ranks=a_world(64, 1))))
    assert many.count("/opt/lib/lib7.so") == many.count("Open MPI v5") == 1
    assert many.count('"nid000001"') == 1
    assert (len(many) - len(few)) / (62 * 32) < 25  # bytes per rank; an object each: 3,000
    assert len(alone) - len(few) < 64 * 60  # nor has a node more than its name and its disks


def test_ranks_share_in_memory_what_they_have_in_common(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.writer() as writer:
        told = replace(evidence("x"), ranks=a_world(2, 4))
        writer.add_evidence(EvidenceRecord(CAMPAIGN.id, "k0", "2x4", told, "a1"))
    (back,) = store.evidence(CAMPAIGN.id)
    assert back.evidence == told
    assert len({id(r.libraries) for r in back.evidence.ranks}) == 2
    assert len({id(r.library_version) for r in back.evidence.ranks}) == 1


def damaged(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(
        canonical(flatten_evidence(replace(evidence("x"), ranks=a_world(2, 2))))
    )
    change(told["ranks"])
    return told


DAMAGE: tuple[Callable[[dict[str, Any]], object], ...] = (
    lambda ranks: ranks.pop("count"),
    lambda ranks: ranks.update(count=-1),
    lambda ranks: ranks.update(count=True),
    lambda ranks: ranks.update(count=5),
    lambda ranks: ranks.update(count=1 << 40),
    lambda ranks: ranks.update(columns=[]),
    lambda ranks: ranks["columns"].pop("pid"),
    lambda ranks: ranks["columns"].update(host=["n1"]),
    lambda ranks: ranks["columns"]["host"].update(values="n1"),
    lambda ranks: ranks["columns"]["host"].update(values=["n1"]),
    lambda ranks: ranks["columns"]["host"].update(values=[]),
    lambda ranks: ranks["columns"]["host"].update(values=["n1", 2]),
    lambda ranks: ranks["columns"]["host"].update(which=[0, 0, 1]),
    lambda ranks: ranks["columns"]["host"].update(which=[0, 0, 1, 2]),
    lambda ranks: ranks["columns"]["host"].update(which=[0, 0, 1, -1]),
    lambda ranks: ranks["columns"]["host"].update(which=[0, 0, 1, True]),
    lambda ranks: ranks["columns"]["host"].update(which="0011"),
    lambda ranks: ranks["columns"].pop("libraries.inode"),
    lambda ranks: ranks["columns"].pop("libraries.device"),
    lambda ranks: ranks["columns"]["libraries.disk"].update(values=[[-1] * 50]),
    lambda ranks: ranks["columns"]["libraries.disk"].update(values=[[1] * 50]),
    lambda ranks: ranks["columns"]["libraries.inode"].update(values=[[1]]),
)


@pytest.mark.parametrize("change", DAMAGE)
def test_damage_is_refused(change: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        revive_evidence(damaged(change))


def test_what_another_version_wrote_is_passed_over_or_has_its_default() -> None:
    told = damaged(lambda ranks: ranks["columns"].update(color={"values": ["red"]}))
    told["ranks"]["columns"].pop("boot")
    assert revive_evidence(told).ranks == a_world(2, 2)


KEYS = st.sampled_from(["count", "columns", "values", "which", "host"])
document = st.recursive(
    st.none() | st.booleans() | number | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
)


@given(document)
def test_no_document_is_another_error(value: Any) -> None:
    told = flatten_evidence(evidence("x"))
    for change in ({**told, "ranks": value}, value):
        with contextlib.suppress(ValueError, TypeError):
            assert revive_evidence(change).ranks == ()  # no rank, in the old form
