"""Rows and tells as they are read: every wrong one is one error, and no two are meant at once."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Family, Kind
from mpigraft.knowledge import load_document, version_numbers
from mpigraft.knowledge.issues import read_issues
from mpigraft.knowledge.transports import match
from mpigraft.knowledge.transports.rows import (
    TransportRow,
    When,
    known_flags,
    plain_words,
    read_tells,
    read_transports,
)
from mpigraft.knowledge.versions import Range
from tests.builders.messages import matches, shows

# ------------------------------------------------------------------ what is refused


def files() -> tuple[dict[str, Any], dict[str, Any]]:
    return (
        copy.deepcopy(dict(load_document("transports.toml"))),
        copy.deepcopy(dict(load_document("families.toml"))),
    )


def refusal(change: Callable[[dict[str, Any]], object], index: int = 0) -> str:
    """The message when one row of transports.toml is changed."""
    transports, families = files()
    change(transports["transport"][index])
    with pytest.raises(UsageError) as caught:
        read_transports(transports, read_tells(families))
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("id", "", "key id: is empty"),
        ("name", 3, "key name: must be a text, not 3"),
        ("name", True, "key name: must be a text, not true"),
        ("family", "openmp", "key family: 'openmp' is unknown"),
        ("peers", ["near"], "key peers: 'near' is unknown"),
        ("peers", [], "key peers: is empty"),
        ("peers", "self", "key peers: must be a list, not 'self'"),
        ("peers", ["self", "self"], "key peers: repeats a word"),
        ("when", {"mpi": "5.0"}, "when, key mpi: '5.0' is not >=VERSION"),
        ("when", {"mpi": ">=5,<5"}, "when, key mpi: no version is in this range"),
        ("when", {"mpi": ">=5,>=6"}, "when, key mpi: '>=6' is not"),
        ("when", {"cxi": "yes"}, "when, key cxi: must be true or false, not 'yes'"),
        ("when", {"cix": True}, "when, key cix: unknown key"),
        ("needs", {"components": ["pml"]}, "needs, key components: 'pml' is not framework:name"),
        ("needs", {"fabric": "gemini"}, "needs, key fabric: 'gemini' is none of cxi, verbs"),
        ("needs", {"gpu": "cuda"}, "needs, key gpu: 'cuda' is unknown"),
        ("needs", {"copy": "dma"}, "needs, key copy: 'dma' is unknown"),
        ("needs", {"cxi": True}, "needs, key cxi: unknown key"),
        ("when", {"ucx": "1.19"}, "when, key ucx: '1.19' is not >=VERSION"),
        ("variant", "yes", "key variant: must be true or false, not 'yes'"),
        ("each", {"a": "b"}, "key each: {'a': 'b'} is not list"),
        ("each", [{"a": 1}], "each 1, key a: must be a text, not 1"),
        ("modules", "cray-mpich", "key modules: must be a list of texts, not 'cray-mpich'"),
        ("env", {"X": "{nic}"}, "key env.X: unknown fact 'nic'"),
        ("env", {"X": 1}, "key env.X: must be a text, not 1"),
        ("env", {"a b": "1"}, "key env.a b: not a name of the environment"),
        ("env", {}, "key env: nothing is forced"),
        ("signs", [], "key signs: p2p on-node has no sign that names the lane"),
        ("signs", [{"tell": "nothing", "expect": "x"}], "key tell: openmpi has no tell"),
        ("signs", [{"tell": "pml", "expect": "("}], "key expect: not a regular expression"),
        ("signs", [{"tell": "pml", "expect": "x", "wire": "lo"}], "key wire: 'lo' is unknown"),
        ("signs", [{"tell": "pml", "expect": "x", "wire": "none"}], "key wire: only a sign that"),
        (
            "signs",
            [{"tell": "pml", "expect": "x", "kinds": ["all"]}],
            "key kinds: 'all' is unknown",
        ),
        (
            "signs",
            [{"tell": "pml", "expect": "x", "lane": 3}],
            "key lane: must be true, false or a name",
        ),
        ("signs", [{"use": "nothing"}], "key use: unknown group nothing"),
        ("signs", [1], "signs 1: not a table but int"),
        ("unreported", ["one-sided"], "one-sided on-node names the lane although unreported"),
        ("extra", 1, "key extra: unknown key"),
        ("sources", None, "key sources: missing"),
    ],
)
def test_a_wrong_row_is_one_error_that_names_row_and_key(key: str, value: Any, says: str) -> None:
    message = refusal(lambda row: row.__setitem__(key, value))
    assert message.startswith("transports.toml, "), message
    assert says in message


def test_a_file_that_is_no_toml_is_one_error_with_file_and_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "transports.toml").write_text("[[transport]]\nid = \n")
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    with pytest.raises(UsageError, match=r"knowledge/transports\.toml: not a TOML.*line 2"):
        load_document("transports.toml")


@pytest.mark.parametrize("key", ["id", "name", "family", "sources"])
def test_a_missing_key_is_named(key: str) -> None:
    assert shows(refusal(lambda row: row.pop(key)), key)


def several(change: Callable[[dict[str, Any]], object]) -> tuple[TransportRow, ...]:
    """The rows when the first stands for two."""
    transports, families = files()
    first = transports["transport"][0]
    first |= {"id": "both-<one>", "name": "<one>", "each": [{"one": "a"}, {"one": "b"}]}
    change(first)
    return read_transports(transports, read_tells(families))


def test_a_row_may_stand_for_several() -> None:
    def change(row: dict[str, Any]) -> None:
        row["env"] = {"OMPI_MCA_pml": "ob1", "SET_<x>": "kept", "TO": "<one>,<one>"}
        row["sources"] = ["<one>"]

    with pytest.raises(UsageError, match="not a name of the environment"):
        several(change)  # names are not filled: a table's keys are read by programs
    found = several(lambda row: row.__setitem__("env", {"TO": "<one>,<one>"}))[:2]
    assert [(row.id, row.name, row.env) for row in found] == [
        ("both-a", "a", (("TO", "a,a"),)),
        ("both-b", "b", (("TO", "b,b"),)),
    ]


def test_a_place_without_a_word_is_refused() -> None:
    with pytest.raises(UsageError, match="key each: no word is given for <two>"):
        several(lambda row: row.__setitem__("broken", "<two>"))
    with pytest.raises(UsageError, match="two rows are called same"):
        several(lambda row: row.__setitem__("id", "same"))


def test_groups_of_a_pattern_are_no_places() -> None:
    def change(row: dict[str, Any]) -> None:
        row["signs"][0]["expect"] = "ob1(?P<mine>)"
        row["signs"][0]["words"] = "ob1"

    assert len(several(change)) > 2


def test_what_is_expected_is_reported_in_words() -> None:
    def change(row: dict[str, Any]) -> None:
        row["signs"][0]["expect"] = r"ob\d+"

    assert "a person cannot read" in refusal(change)
    for expect, words in (
        ("sm|rdma", "sm or rdma"),
        ("tcp(;ofi_rxm)?", "tcp or tcp;ofi_rxm"),
        (r"shm\+tcp;ofi_rxm:lnx", "shm+tcp;ofi_rxm:lnx"),
        (r"cxi\d+", ""),
        ("[^)]+", ""),
        ("", ""),
    ):
        assert plain_words(expect) == words


def test_the_pattern_of_a_tell_has_its_lane_once() -> None:
    pml = {"pattern": "{lane}", "lane": "x", "source": "y", "says": "nothing"}
    with pytest.raises(UsageError, match="must be in it once"):
        read_tells({"openmpi": {"tells": {"pml": pml}}})


def test_a_family_may_tell_what_another_tells() -> None:
    tells = read_tells(load_document("families.toml"))
    assert tells[Family.MVAPICH] == tells[Family.MPICH]
    own = tells[Family.CRAY_MPICH]
    assert own["locality"] == tells[Family.MPICH]["locality"]
    assert own["provider"] != tells[Family.MPICH]["provider"]
    with pytest.raises(UsageError, match="no family intel above it"):
        read_tells({"mpich": {"like": "intel"}})


def test_messages_may_not_be_untold() -> None:
    def change(row: dict[str, Any]) -> None:
        row["signs"] = []
        row["unreported"] = list(Kind)

    assert "key unreported: messages must be reported" in refusal(change)


def test_an_id_stands_once() -> None:
    def change(row: dict[str, Any]) -> None:
        row["id"], row["name"] = "openmpi-ob1-tcp", "another"

    assert matches(refusal(change), "table-rows-twice", name="openmpi-ob1-tcp")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"pattern": "x"}, "{lane} must be in it once"),
        ({"pattern": "{lane}{lane}"}, "not a regular expression|{lane} must be in it once"),
        ({"pattern": "({lane}"}, "not a regular expression"),
        ({"lane": "("}, "key lane: not a regular expression"),
        ({"peers": ["far"]}, "key peers"),
        ({"env": {"A": 1}}, "key env.A"),
        ({"more": 1}, "key more: unknown key"),
    ],
)
def test_a_wrong_tell_is_named(change: dict[str, Any], says: str) -> None:
    _, families = files()
    families["openmpi"]["tells"]["pml"].update(change)
    with pytest.raises(UsageError, match=r"families\.toml, openmpi, tells, pml") as caught:
        read_tells(families)
    assert re.search(says.replace("{", r"\{"), str(caught.value))


def test_tells_of_no_family_are_refused() -> None:
    with pytest.raises(UsageError, match="unknown family lam"):
        read_tells({"lam": {"tells": {}}})


def test_two_tells_of_a_row_may_not_disagree() -> None:
    transports, families = files()
    families["openmpi"]["tells"]["coll"]["env"] = {"OMPI_MCA_pml_base_verbose": "20"}
    with pytest.raises(UsageError, match="another tell of this row sets OMPI_MCA_pml_base_verbose"):
        read_transports(transports, read_tells(families))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"detect": {"text": "("}}, "row LNX-01, detect, key text: is not a regular expression"),
        ({"detect": {"text": ""}}, "row LNX-01, detect, key text: is empty"),
        ({"detect": {"curve": {"shape": "dent"}}}, "detect, curve, key shape: 'dent' is unknown"),
        ({"detect": {"curve": {"shape": "plateau"}}}, "key rate: only a plateau has one"),
        ({"detect": {"ratio": {"sizes": "8..4"}}}, "ratio, key sizes: '8..4' ends before"),
        ({"setting": ["a b"]}, "row LNX-01, key setting: 'a b' is not NAME=VALUE"),
        ({"fix": ""}, "row LNX-01, key fix: is empty"),
        ({"sources": "x"}, "row LNX-01, key sources: must be a list of texts, not 'x'"),
        ({"more": "x"}, "row LNX-01, key more: unknown key"),
        ({"id": "LNX-02"}, "two rows are called LNX-02"),
    ],
)
def test_a_wrong_issue_is_named(change: dict[str, Any], says: str) -> None:
    data = copy.deepcopy(dict(load_document("issues.toml")))
    data["issue"][0].update(change)
    with pytest.raises(UsageError) as caught:
        read_issues(data)
    assert says in str(caught.value)


def test_a_row_may_name_known_issues_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(match, "known_issues", tuple)
    match.transport_rows.cache_clear()
    try:
        with pytest.raises(UsageError, match="key issues: unknown"):
            match.transport_rows()
    finally:
        monkeypatch.undo()
        match.transport_rows.cache_clear()
    assert match.transport_rows()


# ------------------------------------------------------------------ one row for a wish

FLAGS = known_flags()
NUMBERS = st.lists(st.integers(0, 9), min_size=1, max_size=3).map(tuple)
VERSIONS = NUMBERS.map(lambda v: version_numbers(".".join(map(str, v))))
BOUNDS = st.one_of(st.none(), VERSIONS.filter(bool))


@st.composite
def ranges(draw: st.DrawFn) -> Range:
    low, high = draw(BOUNDS), draw(BOUNDS)
    if low is not None and high is not None:
        low, high = sorted([low, high])
        if low == high:
            high = (*high, 1)
    return Range(low, high)


WHENS = st.builds(
    When,
    mpi=st.one_of(st.none(), ranges()),
    libfabric=st.one_of(st.none(), ranges()),
    ucx=st.one_of(st.none(), ranges()),
    flags=st.dictionaries(st.sampled_from(FLAGS), st.booleans()).map(lambda d: tuple(d.items())),
)


def meant(when: When, versions: tuple[tuple[int, ...], ...], flags: dict[str, bool]) -> bool:
    return all(
        span is None or found in span
        for span, found in zip((when.mpi, when.libfabric, when.ucx), versions, strict=True)
    ) and all(flags[name] is wanted for name, wanted in when.flags)


@given(
    WHENS, WHENS, st.tuples(VERSIONS, VERSIONS, VERSIONS), st.tuples(*[st.booleans()] * len(FLAGS))
)
def test_rows_that_do_not_overlap_are_never_both_meant(
    one: When, two: When, versions: tuple[tuple[int, ...], ...], on: tuple[bool, ...]
) -> None:
    flags = dict(zip(FLAGS, on, strict=True))
    if meant(one, versions, flags) and meant(two, versions, flags):
        assert one.overlaps(two)
        assert two.overlaps(one)


@given(ranges(), ranges())
def test_ranges_that_meet_have_a_version_in_both(one: Range, two: Range) -> None:
    lows = [r.low for r in (one, two) if r.low is not None]
    witness = max(lows, default=())
    assert one.meets(two) is (witness in one and witness in two)


FIRST = load_document("transports.toml")["transport"][0]
GROUPS = load_document("transports.toml")["groups"]
TELLS = read_tells(load_document("families.toml"))


@given(WHENS)
def test_any_two_rows_for_one_request_are_an_error(when: When) -> None:
    """Whatever a row asks for, a second one of its name that asks for the same is refused."""
    table: dict[str, Any] = {}
    for key, span in (("mpi", when.mpi), ("libfabric", when.libfabric), ("ucx", when.ucx)):
        if span is not None and (span.low or span.high):
            table[key] = str(span)
    table |= dict(when.flags)
    pair = [{**FIRST, "id": name, "when": table} for name in ("one", "two")]
    both = {"groups": GROUPS, "transport": pair}
    with pytest.raises(UsageError, match="rows one and two can both be meant by openmpi ob1-sm"):
        read_transports(both, TELLS)
