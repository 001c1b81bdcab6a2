"""Read tables into dataclasses: rows of TOML, campaign files, site profiles and flags.

The class of a row says what its table may hold. A field's type says how its value is read, its
default that the key may be absent, and its `Rules` which of those values are valid. One reader
serves all sources, so that each refuses the same values in the same words: one error, which names
file, row and key. What rules cannot say, `__post_init__` checks: it raises RowError.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from mpigraft.core.errors import UsageError
from mpigraft.core.numbers import read_size

Document = Mapping[str, Any]
Row = TypeVar("Row")
QUOTE = '"'
NEVER = r"(?!)()"  # a pattern that matches nothing, with one group
KINDS: Mapping[Any, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
    str: (str, "a text"),
}


class RowError(Exception):
    """What is wrong with the value of a key; the reader adds the file and the row."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(key, why)
        self.key, self.why = key, why


@dataclass(frozen=True, slots=True)
class Rules:
    """What is valid for one field. Numbers are bounded where `most` is not 0."""

    key: str = ""  # where it is not the field's name
    words: Collection[str] = ()  # the valid ones; empty: any
    nonempty: bool = False  # of a list
    rest: bool = False  # takes all keys of no other field
    other: bool = False  # is not read at all
    # An option has an example, as a TOML file has it. One value is a list of one there,
    # and texts may be empty or repeat.
    example: str = ""
    flag: str = ""  # where it is not the key with hyphens
    most: int = 0
    zero: bool = False  # is valid
    size: bool = False  # bytes, which may have a unit
    plural: bool = False  # one value is not a list of one
    commas: bool = False  # one text may have several values; paths are whole
    axis: bool = False  # one of those that make layouts together
    site: bool = False  # a site's profile may have it in [run]
    # Of a command line: help, the words shown for the value and for the default, spellings where
    # they are not the flag alone, the panel of --help-all, and whether only that shows it.
    help: str = ""
    metavar: str = ""
    usual: str | bool = True  # True: the default itself
    names: tuple[str, ...] = ()
    panel: str = ""
    rare: bool = False
    read: Callable[[Given], Any] | None = None  # for what no type says


def toml(key: str = "", **rules: Any) -> dict[str, Any]:
    """Describe a field by its `Rules`, as its metadata."""
    return {"rules": Rules(key, **rules)}


def rules_of(field: dataclasses.Field[Any]) -> Rules:
    rules: Rules = field.metadata.get("rules", PLAIN)
    return rules


PLAIN = Rules()


def load_document(name: str) -> Document:
    """Read a TOML file of this package. Raises UsageError for one that is none."""
    import tomllib
    from importlib.resources import files

    text = files("mpigraft.knowledge").joinpath(name).read_text(encoding="utf-8")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError.of("not-toml", path=f"knowledge/{name}", error=error) from error


def load_table(kind: type[Row], name: str) -> Row:
    """Return the rows of a TOML file of this package, read and checked once. Raises UsageError for
    a wrong one."""
    return typing.cast(Row, _loaded(typing.cast(Any, kind), name))


def load_rows(kind: type[Row], key: str, name: str) -> tuple[Row, ...]:
    """Return one list of rows of a TOML file of this package, read and checked once. Raises
    UsageError for a wrong one."""
    return typing.cast(tuple[Row, ...], _loaded(typing.cast(Any, kind), name, key))


@functools.cache
def _loaded(kind: type, name: str, key: str = "") -> Any:
    data = load_document(name)
    return read_rows(kind, key, {key: data[key]}, name) if key else read_table(kind, data, name)


def read_rows(kind: type[Row], key: str, data: Any, where: str) -> tuple[Row, ...]:
    """Return the rows of a file with one list. Raises UsageError, which names `where`, the row and
    the key."""
    if isinstance(data, Mapping) and (unknown := sorted(data.keys() - {key})):
        raise UsageError.of(
            "table-value-invalid", where=where, key=unknown[0], problem="unknown key"
        )
    hint: Any = tuple[kind, ...]  # type: ignore[valid-type]
    rows: tuple[Row, ...] = read_named(hint, data, where).get(key, ())
    return rows


def read_named(hint: Any, data: Any, where: str) -> dict[str, Any]:
    """Return the values of a table of names, each read as the type `hint`. Raises UsageError,
    which names `where` and the name."""
    if not isinstance(data, Mapping):
        raise UsageError.of("table-not-a-table", where=where, kind=type(data).__name__)
    missing = dataclasses.MISSING
    return {
        name: Given(name, value, hint, where=where, default=missing).read()
        for name, value in data.items()
    }


