"""The rows of launcher_words.toml as values: how the command line of a launcher is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from mpigraft.knowledge.reader import load_rows, toml


@dataclass(frozen=True, slots=True)
class LauncherWords:
    """A launcher of MPI ranks: its names, and its options by what they mean."""

    names: tuple[str, ...] = field(metadata=toml(nonempty=True))
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))
    own: bool = False
    ranks: tuple[str, ...] = ()
    ranks_per_node: tuple[str, ...] = field(default=(), metadata=toml("ranks-per-node"))
    nodes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    hostfile: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    one: tuple[str, ...] = ()
    two: tuple[str, ...] = ()
    settings: bool = False

    def count(self, option: str) -> int:
        """Return how many words follow this option as its values."""
        if option in self.two:
            return 2
        several = (self.ranks, self.ranks_per_node, self.nodes, self.hosts, self.hostfile)
        return int(any(option in names for names in (*several, self.environment, self.one)))

    def meaning(self, option: str) -> str:
        """Return the option of `mpigraft run` that takes the value of this one; empty: none
        does."""
        names = {
            "-n": self.ranks, "--ranks-per-node": self.ranks_per_node, "--nodes": self.nodes,
            "--hosts": self.hosts, "--hostfile": self.hostfile, "--env": self.environment,
        }  # fmt: skip
        return next((flag for flag, options in names.items() if option in options), "")


@cache
def _by_name() -> dict[str, LauncherWords]:
    rows = load_rows(LauncherWords, "launcher", "launcher_words.toml")
    return {name: row for row in rows for name in row.names}


def find_launcher(program: str, argument: str = "") -> tuple[str, LauncherWords] | None:
    """Find the launcher that a program of this name is, given its first argument: (its name in
    the table, its row); None: it is none."""
    rows = _by_name()
    name = program.rpartition("/")[2]
    for known in (name, f"{name} {argument}"):
        if known in rows:
            return known, rows[known]
    return None
