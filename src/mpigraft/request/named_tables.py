"""Tables by name, `[app.NAME]` and `[setting.NAME]`: of a campaign file, a command line or a stored
plan. All three are read and refused alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Any, Generic, TypeVar

from mpigraft.core.errors import UsageError
from mpigraft.core.parsers import parse_toml
from mpigraft.knowledge import Given
from mpigraft.request.options import (
    Options,
    by_key,
    line_of,
    options_of,
    read_option,
    with_options,
)

Row = TypeVar("Row")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


@dataclass(frozen=True, slots=True)
class NamedTables(Generic[Row]):
    """How tables of one kind are read. The kind has a field `name` and a default for each field;
    `refuse` raises UsageError, which names a place, for a row that cannot be used."""

    key: str  # of a campaign file: app
    kind: type[Row]
    refuse: Callable[[Row, str], None]
    # A row of another word of the command line: NAME:TEXT; None: it is none.
    short: Callable[[str, str], Row | None] = lambda _, __: None

    @property
    def options(self) -> Options:
        kind: Any = self.kind
        return options_of(kind)

    def read(self, given: Given) -> tuple[Row, ...]:
        """Read a table of tables by name; of the command line NAME={KEY = VALUE, ...} words; of a
        stored plan a list. Raises UsageError."""
        value = given.value
        if isinstance(value, dict):
            named = value.items()
            return tuple(self.row(name, table, f"{given.place}.{name}") for name, table in named)
        if not isinstance(value, (list, tuple)):
            raise given.unfit("a table of tables")
        rows = tuple(self._one(each, given) for each in value)
        names = [getattr(row, "name", "") for row in rows]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise UsageError.of("named-table-twice", place=given.place, name=twice[0])
        return rows

    def _one(self, value: Any, given: Given) -> Row:
        if isinstance(value, self.kind):
            return value
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            pairs = ((key, one) for key, one in by_key(self.kind, value) if key in self.options)
            unset: tuple[object, ...] = ("", 0.0, [], ())
            table = {key: one for key, one in pairs if key != "name" and one not in unset}
            return self.row(value["name"], table, given.place)
        if not isinstance(value, str):
            raise given.unfit("NAME={KEY = VALUE, ...}")
        if (short := self.short(value, given.place)) is not None:
            return short
        name, _, text = value.partition("=")
        try:
            table = parse_toml(f"row = {text}")["row"]
        except ValueError as error:
            raise UsageError.of(
                "named-table-not-toml", place=given.place, text=value, error=error
            ) from None
        return self.row(name.strip(), table, f"{given.place} {name.strip()}")

    def row(self, name: str, table: Any, place: str) -> Row:
        """Read one table. Raises UsageError, which names `place`."""
        if not NAME.fullmatch(name):
            raise UsageError.of("named-table-name", place=place, name=name)
        if not isinstance(table, Mapping):
            raise UsageError.of("named-table-form", place=place, key=self.key)
        values = {k: read_option(self.options, k, value, place) for k, value in table.items()}
        row = with_options(self.kind(), {**values, "name": name})
        self.refuse(row, place)
        return row

    def refuse_lines(self, tables: Mapping[str, Any], text: str, path: Path, after: int) -> None:
        """Raise UsageError with the file and line of a key that cannot be used."""
        for name, table in tables.items():
            line = line_of(name, text, self.key, after)
            for key, value in table.items() if isinstance(table, dict) else ():
                below = line_of(key, text, after=line)
                read_option(self.options, key, value, f"{path}:{below}")
            self.row(name, table, f"{path}:{line}: {self.key}.{name}")


def table_word(row: Any) -> str:
    """Return what follows the flag of a row: TOML's strings and lists are written as JSON's."""
    kind: Any = type(row)
    usual = kind()
    options = options_of(kind).items()
    values = ((key, one.value(row), one.value(usual)) for key, one in options if key != "name")
    table = (f"{key}={dumps(v, ensure_ascii=False)}" for key, v, default in values if v != default)
    return f"{row.name}={{{', '.join(table)}}}"


def beside(own: tuple[Row, ...], others: tuple[Row, ...]) -> tuple[Row, ...]:
    """Return the rows of a file and those of flags, which replace one of the same name."""
    names = {getattr(row, "name", "") for row in own}
    return (*(row for row in others if getattr(row, "name", "") not in names), *own)