def read_table(kind: type[Row], data: Any, where: str) -> Row:
    """Return the row of class `kind` in a table; a whole file is one too, whose fields are its
    lists of rows. Raises UsageError, which names `where` and the key."""
    if not isinstance(data, Mapping):
        raise UsageError.of("table-not-a-table", where=where, kind=type(data).__name__)
    shape: Any = kind
    try:
        values = dict(_fields(shape, data, where))
        takes_all = any(rules_of(field).rest for field, _ in described(shape))
        if not takes_all and (unknown := sorted(data.keys() - _keys(shape))):
            raise RowError(unknown[0], "unknown key")
        return kind(**values)
    except RowError as error:
        raise UsageError.of(
            "table-value-invalid", where=where, key=error.key, problem=error.why
        ) from None


def _fields(kind: type, data: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    for field, hint in described(kind):
        rules = rules_of(field)
        key = rules.key or field.name
        given = functools.partial(Given, hint=hint, rules=rules, where=where, default=field.default)
        if rules.rest:
            names = data.keys() - _keys(kind)
            part = {name: value for name, value in data.items() if name in names}
            yield field.name, tuple((name, given(name, part[name]).read()) for name in part)
        elif data.get(key) is not None:
            yield field.name, given(key, data[key]).read()
        elif field.default is dataclasses.MISSING:
            raise RowError(key, "missing")


@functools.cache
def described(kind: type) -> tuple[tuple[dataclasses.Field[Any], Any], ...]:
    """Return the fields that are read, each with its type."""
    hints = typing.get_type_hints(kind)
    read = (field for field in dataclasses.fields(kind) if not rules_of(field).other)
    return tuple((field, _element(hints[field.name], field)) for field in read)


def _element(hint: Any, field: dataclasses.Field[Any]) -> Any:
    """Return the type without its None; of a field that takes the rest, that of each value."""
    if isinstance(hint, types.UnionType) and types.NoneType in hint.__args__:
        (hint,) = (part for part in hint.__args__ if part is not types.NoneType)
    return hint.__args__[0].__args__[1] if rules_of(field).rest else hint


@functools.cache
def _keys(kind: type) -> frozenset[str]:
    rules = ((rules_of(field), field.name) for field, _ in described(kind))
    return frozenset(rule.key or name for rule, name in rules if not rule.rest)


@dataclass(frozen=True, slots=True)
class Given:
    """What a table, a person or a stored plan has for one key."""

    key: str
    value: Any
    hint: Any
    rules: Rules = PLAIN
    where: str = ""  # file and row
    named: str = ""  # how errors name the key, where it is not in a row of a file
    default: Any = None  # is valid though the rules may refuse it; MISSING: the key is required
    typed: bool = False  # on a command line, which has numbers as texts

    @property
    def place(self) -> str:
        """How errors name it."""
        return self.named or f"{self.where}, key {self.key}:"

    def unfit(self, wanted: str) -> UsageError:
        """Return the error for a value of the wrong type."""
        example = self.rules.example
        advice = f"for example {self.key} = {example}" if example else ""
        if self.typed:
            words = example.strip("[]").replace(QUOTE, "").replace(", ", ",")
            words = words if self.rules.commas else words.partition(",")[0]
            advice = "" if example[:1] in "{" else f"for example {self.named} {words}"
        value = as_written(self.value)
        return UsageError.of(
            "value-type", place=self.place, wanted=wanted, value=value, advice=advice
        )

    def read(self) -> Any:
        """Return the value as the type that its field wants. Raises UsageError."""
        origin, arguments = typing.get_origin(self.hint), typing.get_args(self.hint)
        if self.rules.read:
            return self.rules.read(self)
        if origin is tuple:
            paired = typing.get_origin(arguments[0]) is tuple
            return self._pairs(arguments[0]) if paired else self.several(arguments[0])
        if origin is re.Pattern:
            return self._pattern()
        if isinstance(self.hint, types.UnionType):  # bool | str
            if not isinstance(self.value, self.hint) or self.value == "":
                raise self.unfit("true, false or a name")
            return self.value
        if dataclasses.is_dataclass(self.hint) and not hasattr(self.hint, "parse"):
            row = typing.cast(type, self.hint)
            return read_table(row, self.value, f"{self.where}, {self.key}")
        return self._single()

    def _single(self) -> Any:
        # bool is an int and a str is a sequence to Python; neither is one here
        kind = self.hint if self.hint in KINDS else str
        accepted, name = KINDS[kind]
        value = self._bytes() if self.rules.size and isinstance(self.value, str) else self.value
        if not isinstance(value, accepted) or isinstance(value, bool) is not (kind is bool):
            raise self.unfit(name)
        if value == "" and self.default is dataclasses.MISSING and not self.rules.rest:
            raise UsageError.of("value-empty", place=self.place)
        if value != self.default:
            self._refuse_beyond(value)
            self._refuse_unknown(value)
        try:
            return value if self.hint in KINDS else getattr(self.hint, "parse", self.hint)(value)
        except ValueError as error:
            raise UsageError.of("value-invalid", place=self.place, error=error) from None

    def _bytes(self) -> int:
        """Return bytes of a text with a unit."""
        try:
            return read_size(self.value)
        except ValueError:
            raise self.unfit("a number of bytes, such as 65536, 64K or 4MiB") from None

    def _refuse_beyond(self, value: float) -> None:
        most, zero = self.rules.most, self.rules.zero
        if not most or 0 < value <= most or (value == 0 and zero):  # nan is in no range
            return
        least = "from 0" if zero else "above 0"
        raise UsageError.of(
            "value-range",
            place=self.place,
            value=as_written(value) if value else 0,
            least=least,
            most=most,
        )

    def _refuse_unknown(self, value: Any) -> None:
        words = self.rules.words or (tuple(self.hint) if issubclass(self.hint, Enum) else ())
        if words and value not in words:
            raise UsageError.unknown("word-unknown", str(value), words, what=self.place)

    def several(self, kind: Any) -> tuple[Any, ...]:
        """Read a list of values of type `kind`, or of an option one."""
        option, single = bool(self.rules.example), not isinstance(self.value, (list, tuple))
        alone = option and not self.rules.plural
        words = [self.value] if single and alone else self.value
        if not isinstance(words, (list, tuple)):
            raise self.unfit("a list of texts" if kind is str else "a list")
        if not words and self.rules.nonempty:
            raise UsageError.of("value-empty", place=self.place)
        if commas := self.rules.commas and self.default is None:  # not of a stored plan
            words = [part for word in words for part in self._parts(word, kind)]
        if dataclasses.is_dataclass(kind):
            return _rows(typing.cast(type, kind), words, self)
        wanted = int if kind is int else str
        valid = (isinstance(word, wanted) and not isinstance(word, bool) for word in words)
        if not all(valid) or not (option or all(words)):
            one = "a whole number or several" if kind is int else "a text or a list of texts"
            raise self.unfit(one if alone else "a list of texts")
        if not option and len(set(words)) != len(words):
            raise UsageError.of("value-repeated", place=self.place)
        singles = tuple(replace(self, value=word, hint=kind)._single() for word in words)
        return tuple(dict.fromkeys(singles)) if commas else singles

    def _parts(self, word: Any, kind: Any) -> list[Any]:
        """Split a text at its commas, which blanks may follow."""
        if not isinstance(word, str) or "/" in word:
            return [word]
        parts = [part.strip() for part in word.split(",")]
        if not all(parts):
            raise UsageError.of("value-empty", place=self.place)
        if kind is not int or not self.typed:
            return parts
        if not all(part.isascii() and part.isdecimal() and len(part) <= 9 for part in parts):
            raise replace(self, value=word).unfit("a whole number or several")
        return [int(part) for part in parts]

    def _pairs(self, pair: Any) -> tuple[tuple[str, Any], ...]:
        """Return a table of names to values of one type, in the order of the file. A text may be
        empty."""
        if type(self.value) is not dict:
            raise self.unfit("a table")
        _, hint = typing.get_args(pair)
        if hint is not str:
            named = read_named(hint, self.value, f"{self.where}, {self.key}")
            return tuple(named.items())
        for name, text in self.value.items():
            if not isinstance(text, str):
                raise replace(self, key=f"{self.key}.{name}", value=text).unfit("a text")
        return tuple(self.value.items())

    def _pattern(self) -> re.Pattern[str]:
        """Return one pattern for a text, or for a list of them; of none, one that matches
        nothing."""
        words = self.value if isinstance(self.value, list) else [self.value]
        if self.value == "" or (not words and self.rules.nonempty):
            raise UsageError.of("value-empty", place=self.place)
        if not all(isinstance(word, str) and word for word in words):
            raise self.unfit("a regular expression or a list of them")
        try:
            text = words[0] if len(words) == 1 else "|".join(f"(?:{word})" for word in words)
            return re.compile(text or NEVER)
        except re.error as error:
            raise UsageError.of("value-pattern", place=self.place, error=error) from None


def _rows(kind: type, tables: Collection[Any], given: Given) -> tuple[Any, ...]:
    """Return the rows of a list of tables, called by their ids where they have some. Raises
    UsageError for two of one id."""
    rows: list[Any] = []
    ids: set[Any] = set()
    for number, table in enumerate(tables, 1):
        name = table.get("id") if isinstance(table, dict) else None
        called = f"row {name}" if isinstance(name, str) and name else f"{given.key} {number}"
        rows.append(read_table(kind, table, f"{given.where}, {called}"))
        if name in ids:
            raise UsageError.of("table-rows-twice", where=given.where, name=name)
        ids |= {name} - {None}
    return tuple(rows)


def as_written(value: Any) -> str:
    """Write a value as its file has it, shortened to its beginning."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
