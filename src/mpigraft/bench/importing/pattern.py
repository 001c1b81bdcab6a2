"""Read facts from the name of a file: `osu_{benchmark}_{nodes}nodes_{date}.dat`.

A pattern without a slash is matched with the file's name, one with slashes with as many folders
above it too. A field takes as little as it can; numbers take digits alone. `*` matches any text,
`?` one character.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from mpigraft.core.errors import UsageError
from mpigraft.core.text import printable

NUMBERS = ("nodes", "ranks", "ranks_per_node", "round")
TEXTS = ("benchmark", "date", "configuration", "mpi", "transport", "machine", "allocation")
ALIASES = {  # other words for a field
    "np": "ranks", "nprocs": "ranks", "procs": "ranks", "processes": "ranks", "ntasks": "ranks",
    "tasks": "ranks", "nnodes": "nodes", "hosts": "nodes", "ppn": "ranks_per_node",
    "ntasks_per_node": "ranks_per_node", "tasks_per_node": "ranks_per_node", "time": "date",
    "day": "date", "config": "configuration", "bench": "benchmark", "job": "allocation",
    "num_nodes": "nodes", "node_count": "nodes", "num_procs": "ranks", "num_ranks": "ranks",
}  # fmt: skip
SHAPES = {  # the characters of a field; texts of other fields have any but a slash
    "benchmark": re.compile(r"[\w-]"),
    "date": re.compile(r"[0-9TZ:_+-]"),
    **dict.fromkeys(NUMBERS, re.compile(r"[0-9]")),
}
EPOCH = re.compile(r"1[0-9]{9}")  # seconds, from 2001 to 2033
ZONED = re.compile(r"T.*(?:Z|[+-][0-9]{2}:?[0-9]{2})$")
ANY = re.compile(r"[^/]", re.DOTALL)
FIELD = re.compile(r"\{([a-z][a-z0-9_]{0,31})\}")
PACKED = ".gz"  # which a pattern need not have
MOST_FIELDS = 12
LONGEST = 400  # characters of a pattern
LARGEST = 10**9  # of a number in a name
DATES = (
    "%Y%m%d%H%M%S", "%Y%m%d%H%M", "%Y%m%dT%H%M%S", "%Y%m%d-%H%M%S", "%Y%m%d_%H%M%S",
    "%Y%m%d-%H%M", "%Y%m%d_%H%M", "%Y%m%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d_%H-%M-%S",
    "%Y-%m-%d_%H-%M", "%Y-%m-%d_%H:%M", "%Y-%m-%d", "%Y-%m", "%Y",
    "%Y-%m-%dT%H%M%S", "%Y-%m-%dT%H-%M-%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d-%H%M%S",
    "%Y-%m-%d-%H%M", "%Y-%m-%d-%H-%M-%S", "%Y-%m-%d_%H%M%S", "%Y-%m-%d_%H%M",
    "%Y-%m-%d_%H:%M:%S", "%Y%m%dT%H%M", "%Y_%m_%d", "%Y_%m_%d_%H_%M_%S", "%Y_%m_%d_%H_%M",
)  # fmt: skip
# strptime takes fewer digits than a form has
LENGTHS = {form: len(datetime(2000, 1, 1, tzinfo=UTC).strftime(form)) for form in DATES}


@dataclass(frozen=True, slots=True)
class Fields:
    """What a name says. Empty, 0 or None: nothing."""

    benchmark: str = ""
    nodes: int = 0
    ranks: int = 0
    ranks_per_node: int = 0
    started: str = ""  # ISO 8601, UTC: the date
    configuration: str = ""
    mpi: str = ""  # with the transport in place of a configuration: openmpi@5.0.7/ucx
    transport: str = ""
    machine: str = ""
    allocation: str = ""
    round: int | None = None
    labels: tuple[tuple[str, str], ...] = ()  # fields of other names

    @property
    def order(self) -> tuple[int, str]:
        """Sort files by this, and rounds are counted as they were measured."""
        return (self.round or 0, self.started)


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a pattern: characters of one kind, or literal text."""

    text: str = ""  # literal; empty: characters
    name: str = ""  # of a field; empty: a wildcard
    shape: re.Pattern[str] = ANY
    least: int = 1
    most: int = sys.maxsize


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that was read."""

    text: str
    pieces: tuple[Piece, ...]
    fields: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a pattern. Raises UsageError for one without a field, with a field twice, or with
        two fields that nothing separates."""
        parts = FIELD.split(text)
        fields = tuple(parts[1::2])
        problem = _problem(parts, fields)
        if problem:
            raise UsageError.of("pattern-invalid", pattern=text[:200], problem=problem)
        pieces: list[Piece] = []
        for index, part in enumerate(parts):
            if index % 2:
                pieces.append(Piece(name=part, shape=SHAPES.get(part, ANY)))
            else:
                pieces += (WILD.get(word) or Piece(word) for word in WILDCARD.split(part) if word)
        return cls(text, tuple(pieces), fields)

    def fields_of(self, path: Path) -> Fields | None:
        """Read a file's name, or None where the pattern does not match it. Raises UsageError for
        a date or a number that is none."""
        parts = path.absolute().parts[-1 - self.text.count("/") :]
        name = "/".join(parts)
        texts = match_pieces(self.pieces, name)
        if texts is None and name.endswith(PACKED):
            texts = match_pieces(self.pieces, name.removesuffix(PACKED))
        if texts is None:
            return None
        numbers = {name: _number(path, name, texts[name]) for name in NUMBERS if name in texts}
        known = {n: texts[n] for n in TEXTS if n in texts and n != "date"}
        if odd := [name for name, value in texts.items() if not value.isprintable()]:
            raise _odd(path, odd[0], texts[odd[0]])
        labels = tuple((n, texts[n]) for n in self.fields if n not in (*NUMBERS, *TEXTS))
        started = read_date(path, texts["date"]) if "date" in texts else ""
        return Fields(started=started, labels=labels, **known, **numbers)  # type: ignore[arg-type]


