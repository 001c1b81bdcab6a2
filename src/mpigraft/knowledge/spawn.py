"""The rows of spawn.toml as values: whether ranks may start others, by what started them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from mpigraft.knowledge.table import Document, Range, Table, document, version, version_range
from mpigraft.model import Family


@dataclass(frozen=True, slots=True)
class Spawn:
    """What MPI_Comm_spawn does for the ranks of an MPI under a launcher."""

    launcher: str
    families: tuple[str, ...]
    when: Range | None
    pmi: str  # empty: whatever the launcher offers
    works: bool
    seen: str
    mend: str

    def concerns(self, launcher: str, family: str, release: str, pmi: str) -> bool:
        return (
            self.launcher == launcher
            and family in self.families
            and (self.when is None or version(release) in self.when)
            and (not self.pmi or pmi.startswith(self.pmi))  # pmix_v4 is pmix
        )

    @property
    def told(self) -> str:
        """For a person, in one line."""
        how = f"{self.launcher} --mpi={self.pmi}" if self.pmi else self.launcher
        head = f"MPI_Comm_spawn {'works' if self.works else 'does not work'} under {how}"
        return "; ".join(part for part in (head, self.seen, self.mend) if part)


def read(data: Document, file: str = "spawn.toml") -> tuple[Spawn, ...]:
    """The rows of a document. Raises UsageError for a wrong one."""
    whole = Table(file, dict(data))
    rows = tuple(_row(table) for table in whole.tables("spawn"))
    whole.done()
    return rows


@cache
def rows() -> tuple[Spawn, ...]:
    """This package's table, read and checked once."""
    return read(document("spawn.toml"))


def spawn(launcher: str, family: str, release: str, pmi: str = "") -> Spawn | None:
    """What is known of an MPI's ranks under a launcher; None: nobody has tried."""
    return next((row for row in rows() if row.concerns(launcher, family, release, pmi)), None)


def of_an_mpi(family: str, release: str) -> tuple[Spawn, ...]:
    """All that is known of an MPI's ranks, by launcher."""
    return tuple(r for r in rows() if r.concerns(r.launcher, family, release, r.pmi))


def _row(table: Table) -> Spawn:
    row = Spawn(
        launcher=table.text("launcher"),
        families=table.texts("family"),
        when=version_range(table, "when"),
        pmi=table.text("pmi", ""),
        works=bool(table.flag("works")),
        seen=table.text("seen", ""),
        mend=table.text("mend", ""),
    )
    if unknown := set(row.families) - {family.value for family in Family}:
        raise table.wrong("family", f"{sorted(unknown)} are unknown")
    if not row.works and not row.mend:
        raise table.wrong("mend", "is missing: what is to be done where it does not work")
    if not table.texts("sources"):
        raise table.wrong("sources", "empty")
    table.done()
    return row
