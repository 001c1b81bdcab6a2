"""Typed reading of TOML tables: a wrong row is one error that names file, row and key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from mpigraft.errors import UsageError

Document = Mapping[str, Any]


def document(name: str) -> Document:
    """A TOML file of this package."""
    data = files("mpigraft.knowledge").joinpath(name).read_text(encoding="utf-8")
    return tomllib.loads(data)


@dataclass(slots=True)
class Table:
    """One TOML table. Every key is taken once; `done` refuses what nobody took."""

    where: str  # transports.toml, row openmpi-ob1-sm
    data: Any
    taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if not isinstance(self.data, dict):
            raise UsageError(f"{self.where}: not a table but {type(self.data).__name__}")

    def wrong(self, key: str, why: str) -> UsageError:
        return UsageError(f"{self.where}, key {key}: {why}")

    def _take(self, key: str, kind: type, default: Any) -> Any:
        self.taken.add(key)
        value = self.data.get(key, default)
        if value is None:
            raise self.wrong(key, "missing")
        # bool is an int and a str is a sequence to Python; neither is one here
        if type(value) is not kind:
            raise self.wrong(key, f"{value!r} is not {kind.__name__}")
        return value

    def text(self, key: str, default: str | None = None, *, empty: bool = False) -> str:
        value: str = self._take(key, str, default)
        if not value and default is None and not empty:
            raise self.wrong(key, "empty")
        return value

    def flag(self, key: str) -> bool | None:
        """True, False, or None where the key is absent."""
        return bool(self._take(key, bool, False)) if key in self.data else None

    def number(self, key: str, default: int) -> int:
        return int(self._take(key, int, default))

    def label(self, key: str) -> bool | str:
        """True or a name; False where the key is absent."""
        self.taken.add(key)
        value = self.data.get(key, False)
        if not isinstance(value, bool | str) or value == "":
            raise self.wrong(key, f"{value!r} is neither true nor a name")
        return value

    def texts(self, key: str, default: list[str] | None = None) -> tuple[str, ...]:
        values = self._take(key, list, default)
        if not all(isinstance(v, str) and v for v in values):
            raise self.wrong(key, "not a list of words")
        if len(set(values)) != len(values):
            raise self.wrong(key, "a word stands twice")
        return tuple(values)

    def words(self, key: str) -> tuple[tuple[str, str], ...]:
        """A table of names to texts, in the order of the file."""
        values = self._take(key, dict, {})
        for name, value in values.items():
            if not isinstance(value, str):
                raise self.wrong(f"{key}.{name}", f"{value!r} is not text")
        return tuple(values.items())

    def words_of_all(self) -> tuple[tuple[str, str], ...]:
        """Every key of this table with its text."""
        return tuple((name, self.text(name, empty=True)) for name in self.data)

    def table(self, key: str) -> Table:
        return Table(f"{self.where}, {key}", self._take(key, dict, {}))

    def tables(self, key: str) -> tuple[Table, ...]:
        rows = self._take(key, list, [])
        return tuple(Table(f"{self.where}, {key} {i}", row) for i, row in enumerate(rows, 1))

    def choice(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        value = self.text(key, default)
        if value not in choices and value != default:
            raise self.wrong(key, f"{value!r} is none of {', '.join(choices)}")
        return value

    def pattern(self, key: str, default: str | None = None, *, sample: str = "") -> str:
        """A regular expression; `sample` stands for its {lane} while it is tried."""
        value = self.text(key, default)
        try:
            re.compile(value.replace("{lane}", sample))
        except re.error as error:
            raise self.wrong(key, f"not a regular expression: {error}") from None
        return value

    def done(self) -> None:
        left = set(self.data) - self.taken
        if left:
            raise self.wrong(sorted(left)[0], "nobody knows this key")


@dataclass(frozen=True, slots=True)
class Range:
    """Versions from `low` up to, not including, `high`, as tuples of numbers; None is open."""

    low: tuple[int, ...] | None = None
    high: tuple[int, ...] | None = None

    def __contains__(self, version: tuple[int, ...]) -> bool:
        return (self.low is None or version >= self.low) and (
            self.high is None or version < self.high
        )

    def __str__(self) -> str:
        bounds = ((">=", self.low), ("<", self.high))
        return ",".join(f"{sign}{'.'.join(map(str, v))}" for sign, v in bounds if v is not None)

    def meets(self, other: Range) -> bool:
        """Whether some version is in both; `low` is in its range, so `high` decides."""
        lows = [r.low for r in (self, other) if r.low is not None]
        highs = [r.high for r in (self, other) if r.high is not None]
        return not lows or not highs or max(lows) < min(highs)


def version(text: str) -> tuple[int, ...]:
    """The numbers that a version begins with, without zeros at the end, so that 5.0 is 5:
    2.4.0-impi is (2, 4), 6.0.0rc2 is (6,)."""
    match = re.match(r"\d+(?:\.\d+)*", text.strip().removeprefix("v"))
    numbers = [int(n) for n in match.group().split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def version_range(table: Table, key: str) -> Range | None:
    """A range such as `>=2.2,<2.6`; None where the key is absent."""
    if key not in table.data:
        return None
    found: dict[str, tuple[int, ...]] = {}
    for part in table.text(key).split(","):
        match = re.fullmatch(r"\s*(>=|<)\s*(\d+(?:\.\d+)*)\s*", part)
        if not match or match.group(1) in found:
            raise table.wrong(key, f"{part.strip()!r} is not >=VERSION or <VERSION")
        found[match.group(1)] = version(match.group(2))
    span = Range(found.get(">="), found.get("<"))
    if not span.meets(span):
        raise table.wrong(key, "no version is in this range")
    return span