def _problem(pieces: list[str], fields: tuple[str, ...]) -> str:
    literals = pieces[::2]
    if sum(map(len, pieces)) > LONGEST:
        return f"it has more than {LONGEST} characters"
    if not fields:
        return "it has no field such as {benchmark}"
    if len(set(fields)) != len(fields):
        return "it has a field twice"
    if len(fields) > MOST_FIELDS:
        return f"it has more than {MOST_FIELDS} fields"
    if any("{" in piece or "}" in piece for piece in literals):
        return "a brace that is no field of lower-case letters, digits and _"
    for field in fields:
        if near := _nearest(field):
            return f"{{{field}}} is no field of it, and {{{near}}} is: write that, or another name"
    if any(not piece.strip("*") for piece in literals[1:-1]):
        return "two fields are side by side, so where one ends is not known"
    return ""


def _nearest(field: str) -> str:
    """Return the known field that a name of none seems to mean; empty: it is a name of its own."""
    known = (*NUMBERS, *TEXTS)
    if field in known:
        return ""
    near = difflib.get_close_matches(field, known, n=1, cutoff=0.8)
    return ALIASES.get(field) or (near[0] if near else "")


WILDCARD = re.compile(r"([*?])")
WILD = {"*": Piece(least=0), "?": Piece(most=1)}


def match_pieces(pieces: tuple[Piece, ...], text: str) -> dict[str, str] | None:
    """Return the texts of the fields, each as short as it can be, or None. Places from which the
    rest does not match are remembered: as a regular expression, a name with a hundred underscores
    would take a pattern with six fields years."""
    failed: set[tuple[int, int]] = set()

    def walk(index: int, start: int) -> dict[str, str] | None:
        if index == len(pieces):
            return {} if start == len(text) else None
        if (index, start) in failed:
            return None
        piece = pieces[index]
        for end in _ends(piece, text, start):
            rest = walk(index + 1, end)
            if rest is not None:
                return {**rest, piece.name: text[start:end]} if piece.name else rest
        failed.add((index, start))
        return None

    return walk(0, 0)


def _ends(piece: Piece, text: str, start: int) -> Iterator[int]:
    """Yield where a piece that begins at `start` may end, the nearest first."""
    if piece.text:
        if text.startswith(piece.text, start):
            yield start + len(piece.text)
        return
    if piece.least == 0:
        yield start
    for end in range(start + 1, min(len(text), start + piece.most) + 1):
        if not piece.shape.match(text[end - 1]):
            return
        yield end


def _number(path: Path, field: str, text: str) -> int:
    value = int(text) if text.isascii() and len(text) <= 10 else -1
    if not (0 if field == "round" else 1) <= value <= LARGEST:
        raise _odd(path, field, text)
    return value


def _odd(path: Path, field: str, value: str) -> UsageError:
    shown = printable(str(path))
    return UsageError.of("pattern-value", path=shown, field=field, value=printable(value[:40]))


def read_date(path: Path, text: str) -> str:
    """Read a date or time as ISO 8601; one without a zone is UTC. Raises UsageError."""
    for form in DATES:
        if len(text) == LENGTHS[form]:
            with suppress(ValueError):
                return _moment(datetime.strptime(text, form).replace(tzinfo=UTC))
    with suppress(ValueError, OverflowError):
        if EPOCH.fullmatch(text):
            return _moment(datetime.fromtimestamp(int(text), UTC))
        if ZONED.search(text):
            return _moment(datetime.fromisoformat(text).astimezone(UTC))
    raise _odd(path, "date", text)


def _moment(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
