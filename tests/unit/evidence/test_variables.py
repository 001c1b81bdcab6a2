"""What the program prints of an MPI's variables, read back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.evidence.variables.listing import Variable, parse
from tests.builders.variables import TRUTH, control, listed, performance

TEXT = st.text(max_size=20)
NUMBER = st.integers(-(2**63), 2**64 - 1)
VALUES = st.one_of(
    NUMBER, st.floats(allow_nan=False, allow_infinity=False), TEXT, st.lists(NUMBER, min_size=2)
)


def test_a_list() -> None:
    found = parse(
        listed(
            control("sm_eager", 4096, type="unsigned long"),
            control("show", 1, choices=TRUTH),
            control("range", [1, 9]),
            control("of_window", None, binding="window"),
            control("lost", None, fatal=True),
            performance("idle", 0.5),
            performance("idle"),
            version="An MPI 1.0\nbuilt somewhere",
            categories={"sm_eager": "btl_sm"},
        )
    )
    assert (found.version, found.initialised) == ("An MPI 1.0", False)
    eager, show, several, window, lost, first, second = found.variables
    assert (eager.value, eager.categories, eager.type) == (4096, ("btl_sm",), "unsigned long")
    assert show.word(show.value) == "1 (true)"
    assert several.word(several.value) == "1:9"
    assert (window.value, window.binding, window.word(window.value)) == (None, "window", "?")
    assert lost.fatal
    assert (first.key, second.key) == (("performance", "idle", 0), ("performance", "idle", 1))
    assert (first.value, second.value, first.sort) == (0.5, None, "counter")


def test_what_libraries_print_between_is_passed_over() -> None:
    lines = listed(control("a", 1), control("b", 2)).splitlines(keepends=True)
    noisy = b"MPI startup(): hello\n".join(lines) + b'\xff\xfe no text\n{"other": 1}\n'
    assert parse(noisy) == parse(b"".join(lines))


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_a_list_that_was_cut_short_is_none(cut: int) -> None:
    lines = listed(control("a", 1)).splitlines(keepends=True)
    with pytest.raises(ValueError, match="cut short"):
        parse(b"".join(lines[:cut]))
    with pytest.raises(ValueError, match=r"cut short|broken"):
        parse(b"".join(lines)[:-4])


@pytest.mark.parametrize(
    "line",
    [
        {"mpigraft": "control", "index": 0},
        {**control("a", True), "index": 0},
        {**control("a", {"b": 1}), "index": 0},
        {**control("a", float("nan")), "index": 0},
        {**control("a", 1, choices=[[1]]), "index": 0},
        {**control("a", 1, choices=[["x", "y"]]), "index": 0},
        {"mpigraft": "category", "name": "x", "control": 3, "performance": []},
    ],
)
def test_a_line_that_is_not_the_programs_is_refused(line: dict[str, object]) -> None:
    lines = listed().splitlines(keepends=True)
    bad = json.dumps(line, separators=(",", ":")).encode() + b"\n"
    with pytest.raises(ValueError, match="malformed"):
        parse(lines[0] + bad + lines[-1])


@given(st.dictionaries(TEXT, VALUES, max_size=6))
def test_names_and_values_come_back(values: dict[str, object]) -> None:
    found = parse(listed(*(control(name, value) for name, value in values.items())))
    expected = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
    assert {v.name: v.value for v in found.variables} == expected


@given(st.lists(st.one_of(st.binary(), st.binary().map(lambda b: b'{"mpigraft":' + b))))
def test_any_bytes_are_a_list_or_an_error(lines: list[bytes]) -> None:
    whole = listed(control("a", 1)).splitlines()
    for text in (b"\n".join(lines), b"\n".join([whole[0], *lines, *whole[1:]])):
        try:
            found = parse(text)
        except ValueError:
            continue
        assert all(isinstance(v, Variable) for v in found.variables)
