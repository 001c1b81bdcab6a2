"""Limits of launches by suite or benchmark: `osu=300`, `osu:alltoall=900`."""

from __future__ import annotations

import math
from collections.abc import Iterable

from mpigraft.core.errors import UsageError
from mpigraft.knowledge import Given, as_written

MOST_LIMIT_S = 1_000_000_000


def read_limits(given: Given) -> tuple[str, ...]:
    """Read NAME=SECONDS words, or a table of seconds by name. Raises UsageError."""
    if not isinstance(given.value, dict):
        words = given.several(str)
        for word in words:
            _seconds(word, word.rpartition("=")[2], given.place)
        return words
    for name, value in given.value.items():
        _seconds(f"{name} = {as_written(value)}", value, given.place)
    return tuple(f"{name}={value:g}" for name, value in given.value.items())


def _seconds(shown: str, value: object, place: str) -> None:
    """Raise UsageError for what is no number of seconds."""
    try:
        number = float(value) if isinstance(value, (int, float, str)) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not 0 < number <= MOST_LIMIT_S or not shown.rpartition("=")[0]:
        raise UsageError.of("limit-invalid", place=place, text=shown)


def limits_by_name(limits: Iterable[str]) -> dict[str, float]:
    """{suite or benchmark: seconds}; of two of a name the last."""
    pairs = (word.rpartition("=") for word in limits)
    return {name: float(seconds) for name, _, seconds in pairs}


def narrowest_limit(limits: Iterable[str], key: str, own_s: float, usual_s: float) -> float:
    """Return seconds after which a launch of a benchmark is killed: the limit of its key, else of
    its name without options, else its own (0: it has none), else of its suite, else `usual_s`."""
    by_name = limits_by_name(limits)
    name = key.partition(",")[0]
    suite = by_name.get(name.partition(":")[0])
    return by_name.get(key) or by_name.get(name) or own_s or suite or usual_s
