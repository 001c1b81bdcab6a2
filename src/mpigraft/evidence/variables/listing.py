"""Parse the output of `mpigraft-vars`: the variables that an MPI lists through MPI_T."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mpigraft.core.serialize import pairs_field

Scalar = int | float | str
Value = Scalar | tuple[Scalar, ...] | None  # None: not known
Key = tuple[str, str, int]  # kind, name, and which of that name: Intel MPI has two called `idle`

BEGINS = b'{"mpigraft":'  # what a library prints between our lines begins otherwise


@dataclass(frozen=True, slots=True)
class Variable:
    """One control or performance variable. Words are those of MPI_T's constants."""

    kind: str  # control, performance
    name: str
    type: str  # int, unsigned long, double, text ...
    text: str  # the MPI's description
    verbosity: str  # for whom: user, tuner, developer; with detail, or all
    binding: str  # what it is asked about: none, communicator, window ...
    scope: str = ""  # of a control variable: constant, read-only, local, group, all
    sort: str = ""  # of a performance variable: its class, such as counter or timer
    categories: tuple[str, ...] = ()
    choices: tuple[tuple[int, str], ...] = pairs_field()  # words for numbers
    value: Value = None
    fatal: bool = False  # a process that read it died
    number: int = 0  # among those of one kind and name

    @property
    def key(self) -> Key:
        return (self.kind, self.name, self.number)

    def word(self, value: Value) -> str:
        """Return a value as text: `1 (true)`, `"self,sm"` as `self,sm`, `?` if it is unknown."""
        if value is None:
            return "?"
        if isinstance(value, tuple):
            return ":".join(str(part) for part in value)
        name = dict(self.choices).get(value) if isinstance(value, int) else None
        return str(value) if name is None else f"{value} ({name})"


@dataclass(frozen=True, slots=True)
class Listing:
    """The output of one run of the program."""

    version: str  # as MPI_Get_library_version has it, first line
    initialised: bool  # read after MPI_Init
    variables: tuple[Variable, ...]

    def by_key(self) -> dict[Key, Variable]:
        return {variable.key: variable for variable in self.variables}


def parse(output: bytes) -> Listing:
    """Parse the list that the program wrote to stdout, amid other output of libraries.

    Raises ValueError for one that was cut short, or that is not the program's.
    """
    library: dict[str, Any] | None = None
    lines: list[dict[str, Any]] = []
    categories: list[dict[str, Any]] = []
    ended = False
    for what, line in _lines(output):
        if what == "library":
            library = line
        elif what in ("control", "performance"):
            lines.append(line)
        elif what == "category":
            categories.append(line)
        ended = what == "end"
    if library is None or not ended:
        raise ValueError("the list of variables was cut short")
    try:
        return _listing(library, lines, categories)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the list of variables is malformed: {error!r}") from None


def _lines(output: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    for line in output.split(b"\n"):
        if not line.startswith(BEGINS):
            continue
        try:
            read = json.loads(line)
        except (ValueError, RecursionError):
            raise ValueError("a line of the list of variables is broken") from None
        yield str(read["mpigraft"]), read


def _listing(
    library: Mapping[str, Any], lines: list[dict[str, Any]], categories: list[dict[str, Any]]
) -> Listing:
    within: dict[tuple[str, int], list[str]] = {}
    for category in categories:
        for kind in ("control", "performance"):
            for index in category[kind]:
                within.setdefault((kind, index), []).append(str(category["name"]))
    counts: Counter[tuple[str, str]] = Counter()
    variables = []
    for line in lines:
        one = _variable(line, tuple(within.get((line["mpigraft"], line["index"]), ())))
        variables.append(replace(one, number=counts[one.kind, one.name]))
        counts[one.kind, one.name] += 1
    first = str(library["version"]).partition("\n")[0].strip()
    return Listing(first, bool(library["initialised"]), tuple(variables))


def _variable(line: Mapping[str, Any], categories: tuple[str, ...]) -> Variable:
    return Variable(
        kind=str(line["mpigraft"]),
        name=str(line["name"]),
        type=str(line["type"]),
        text=" ".join(str(line["text"]).split()),
        verbosity=str(line["verbosity"]),
        binding=str(line["binding"]),
        scope=str(line.get("scope", "")),
        sort=str(line.get("class", "")),
        categories=categories,
        choices=tuple((int(number), str(word)) for number, word in line.get("choices", ())),
        value=_value(line.get("value")),
        fatal=bool(line.get("fatal", False)),
    )


def _value(value: Any) -> Value:
    if isinstance(value, list):
        return tuple(_scalar(part) for part in value)
    return None if value is None else _scalar(value)


def _scalar(value: Any) -> Scalar:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise TypeError(f"{value!r} is no value")
    return value
