"""Canonical JSON: one text and one digest for one value, in every process."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core import serialize
from mpigraft.core.model import Peer, ProofStatus
from mpigraft.core.process import command

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS.filter(lambda v: v not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


class Number(Enum):
    ONE = 1


@dataclass(frozen=True)
class Inner:
    path: Path
    peer: Peer


@dataclass(frozen=True)
class Outer:
    inner: tuple[Inner, ...]
    names: frozenset[str]
    table: dict[Any, int]


def test_values_of_the_model_become_plain() -> None:
    inner = Inner(Path("/a/b"), Peer.ON_NODE)
    value = Outer(
        (inner,), frozenset({"b", "a"}), {Peer.SELF: 1, Number.ONE: 2, Path("/c"): 3, 4: 5}
    )
    assert serialize.plain(value) == {
        "inner": [{"path": "/a/b", "peer": "on-node"}],
        "names": ["a", "b"],
        "table": {"self": 1, "1": 2, "/c": 3, "4": 5},
    }


@given(value=VALUES)
def test_canonical_text_is_the_value(value: Any) -> None:
    assert json.loads(serialize.canonical(value)) == value
    assert serialize.plain(serialize.plain(value)) == serialize.plain(value)


@given(value=st.dictionaries(st.text(), st.integers(), min_size=2))
def test_the_order_of_keys_does_not_count(value: dict[str, int]) -> None:
    turned = dict(reversed(value.items()))
    assert serialize.canonical(turned) == serialize.canonical(value)
    assert serialize.digest(turned) == serialize.digest(value)
    more = {**value, "".join(value) + "x": 1}
    assert serialize.digest(more) != serialize.digest(value)


def test_canonical_text_is_ascii_without_blanks() -> None:
    text = serialize.canonical({"ü": [1, 2.5, None], "a b": True})
    assert text == '{"a b":true,"\\u00fc":[1,2.5,null]}'
    assert (
        serialize.digest({"ü": [1, 2.5, None], "a b": True})
        == hashlib.sha256(text.encode()).hexdigest()
    )


def test_a_set_has_one_digest_in_every_process() -> None:
    """The order of a set of strings changes with the process's hash seed."""
    source = "from mpigraft.core.serialize import digest; "
    source += "print(digest({c * 3 for c in 'abcdefghij'}))"
    seen = set()
    for seed in ("1", "2", "3"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)}
        done = command.run_command([sys.executable, "-c", source], env=environment)
        assert done.ok, done.text()
        seen.add(done.text())
    assert len(seen) == 1


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1, {"x": float("-inf")}]])
def test_what_json_has_no_number_for_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        serialize.canonical(value)
    with pytest.raises(ValueError, match="JSON"):
        serialize.document(value=value)


def test_a_document_starts_with_the_schema() -> None:
    text = serialize.document(mpis=[ProofStatus.PROVEN], path=Path("/x"))
    assert list(json.loads(text)) == ["schema", "mpis", "path"]
    assert json.loads(text) == {"schema": serialize.SCHEMA, "mpis": ["proven"], "path": "/x"}
