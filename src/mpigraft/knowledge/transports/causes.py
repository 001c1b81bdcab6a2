"""The rows of causes.toml as values: what launchers, ssh and Slurm print of a launch that fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from mpigraft.knowledge.reader import RowError, load_table, toml


def _check(key: str, patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise RowError(key, f"not a regular expression: {error}") from None
        if not pattern.startswith("^"):
            raise RowError(key, f"{pattern!r} does not begin a line")


@dataclass(frozen=True, slots=True)
class Cause:
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
        """Whether it can be why a launch ended with `code`; `whole`: all its ranks were in MPI."""
        possible = self.entered or not whole
        return possible and (slurm or not self.slurm) and (not self.codes or code in self.codes)

    def hits(self, output: str) -> Iterator[dict[str, str]]:
        """The fields of each of its lines in an output."""
        for pattern in self.patterns:
            for hit in re.finditer(pattern, output, re.MULTILINE):
                yield {name: text for name, text in hit.groupdict().items() if text}


@dataclass(frozen=True, slots=True)
class CauseTable:
    names: tuple[str, ...] = ()
    cause: tuple[Cause, ...] = ()

    def __post_init__(self) -> None:
        _check("names", self.names)

    def named_nodes(self, output: str) -> tuple[str, ...]:
        """The nodes that a launcher says it had to do without."""
        hits = (re.finditer(name, output, re.MULTILINE) for name in self.names)
        return tuple(dict.fromkeys(hit["node"] for each in hits for hit in each))


@cache
def cause_table() -> CauseTable:
    """Read the package's table."""
    return load_table(CauseTable, "causes.toml")
