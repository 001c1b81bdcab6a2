"""The rows of ranks.toml as values: which variables tell a rank its number."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mpigraft.knowledge.reader import load_table, toml


@dataclass(frozen=True, slots=True)
class RankVariables:
    """Names of variables, of which the first that is set counts."""

    kind: str  # of launcher
    world: tuple[str, ...] = field(metadata=toml(nonempty=True))  # a rank's number in the world
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))
    node: tuple[str, ...] = ()  # its number on its node


@dataclass(frozen=True, slots=True)
class RankTable:
    launcher: tuple[RankVariables, ...] = ()

    def header(self) -> str:
        """Write the lists that the C programs include."""
        lists = {
            "WORLD_RANK_VARIABLES": (name for row in self.launcher for name in row.world),
            "NODE_RANK_VARIABLES": (name for row in self.launcher for name in row.node),
        }
        return "\n".join((HEAD, *(_list(name, names) for name, names in lists.items()), "#endif\n"))


HEAD = """\
/* Made by tools/write_ranks.py of knowledge/ranks.toml: not to be edited. */
#ifndef MPIGRAFT_RANK_VARIABLES_H
#define MPIGRAFT_RANK_VARIABLES_H
"""


def rank_table() -> RankTable:
    """This package's table."""
    return load_table(RankTable, "ranks.toml")


def rank_variables(kind: str) -> RankVariables:
    """Find the variables that a launcher sets. Raises KeyError for an unknown one."""
    return {row.kind: row for row in rank_table().launcher}[kind]


def _list(macro: str, names: Iterable[str]) -> str:
    rows = "".join(f' \\\n    "{name}",' for name in dict.fromkeys(names))
    return f"#define {macro}{rows.removesuffix(',')}\n"
