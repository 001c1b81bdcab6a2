"""What MPIs need of a node's limits: limits.toml as typed rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mpigraft.core.model import Family, MpiInstall
from mpigraft.knowledge.reader import NEVER, RowError, load_rows, toml
from mpigraft.knowledge.versions import Range, version_numbers

LIMITS = ("memlock", "shm", "nofile", "stack", "hugepages", "memory", "cpus", "ptrace")
NOTHING = re.compile(NEVER)


@dataclass(frozen=True, slots=True)
class LimitNeed:
    """What some MPIs need of one limit of a node: `base` + `per_rank` x its ranks."""

    id: str
    limit: str = field(metadata=toml(words=LIMITS))
    what: str
    why: str
    fix: str
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))
    unit: str = ""
    base: float = 0
    per_rank: float = 0
    most: bool = False  # the limit must not be more
    families: tuple[Family, ...] = field(default=(), metadata=toml("family"))
    when: Range | None = None
    device: re.Pattern[str] | None = None
    fabric: tuple[str, ...] = ()
    library: str = field(default="", metadata=toml(words=("ucx", "libfabric")))
    setting: re.Pattern[str] | None = None
    unless: re.Pattern[str] = NOTHING

    def __post_init__(self) -> None:
        if not (self.base or self.per_rank):
            raise RowError("base", "give base or per_rank")

    def of(self, ranks: int) -> float:
        return self.base + self.per_rank * ranks

    def concerns(self, mpi: MpiInstall, fabrics: Sequence[str], settings: Sequence[str]) -> bool:
        """Return whether an MPI needs it beside devices of these fabrics, with these variables."""
        return (
            (not self.families or mpi.family in self.families)
            and (self.when is None or version_numbers(mpi.version) in self.when)
            and (self.device is None or bool(self.device.fullmatch(mpi.device)))
            and (not self.fabric or any(name in self.fabric for name in fabrics))
            and (not self.library or getattr(mpi, self.library) is not None)
            and (self.setting is None or any(map(self.setting.fullmatch, settings)))
            and not any(map(self.unless.fullmatch, settings))
        )


def limit_needs() -> tuple[LimitNeed, ...]:
    """Return every row of limits.toml. Raises UsageError for a wrong row."""
    return load_rows(LimitNeed, "limit", "limits.toml")
