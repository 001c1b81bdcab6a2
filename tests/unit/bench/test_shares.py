"""What is left of a campaign for a share, on some nodes, after what was measured on which."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench.schedule.campaign import Step
from mpigraft.bench.shards import Made, abandoned_programs, pending_steps, refused_arms
from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    AllocationRecord,
    Configuration,
    EvidenceRecord,
    LaunchRecord,
    LaunchState,
    Layout,
    Shard,
)
from tests.builders.records import evidence, launch

LAYOUT = Layout()
A = AllocationRecord("a", "c", "2026-01-01", "n1", "{}", ("n1", "n2"))
B = AllocationRecord("b", "c", "2026-01-02", "n3", "{}", ("n3", "n4"))
AGAIN = replace(A, id="again", started="2026-01-03")
ONE, ALL = "n1,n2", Shard()


def configuration(key: str) -> Configuration:
    return Configuration(key, key, None, None)


STEPS = tuple(
    Step(number, slot, configuration(key), LAYOUT, replica)
    for number in range(4)
    for slot, (key, replica) in enumerate((("x", 0), ("y", 0), ("x", 1)))
)


def made(steps: Iterable[Step], on: AllocationRecord, **changes: object) -> list[LaunchRecord]:
    return [
        launch(
            s.round, allocation=on.id, configuration=s.configuration.key, layout=s.layout.key,
            slot=s.slot, replica=s.replica, **changes,
        )
        for s in steps
    ]  # fmt: skip


def todo(
    launches: Iterable[LaunchRecord],
    here: str = ONE,
    share: Shard = ALL,
    proofs: Iterable[EvidenceRecord] = (),
) -> list[Step]:
    return list(pending_steps(STEPS, share, Made([*launches], [*proofs], (A, B, AGAIN)), here))


@given(st.integers(1, 9), st.integers(1, 40))
def test_shares_part_the_rounds_evenly(of: int, rounds: int) -> None:
    parts = [[r for r in range(rounds) if Shard(k, of).has(r)] for k in range(1, of + 1)]
    assert sorted(r for part in parts for r in part) == list(range(rounds))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_share_is_left_its_own_rounds() -> None:
    assert {s.round for s in todo((), share=Shard(2, 3))} == {1}
    assert [*todo((), share=Shard(1, 2)), *todo((), share=Shard(2, 2))] != list(STEPS)
    assert len(todo((), share=Shard(1, 2))) == 6
    assert todo(()) == list(STEPS)


@given(st.integers(0, len(STEPS)))
def test_on_the_same_nodes_it_goes_on_with_the_next_launch(count: int) -> None:
    assert todo(made(STEPS[:count], A)) == list(STEPS[count:])


def test_in_another_job_on_the_same_nodes_too() -> None:
    assert todo([*made(STEPS[:4], A), *made(STEPS[4:5], AGAIN)]) == list(STEPS[5:])


def test_on_other_nodes_a_round_that_was_cut_is_measured_again() -> None:
    launches = made(STEPS[:4], A)  # round 0, and one launch of round 1
    assert todo(launches, here="n3,n4") == list(STEPS[3:])
    both = [*launches, *made(STEPS[3:5], B)]  # round 1 is whole on neither
    assert todo(both, here="n3,n4") == list(STEPS[5:])
    assert todo(both, here=ONE) == list(STEPS[4:])


def test_what_was_given_up_does_not_keep_a_round_open() -> None:
    bad = [*made(STEPS[1:2], A, state=LaunchState.FAILED),
           *made(STEPS[4:5], A, state=LaunchState.TIMEOUT)]  # fmt: skip
    good = made([s for s in STEPS if s.configuration.key == "x"], A)
    assert abandoned_programs(bad) == {("y", LAYOUT.key, "")}
    assert todo([*good, *bad], here="n3,n4") == []
    assert abandoned_programs([*bad, *made(STEPS[7:8], A)]) == set()
    assert abandoned_programs(bad[:1]) == set()


def test_what_was_refused_does_not_keep_a_round_open_on_its_nodes() -> None:
    wrong = replace(evidence("other"), ok=False)
    proof = EvidenceRecord("c", "y", LAYOUT.key, wrong, "a")
    good = made([s for s in STEPS if s.configuration.key == "x"], A)
    assert todo(good, here="n3,n4", proofs=[proof]) == []
    assert len(todo(good, here="n3,n4")) == len(STEPS)
    assert todo(made(STEPS[:2], B), here="n3,n4", proofs=[proof]) == list(STEPS[2:])


def test_a_refusal_holds_where_it_was_made() -> None:
    wrong = replace(evidence("other"), ok=False)
    here = EvidenceRecord("c", "x", "1x2", wrong, "a")
    proofs = [here, replace(here, configuration="y", allocation="b"),
              replace(here, configuration="z", allocation=""),
              replace(here, configuration="w", evidence=evidence("ob1-sm"))]  # fmt: skip
    assert refused_arms(Made((), proofs, (A, B, AGAIN)), ONE) == {("x", "1x2"), ("z", "1x2")}


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "/", "1/0", "-1/2", "1/2/3", "½/2", ""])
def test_a_share_that_is_none_is_refused(text: str) -> None:
    from mpigraft.cli.bench import read_share

    with pytest.raises(UsageError, match="K/J"):
        read_share(text)


def test_a_share_reads_as_it_is_written() -> None:
    from mpigraft.cli.bench import read_share

    assert read_share(str(Shard(2, 3))) == Shard(2, 3)
