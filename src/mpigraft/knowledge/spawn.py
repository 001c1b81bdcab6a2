"""The rows of spawn.toml as values: whether ranks may start others, by what started them."""

from __future__ import annotations

from dataclasses import dataclass, field

from mpigraft.core.model import Family
from mpigraft.knowledge.reader import RowError, load_rows, toml
from mpigraft.knowledge.versions import Range, version_numbers

ALONE = "alone"  # the launcher of a process that none started


@dataclass(frozen=True, slots=True)
class Spawn:
    """What MPI_Comm_spawn does for the ranks of an MPI under a launcher."""

    launcher: str
    works: bool
    families: tuple[Family, ...] = field(metadata=toml("family"))
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))
    when: Range | None = None
    once: bool = False
    pmi: str = ""  # empty: any
    message: str = ""
    fix: str = ""
    environment: tuple[str, ...] = ()  # NAME=VALUE

    def __post_init__(self) -> None:
        if not self.works and not self.fix:
            raise RowError("fix", "missing: say what to do where it does not work")

    def concerns(self, launcher: str, family: str, release: str, pmi: str) -> bool:
        return (
            self.launcher == launcher
            and family in self.families
            and (self.when is None or version_numbers(release) in self.when)
            and (not self.pmi or pmi.startswith(self.pmi))  # pmix_v4 is pmix
        )

    @property
    def summary(self) -> str:
        """For a person, in one line."""
        how = f"{self.launcher} --mpi={self.pmi}" if self.pmi else self.launcher
        way = "without a launcher" if self.launcher == ALONE else f"under {how}"
        head = f"MPI_Comm_spawn {'works' if self.works else 'does not work'} {way}"
        return "; ".join(part for part in (head, self.message, self.fix) if part)


def rows() -> tuple[Spawn, ...]:
    """Return this package's table."""
    return load_rows(Spawn, "spawn", "spawn.toml")


def spawn_facts(launcher: str, family: str, release: str, pmi: str = "") -> Spawn | None:
    """Find what is known of an MPI's ranks under a launcher; None: nothing."""
    return next((row for row in rows() if row.concerns(launcher, family, release, pmi)), None)


def spawns_of_mpi(family: str, release: str) -> tuple[Spawn, ...]:
    """Find all that is known of an MPI's ranks, by launcher."""
    return tuple(r for r in rows() if r.concerns(r.launcher, family, release, r.pmi))
