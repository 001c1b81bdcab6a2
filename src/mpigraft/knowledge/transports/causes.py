"""The rows of causes.toml as values: what launchers, ssh and Slurm print of a launch that fails,
and how the output of a run ends that did not end well."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from mpigraft.knowledge.reader import RowError, load_table, toml

# of a rank, as launchers print it, or the half of a row
LABEL = re.compile(
    r"\s*(?:\[\S{1,80}\](?:<\w{1,8}>)?:?|\d{1,7}:|\d+\.\d+s:|\d[\d.]*(?:\s+[\d.]+)*)\s*"
)

STARTS = (r".*\b", ".*", r"\S+: ", r"\S+ ", "")  # of many patterns, tried once for all of them


def _check(key: str, patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise RowError(key, f"not a regular expression: {error}") from None
        if not pattern.startswith("^"):
            raise RowError(key, f"{pattern!r} does not begin a line")


@dataclass(frozen=True, slots=True)
class FailureCause:
    """Why a launch failed, and the lines that say so."""

    finding: str
    patterns: tuple[str, ...] = field(metadata=toml(nonempty=True))
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))
    codes: tuple[int, ...] = ()
    entered: bool = False
    waits: bool = False
    slurm: bool = False
    vague: bool = False

    def __post_init__(self) -> None:
        _check("patterns", self.patterns)

    def concerns(self, code: int, *, whole: bool, slurm: bool) -> bool:
        """Return whether it can be why a launch ended with `code`; `whole`: all its ranks were in
        MPI."""
        possible = self.entered or not whole
        return possible and (slurm or not self.slurm) and (not self.codes or code in self.codes)

    def hits(self, output: str) -> Iterator[dict[str, str]]:
        """Yield the fields of each of its lines in an output."""
        for pattern in self.patterns:
            for hit in re.finditer(pattern, output, re.MULTILINE):
                yield {name: text for name, text in hit.groupdict().items() if text}


@dataclass(frozen=True, slots=True)
class Ending:
    """What one source prints when a run ends badly."""

    source: str
    patterns: tuple[str, ...] = field(metadata=toml(nonempty=True))
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))

    def __post_init__(self) -> None:
        _check("patterns", self.patterns)


@dataclass(frozen=True, slots=True)
class CauseTable:
    names: tuple[str, ...] = ()
    cause: tuple[FailureCause, ...] = ()
    ending: tuple[Ending, ...] = ()

    def __post_init__(self) -> None:
        _check("names", self.names)

    def named_nodes(self, output: str) -> tuple[str, ...]:
        """Return the nodes that a launcher says it had to do without."""
        hits = (re.finditer(name, output, re.MULTILINE) for name in self.names)
        return tuple(dict.fromkeys(hit["node"] for each in hits for hit in each))


@cache
def _endings() -> re.Pattern[str]:
    """Return all lines that end a run, as one pattern without names of groups."""
    table = cause_table()
    rows = [*(row.patterns for row in table.cause), *(row.patterns for row in table.ending)]
    bodies = [p.removeprefix("^") for patterns in rows for p in patterns if "\\n" not in p]
    groups: dict[str, list[str]] = {}
    for body in (re.sub(r"\?P<\w+>", "?:", body) for body in bodies):
        start = next(start for start in STARTS if body.startswith(start))
        groups.setdefault(start, []).append(body.removeprefix(start))
    return re.compile("|".join(f"{start}(?:{'|'.join(rest)})" for start, rest in groups.items()))


def ends_run(line: str) -> bool:
    """Return whether a line of an output says that its run ended badly. It may come after the
    label of a rank, or after the half of a row that was being printed."""
    label = LABEL.match(line)
    texts = (line.strip(), line[label.end() :] if label else "")
    return any(_endings().match(text) for text in texts if not text[:1].isdigit())


@cache
def cause_table() -> CauseTable:
    """Read the package's table."""
    return load_table(CauseTable, "causes.toml")
