"""Options of a campaign file, a site's profile, a stored plan or the command line, by key."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import Any

from mpigraft.core.budget import Budget
from mpigraft.core.env import SECRET_NAME
from mpigraft.core.errors import UsageError
from mpigraft.core.parsers import TooMuch, parse_toml
from mpigraft.knowledge import Given, Rules, as_written, described, rules_of, toml

COMMAND_LINE = "command line"


def option(default: Any, example: str, **rules: Any) -> Any:
    """A dataclass field that people give."""
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
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError.of("env-invalid", word=word)
        if SECRET_NAME.search(name):
            raise UsageError.of("env-secret", name=name)
        pairs[name] = value
    return tuple(sorted(pairs.items()))


def options_of(kind: type) -> dict[str, Rules]:
    """{key: rules} of a dataclass all of whose fields are options."""
    return {f.name: rules_of(f) for f in dataclasses.fields(kind)}


def flag_of(kind: type, key: str) -> str:
    return options_of(kind)[key].flag or f"--{key.replace('_', '-')}"


def place_of(kind: type, key: str, source: str) -> str:
    """How errors name a key of a source."""
    return flag_of(kind, key) if source == COMMAND_LINE else f"{source}: {key}"


def read_option(kind: type, key: str, value: Any, source: str, *, stored: bool = False) -> Any:
    """Read the value of one field of `kind`. In a `stored` plan the default stands for itself,
    also where a person may not ask for it. Raises UsageError, which names `source`."""
    fields = {f.name: (f, hint) for f, hint in described(kind)}
    if key not in fields:
        known = ", ".join(sorted(fields))
        raise UsageError.of("option-unknown-key", source=source, key=key, known=known)
    one, hint = fields[key]
    default = one.default if stored else None
    return Given(
        key, value, hint, rules_of(one), named=place_of(kind, key, source), default=default
    ).read()


def parse_toml_file(data: bytes, path: Path) -> tuple[dict[str, Any], str]:
    """The table and the text of a TOML file. Raises UsageError for what is none."""
    try:
        text = data.decode("utf-8")
        return parse_toml(text), text
    except TooMuch as error:
        Budget(path, len(data)).refuse(str(error))
    except ValueError as error:
        raise UsageError.of("not-toml", path=path, error=error) from error


def line_of(key: str, text: str, table: str = "", after: int = 1) -> int:
    """The line, from 1, on which a key of a TOML file stands, at the top or in a `table` that
    begins on line `after`; `after` where there is no such line. tomllib keeps none."""
    within = rf"(?:{re.escape(table)}\s*\.\s*)?" if table else ""
    pattern = re.compile(rf"""\s*\[*\s*{within}["']?{re.escape(key)}["']?\s*[].=]""")
    lines = enumerate(text.splitlines(), 1)
    return next((n for n, line in lines if n >= after and pattern.match(line)), after)
