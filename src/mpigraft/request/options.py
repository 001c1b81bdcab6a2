"""Options of a campaign file, a site's profile, a stored plan or the command line, by key."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from mpigraft.core.budget import Budget
from mpigraft.core.errors import UsageError
from mpigraft.core.parsers import TooMuch, parse_toml
from mpigraft.knowledge import Given, Rules, as_written, described, rules_of, toml

Spec = TypeVar("Spec")
COMMAND_LINE = "command line"


def option(default: Any, example: str, **rules: Any) -> Any:
    """Make a dataclass field that people give."""
    return field(default=default, metadata=toml(example=example, **rules))


def read_settings(given: Given) -> tuple[str, ...]:
    """Read NAME=VALUE words, or a table of texts and numbers."""
    if not isinstance(given.value, dict):
        return given.several(str)
    for name, value in given.value.items():
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise UsageError.of(
                "option-environment-type", place=given.place, name=name, value=as_written(value)
            )
    return tuple(f"{name}={value}" for name, value in given.value.items())


def settings_of(words: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Make sorted (name, value) pairs of NAME=VALUE words. Raises UsageError for a word that is
    not, and for a name that looks like a secret's."""
    from mpigraft.core.env import SECRET_NAME

    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError.of("env-invalid", word=word)
        if SECRET_NAME.search(name):
            raise UsageError.of("env-secret", name=name)
        pairs[name] = value
    return tuple(sorted(pairs.items()))


@dataclass(frozen=True, slots=True)
class RequestOption:
    """A field that people give, by its key."""

    key: str
    field: dataclasses.Field[Any]
    hint: Any
    rules: Rules
    part: str = ""  # the field with the value that has this one, where that is not the request

    @property
    def flag(self) -> str:
        return self.rules.flag or f"--{self.key.replace('_', '-')}"

    def showing(self, usual: str | bool | None, text: str | None) -> RequestOption:
        """Return the same with another default or text in help."""
        rules = self.rules
        usual = rules.usual if usual is None else usual
        return replace(self, rules=replace(rules, usual=usual, help=text or rules.help))

    def place(self, source: str) -> str:
        """Name the key of a source, for errors."""
        return self.flag if source == COMMAND_LINE else f"{source}: {self.key}"

    def value(self, request: object) -> Any:
        """Take the value out of a request."""
        return getattr(getattr(request, self.part) if self.part else request, self.field.name)


Options = Mapping[str, RequestOption]


@functools.cache
def options_of(kind: type) -> Options:
    """List the options of a class and of the values that are its parts, in order, by key."""
    options: dict[str, RequestOption] = {}
    for one, hint in described(kind):
        rules = rules_of(one)
        if rules.example:
            options[rules.key or one.name] = RequestOption(rules.key or one.name, one, hint, rules)
        elif dataclasses.is_dataclass(hint):
            parts = options_of(cast("type", hint))
            options |= {key: replace(part, part=one.name) for key, part in parts.items()}
    return options


def read_option(
    options: Options, key: str, value: Any, source: str, *, stored: bool = False
) -> Any:
    """Read the value of an option. A `stored` plan may have the default, also where a user may not
    give it. Raises UsageError, which names `source`."""
    if key not in options:
        raise UsageError.unknown("option-unknown-key", key, sorted(options), source=source)
    one = options[key]
    default = one.field.default if stored else None
    typed, place = source == COMMAND_LINE, one.place(source)
    return Given(key, value, one.hint, one.rules, named=place, default=default, typed=typed).read()


@dataclass(frozen=True, slots=True)
class Asked(Generic[Spec]):
    """A request and the keys that were given for it: all else has its default."""

    value: Spec
    given: frozenset[str]

    def also(self, **values: object) -> Asked[Spec]:
        """Add what was given in another way."""
        return Asked(with_options(self.value, values), self.given | values.keys())


def asked_for(kind: type[Spec], values: Mapping[str, object]) -> Asked[Spec]:
    """Make a request of values by key. None and an empty list were not given."""
    given = given_values(values)
    return Asked(with_options(kind(), given), frozenset(given))


def given_values(values: Mapping[str, object]) -> dict[str, object]:
    """Leave out what was not given: None or an empty list."""
    return {key: value for key, value in values.items() if value not in (None, [], ())}


def by_key(kind: type, stored: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values of a stored request by their keys: a store has the names of the fields."""
    keys = {one.field.name: key for key, one in options_of(kind).items()}
    return ((keys.get(name, name), value) for name, value in stored.items())


def with_options(request: Spec, values: Mapping[str, object]) -> Spec:
    """Give a request other values, by key, also in its parts."""
    kind: Any = type(request)
    options = options_of(kind)
    changes: dict[str, dict[str, object]] = {}
    for key, value in values.items():
        one = options[key]
        fields = changes.setdefault(one.part, {})
        fields[one.field.name] = tuple(value) if isinstance(value, list) else value
    own = changes.pop("", {})
    row: Any = request
    parts = {name: replace(getattr(row, name), **fields) for name, fields in changes.items()}
    made: Spec = replace(row, **own, **parts)
    return made


def option_words(request: object, without: Collection[str] = ()) -> Iterator[str]:
    """Yield the flags of every option that differs from its default, less the keys `without`."""
    kind: Any = type(request)
    for key, one in options_of(kind).items():
        value = one.value(request)
        if key in without or value == one.field.default:
            continue
        if isinstance(value, bool):
            yield one.flag if value else f"--no-{one.flag.removeprefix('--')}"
            continue
        for word in value if isinstance(value, tuple) else (value,):
            text = f"{word:g}" if isinstance(word, float) else str(word)
            joined = f"{one.flag}={text}"
            yield from (joined,) if "=-" in joined else (one.flag, text)


def parse_toml_file(data: bytes, path: Path) -> tuple[dict[str, Any], str]:
    """Return the table and the text of a TOML file. Raises UsageError if it is not TOML."""
    try:
        text = data.decode("utf-8")
        return parse_toml(text), text
    except TooMuch as error:
        Budget(path, len(data)).refuse(str(error))
    except ValueError as error:
        raise UsageError.of("not-toml", path=path, error=error) from error


def line_of(key: str, text: str, table: str = "", after: int = 1) -> int:
    """Return the line, from 1, that has a key of a TOML file, at the top or in a `table`
    that begins on line `after`; `after` where there is no such line. tomllib keeps none."""
    within = rf"(?:{re.escape(table)}\s*\.\s*)?" if table else ""
    pattern = re.compile(rf"""\s*\[*\s*{within}["']?{re.escape(key)}["']?\s*[].=]""")
    lines = enumerate(text.splitlines(), 1)
    return next((n for n, line in lines if n >= after and pattern.match(line)), after)
