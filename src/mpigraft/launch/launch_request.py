"""What `prepare_launch` is given: a program, where and how it is to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from mpigraft.core.errors import MissingError
from mpigraft.core.model import NOWHERE, Allocation, Bind, Configuration, Group, Layout, Placement
from mpigraft.graft import path_in_guest
from mpigraft.launch.hosts.allocation import THIS_HOST
from mpigraft.native import Natives

IN_GUEST = "guest"  # source of an MpiInstall inside a guest
GRACE_S = 2.0  # between the guard's SIGTERM and SIGKILL


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """A program to start in a configuration on a layout, with everything that this needs."""

    configuration: Configuration
    layout: Layout
    program: tuple[str, ...]
    _: KW_ONLY
    natives: Natives
    witness: Path  # folder into which every rank writes one record
    limit_s: float
    cwd: Path
    probe: bool = False  # make the library print what it uses
    root: bool | None = None  # None: as this process
    cores: int | None = None  # None: those that this process may use
    environ: Mapping[str, str] | None = None  # what is allowed of it is passed; None: os.environ
    inherited: Mapping[str, str] | None = None  # passed whole, instead of `environ`
    grace_s: float = GRACE_S
    binds: tuple[Bind, ...] = ()  # of the user or the site, in a guest
    parent: int | None = None  # starts the guard, which does nothing under another one; None: us
    allocation: Allocation = THIS_HOST
    placement: Placement = NOWHERE  # of each rank of a node
    other_programs: tuple[Group, ...] = ()  # each with its part of the layout's ranks
    folder: Path | None = None  # for files that the launcher reads; None: `cwd`
    # Words of MPIGRAFT_TRACE_OPTIONS: ranks write node files beside the witness's records.
    tracing: tuple[str, ...] | None = None
    stdin: str = ""  # rank that reads standard input: 0, all, none; empty: the launcher decides

    @property
    def launcher_kind(self) -> str:
        """The key of LAUNCHERS: the requested launcher's, else the MPI's own."""
        if self.configuration.launcher:
            return self.configuration.launcher.kind
        return self.configuration.mpi.launcher_kind if self.configuration.mpi else ""

    @property
    def launcher_in_guest(self) -> bool:
        """Whether the launcher is in the guest, as that of a guest's own MPI is: no program outside
        can start it, so the engine is around it."""
        mpi = self.configuration.mpi
        own = self.configuration.launcher is None
        return mpi is not None and mpi.source == IN_GUEST and own

    @property
    def preloads(self) -> tuple[Path, ...]:
        """What is preloaded into each rank, as ranks see it. What traces comes first: calls of the
        witness then do not count as the program's. Raises MissingError where it was not built."""
        if self.tracing is None:
            return (self.natives.witness,)
        if self.natives.trace is None:
            raise MissingError.of("trace-not-built", id=self.configuration.id)
        return self.natives.trace, self.natives.witness

    @property
    def witness_in_guest(self) -> Path:
        """The folder of records as ranks see it."""
        plan = self.configuration.graft
        return path_in_guest(plan, self.witness) if plan else self.witness
