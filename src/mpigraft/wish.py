"""What a person asked to be measured: from flags, from a TOML file, or from a stored plan.

All three have the same keys and go through `wish_from`, so a campaign file can say whatever the
flags can, and a stored plan can be read back.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpigraft.env import SECRET_NAME
from mpigraft.errors import UsageError


@dataclass(frozen=True, slots=True)
class Wish:
    """Empty means every one that can run here, or the default of the kind of campaign."""

    name: str = ""
    mpi: tuple[str, ...] = ()
    transport: tuple[str, ...] = ()
    benchmark: tuple[str, ...] = ()
    layout: tuple[str, ...] = ()
    set: tuple[str, ...] = ()  # NAME=VALUE, for every rank
    buffers: str = "host"
    baseline: str = ""
    rounds: int = 0
    seed: int = 0  # 0: drawn when the campaign is planned
    min_size: int = 1  # bytes
    max_size: int = 4 * 1024 * 1024
    budget_ms: float = 0.0  # measured time per benchmark and size
    limit_s: float = 0.0  # one launch
    quick: bool = False
    validate: bool = True
    native_build: str = "prebuilt"

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """`set` as sorted (name, value) pairs; raises UsageError for a word without `=`."""
        pairs = {}
        for word in self.set:
            name, equals, value = word.partition("=")
            if not equals or not name.isidentifier():
                raise UsageError(f"--set {word!r} is not NAME=VALUE")
            if SECRET_NAME.search(name):
                raise UsageError(
                    f"--set {name}: the name looks like a secret's",
                    why="settings are part of a configuration and are stored with the results",
                    mend="give it to the program in another way",
                )
            pairs[name] = value
        return tuple(sorted(pairs.items()))


FIELDS = {f.name: f for f in dataclasses.fields(Wish)}
CHOICES = {"buffers": ("host", "cuda", "rocm"), "native_build": ("prebuilt", "mpicc")}


def wish_from(table: Mapping[str, Any], source: str) -> Wish:
    """A wish from a table whose keys are those of Wish; `source` names it in errors."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in FIELDS:
            known = ", ".join(sorted(FIELDS))
            raise UsageError(f"{source}: unknown key {key!r}", mend=f"known keys: {known}")
        values[key] = _typed(key, value, source)
    return Wish(**values)


def _typed(key: str, value: Any, source: str) -> Any:
    default = FIELDS[key].default
    if isinstance(default, tuple):
        words = [value] if isinstance(value, str) else value
        if key == "set" and isinstance(value, dict):
            words = [f"{k}={v}" for k, v in value.items()]
        if isinstance(words, (list, tuple)) and all(isinstance(w, str) for w in words):
            return tuple(words)
        raise UsageError(f"{source}: {key} must be a text or a list of texts, not {value!r}")
    wanted = (int, float) if isinstance(default, float) else type(default)
    if not isinstance(value, wanted) or isinstance(value, bool) is not isinstance(default, bool):
        raise UsageError(f"{source}: {key} must be {type(default).__name__}, not {value!r}")
    if isinstance(value, (int, float)) and value < 0:
        raise UsageError(f"{source}: {key} is {value}; it cannot be negative")
    if key in CHOICES and value not in CHOICES[key]:
        raise UsageError(f"{source}: {key} is {value!r}; it is one of {', '.join(CHOICES[key])}")
    return value


def read_wish(path: Path) -> Wish:
    """The wish in a TOML campaign file. Raises UsageError with file and line."""
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not a TOML file: {error}") from error
    for key, value in table.items():
        wish_from({key: value}, f"{path}:{_line_of(key, text)}")
    return wish_from(table, str(path))


def _line_of(key: str, text: str) -> int:
    """The line, from 1, on which a top-level key of a TOML file stands: tomllib keeps none."""
    pattern = re.compile(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[].=]""")
    lines = text.splitlines()
    return next((n for n, line in enumerate(lines, 1) if pattern.match(line)), 1)


def merged(file: Wish, flags: Mapping[str, Any]) -> Wish:
    """A campaign file's wish with the flags that were given laid over it."""
    given = {k: v for k, v in flags.items() if v not in (None, (), [], "", 0, 0.0, False)}
    if flags.get("validate") is False:
        given["validate"] = False
    laid = wish_from(given, "command line")
    return dataclasses.replace(file, **{k: getattr(laid, k) for k in given})
