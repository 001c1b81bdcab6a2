"""What is asked and started: transports, configurations, benchmarks, launches."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mpigraft.core.model.grafts import GraftPlan
from mpigraft.core.model.machine import MpiInstall
from mpigraft.core.model.nodes import LaunchedBy
from mpigraft.core.model.vocabulary import EnvRow, Kind, Peer, Scope
from mpigraft.core.serialize import pairs_field


@dataclass(frozen=True, slots=True)
class Sign:
    """What a library prints when it really uses a lane. `pattern` is a regular expression over
    one line; named group `lane` overrides `lane`."""

    kind: Kind
    peer: Peer
    pattern: str
    lane: str
    proves: bool  # False: its line contradicts the requested transport
    where: str = "any"  # stdout, stderr, any
    wire: str = ""  # bytes: its payload crosses the kernel's interfaces; none: it must not
    # Known not to be the transport that was requested: windows in shared memory.
    unrequested: bool = field(default=False, metadata={"was": "beside"})
    says: str = ""  # the same as text, with {lane} for the printed lane
    due: str = ""  # as text, what had to be printed; empty where nothing had to


@dataclass(frozen=True, slots=True)
class Transport:
    """One row of knowledge, resolved for one MPI on one machine."""

    name: str  # ofi-lnx
    row: str
    env: tuple[EnvRow, ...]  # what forces it: part of every launch
    template: tuple[tuple[str, str], ...]  # the same before expansion: part of the key
    probe_env: tuple[EnvRow, ...]  # makes the library talk: only in probe launches
    signs: tuple[Sign, ...]
    peers: tuple[Peer, ...]  # peer classes that it can serve
    issues: tuple[str, ...]  # ids of known issues to look at when it fails
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingFile:
    """A file that a variable of a setting names. Each launch gets a copy of its own."""

    variable: str
    path: str  # where it was read
    text: str

    @property
    def name(self) -> str:
        """Name its copy in the folder of a launch."""
        return f"setting-{self.variable}"


@dataclass(frozen=True, slots=True)
class Setting:
    """A named set of variables, files and words of the launcher, compared as an arm of its own.
    The name is a label: two of equal content are one arm."""

    name: str
    rows: tuple[EnvRow, ...] = ()  # value None: the variable is not set for ranks
    files: tuple[SettingFile, ...] = ()
    launcher: tuple[str, ...] = ()
    plain: str = ""  # key of the same configuration without it

    def file_rows(self, folder: Path) -> tuple[EnvRow, ...]:
        """Give the variables that name the copies in a folder, as ranks see it."""
        source = f"setting {self.name}"
        return tuple(
            EnvRow(one.variable, str(folder / one.name), Scope.RANK, source) for one in self.files
        )


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is compared. `key` is a SHA-256 over contents, `id` a label for people."""

    key: str
    id: str  # openmpi@5.0.11/ofi-lnx, or the name given to an import
    mpi: MpiInstall | None  # None: imported
    transport: Transport | None  # None: the MPI chooses, or imported
    buffers: str = "host"  # host, cuda, rocm
    variables: tuple[tuple[str, str], ...] = ()  # --env K=V
    named: bool = False  # asked for by name: a failure ends the command
    libraries: tuple[tuple[str, str], ...] = ()  # soname, content digest: libmpi and closure
    graft: GraftPlan | None = None  # None: the program of this machine, on this machine
    launcher: LaunchedBy | None = None  # None: the MPI's own
    environment: tuple[EnvRow, ...] = ()  # of `variables`, and what ranks need to find the MPI
    setting: Setting | None = None  # None: the plain arm

    @property
    def rows(self) -> tuple[EnvRow, ...]:
        """What forces the transport, then `environment`, then the setting's variables. The last row
        of a name holds."""
        forced = self.transport.env if self.transport else ()
        return (*forced, *self.environment, *(self.setting.rows if self.setting else ()))


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One measurable thing, named by suite: native:latency, osu:bibw, imb:PingPong.

    `options` are sorted (flag, value) pairs that change what is measured (datatype, counts);
    they are part of `key`, so unlike things are never compared.
    """

    suite: str
    name: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        tail = "".join(f",{k}={v}" for k, v in self.options)
        return f"{self.suite}:{self.name}{tail}"

    def covers(self, other: Benchmark) -> bool:
        """Return whether a program that was started for this one may have measured the other:
        outputs tell of more options than anybody gives (datatype, window, how many took part)."""
        same = (self.suite, self.name) == (other.suite, other.name)
        return same and set(self.options) <= set(other.options)

    @classmethod
    def parse(cls, key: str) -> Benchmark:
        head, *tail = key.split(",")
        suite, _, name = head.rpartition(":")
        options = sorted((k, v) for k, _, v in (item.partition("=") for item in tail))
        return cls(suite or "native", name, tuple(options))


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of one configuration, as plain data: nothing is left to decide."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]  # the whole environment of the launcher
    cwd: Path
    limit_s: float
    witness: Path  # folder into which every rank writes one record
    files: tuple[tuple[Path, str], ...] = ()  # (path, text) that must exist before it starts
    # The part of `env` that no user's value replaces; None: a variable that must not be set.
    decided: tuple[tuple[str, str | None], ...] = ()
    # As `files`: the script of what ranks start with MPI_Comm_spawn, on whose path they rely.
    children: tuple[tuple[Path, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RenderedCommand:
    """A launcher's command line for a layout; `refused` says why it has none."""

    launcher: str
    mpi: str  # family; empty: any
    environment: tuple[tuple[str, str], ...] = pairs_field()
    words: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = pairs_field()  # name, text
    refused: str = ""
