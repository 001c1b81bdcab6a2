"""Keys of layouts, written and read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.core.model import BIND_TO, MAP_BY, MAX_COUNT, Layout, layout_key, parse_layout

LAYOUTS = st.builds(
    Layout,
    nodes=st.integers(1, 999),
    ranks_per_node=st.integers(1, 300),
    threads=st.integers(1, 20),
    bind=st.sampled_from(BIND_TO),
    map_by=st.sampled_from(MAP_BY),
    gpus=st.booleans(),
) | st.builds(Layout, ranks_per_node=st.integers(1, 300), explicit=st.just(True))


@pytest.mark.parametrize(
    "text",
    ["2", "1x0", "axb", "1x2x3x4", "1x2-tight", "0x2", "1x-2", "1x2:l3", "1x2+gpu", "1x2:", "",
     "1x2-none:numa", "1x2x0", "1x2 ", "\u0661x\u0662", "1x9999999"],
)  # fmt: skip
def test_a_layout_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_layout(text, 4)


def test_a_layout_is_read_from_its_key() -> None:
    assert parse_layout("1x4", 8) == Layout(1, 4)
    assert parse_layout("2x8x7:l3cache-numa+gpus", 56) == Layout(2, 8, 7, "numa", "l3cache", True)
    assert parse_layout("1x4x2-none", 8).key == "1x4x2-none"


def test_a_default_that_is_requested_is_a_layout_of_its_own() -> None:
    """Its launchers are told the CPUs: another command line, so never under the plain one's key."""
    for words in ("1x4:core", "1x4-core", "1x4:core-core"):
        said = parse_layout(words, 8)
        assert (said.key, said.plain) == ("1x4:core", False)
    assert (parse_layout("1x4", 8).key, parse_layout("1x4", 8).plain) == ("1x4", True)
    assert not parse_layout("1x4:node", 8).plain
    assert (
        parse_layout("1x4:core-none", 8) == parse_layout("1x4-none", 8) == Layout(1, 4, bind="none")
    )
    assert parse_layout("1x4:core", 2).key == "1x4-none"
    assert (
        parse_layout("1x4:core+gpus", 8)
        == parse_layout("1x4-core+gpus", 8)
        == Layout(1, 4, gpus=True)
    )


def test_more_ranks_than_cores_are_not_bound() -> None:
    assert parse_layout("1x4", 2).key == "1x4-none"
    assert parse_layout("1x2x4:numa", 4).key == "1x2x4:numa-none"
    with pytest.raises(UsageError, match="binds 4 ranks with one core each, of 2 in all"):
        parse_layout("1x4-core", 2)


@given(LAYOUTS)
def test_every_layout_comes_back_from_its_key(layout: Layout) -> None:
    assert parse_layout(layout.key, 1 << 20) == layout


@given(st.text(max_size=30))
def test_any_words_are_a_layout_or_refused(text: str) -> None:
    try:
        found = parse_layout(text, 64)
    except UsageError:
        return
    assert found.bind == "none" or found.ranks_per_node * found.threads <= 64
    assert parse_layout(found.key, 64) == found


def test_flags_make_a_key() -> None:
    assert layout_key(2, 8) == "2x8"
    assert layout_key(2, 8, 7, "l3cache", "numa", True) == "2x8x7:l3cache-numa+gpus"
    named = layout_key(2, 8, 1, "", "core", True)
    assert parse_layout(named, 8) == parse_layout("2x8+gpus", 8)
    with pytest.raises(UsageError, match="binds 8 ranks"):
        parse_layout(named, 7)  # a binding that was asked for by name
    assert layout_key(999_999, 999_999, 999_999) == "999999x999999x999999"
    for flags, named in (
        ((0, 8), "--nodes"), ((1, 0), "--ranks-per-node"), ((1, 1, -1), "--threads"),
        ((1_000_000, 1), "--nodes 1000000"), ((1, 10**30), "--ranks-per-node"),
        ((1, 1, 1, "l3"), "--map-by"), ((1, 1, 1, "", "node"), "--bind-to"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=named):
            layout_key(*flags)


@given(
    st.tuples(*[st.integers(1, MAX_COUNT)] * 3),
    st.sampled_from(["", *MAP_BY]),
    st.sampled_from(["", *BIND_TO]),
    st.booleans(),
)
def test_flags_and_words_mean_the_same(
    numbers: tuple[int, int, int], map_by: str, bind_to: str, gpus: bool
) -> None:
    nodes, ranks, threads = numbers
    found = parse_layout(layout_key(*numbers, map_by, bind_to, gpus), 1 << 60)
    assert (found.nodes, found.ranks_per_node, found.threads) == (nodes, ranks, threads)
    assert (found.map_by, found.bind) == (map_by or "core", bind_to or "core")
    assert found.gpus is gpus
    assert found.plain is (
        not gpus and (map_by, bind_to) in (("", ""), ("", "none"), ("core", "none"))
    )
