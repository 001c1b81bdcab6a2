"""Errors: a code each, three parts each."""

from __future__ import annotations

import pickle

import pytest

from mpigraft.core import errors
from mpigraft.core.errors import MpigraftError
from tests.builders.messages import matches

CODES = {
    "MpigraftError": 2,
    "CheckFailed": 1,
    "UsageError": 2,
    "MissingError": 3,
    "LaunchFailed": 4,
    "TransportMismatch": 5,
    "NotJudged": 6,
}


def classes() -> list[type[MpigraftError]]:
    found = [v for v in vars(errors).values() if isinstance(v, type)]
    return [v for v in found if issubclass(v, MpigraftError)]


def test_the_codes_are_those_of_the_design() -> None:
    assert {c.__name__: c.exit_code for c in classes()} == CODES
    assert {*MpigraftError.__subclasses__()} < {*classes()}, "errors stand in one file"


@pytest.mark.parametrize("kind", classes())
def test_a_message_says_what_why_and_what_to_do(kind: type[MpigraftError]) -> None:
    error = kind("it broke", why="it mattered", fix="mend it")
    assert (error.message, error.why, error.fix) == ("it broke", "it mattered", "mend it")
    first, *labelled = str(error).splitlines()
    assert first == error.message
    assert [line.partition(": ")[2] for line in labelled] == [error.why, error.fix]


def test_parts_that_are_not_there_are_not_shown() -> None:
    assert str(MpigraftError("it broke")) == "it broke"
    first, fix = str(MpigraftError("it broke", fix="mend it")).splitlines()
    assert (first, fix.partition(": ")[2]) == ("it broke", "mend it")


def test_an_error_keeps_its_parts_between_processes() -> None:
    error = pickle.loads(pickle.dumps(errors.UsageError.of("margin-invalid", text="abc")))
    assert error.code == "margin-invalid"
    assert matches(error, "margin-invalid", text="abc")
    assert error.fix in str(error)
