"""The rows of ranks.toml as values: which variables give a rank its number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mpigraft.knowledge.reader import load_rows, toml


@dataclass(frozen=True, slots=True)
class RankVariables:
    """Names of variables: the first that is set counts."""

    kind: str  # of launcher
    world: tuple[str, ...] = field(metadata=toml(nonempty=True))  # a rank's number in the world
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))
    node: tuple[str, ...] = ()  # its number on its node
    connection: tuple[str, ...] = ()  # its job, then its number in it
    size: str = ""  # how many tasks the step or job has


HEAD = """\
/* Made by tools/write_ranks.py of knowledge/ranks.toml: not to be edited. */
#ifndef MPIGRAFT_RANK_VARIABLES_H
#define MPIGRAFT_RANK_VARIABLES_H
"""


def rank_rows() -> tuple[RankVariables, ...]:
    """Return all rows."""
    return load_rows(RankVariables, "launcher", "ranks.toml")


def rank_header() -> str:
    """Write the lists that the C programs include."""
    rows = rank_rows()
    connections = (row.connection for row in rows if row.connection)
    lists = {
        "WORLD_RANK_VARIABLES": (_quoted(name) for row in rows for name in row.world),
        "NODE_RANK_VARIABLES": (_quoted(name) for row in rows for name in row.node),
        "CONNECTION_VARIABLES": (f"{{{', '.join(map(_quoted, row))}}}" for row in connections),
    }
    return "\n".join((HEAD, *(_list(name, names) for name, names in lists.items()), "#endif\n"))


def rank_variables(kind: str) -> RankVariables:
    """Find the variables that a launcher sets. Raises KeyError for an unknown one."""
    return {row.kind: row for row in rank_rows()}[kind]


def task_in(environ: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Return which task of several a launcher made of the process with these variables: launcher,
    number and how many; None for a process that no launcher or one alone started."""
    for row in rank_rows():
        size = environ.get(row.size, "")
        numbers = [environ[name] for name in row.world if name in environ]
        if numbers and size.isdecimal() and int(size) > 1:
            return row.kind, numbers[0], size
    return None


def _quoted(name: str) -> str:
    return f'"{name}"'


def _list(macro: str, words: Iterable[str]) -> str:
    rows = "".join(f" \\\n    {word}," for word in dict.fromkeys(words))
    return f"#define {macro}{rows.removesuffix(',')}\n"
