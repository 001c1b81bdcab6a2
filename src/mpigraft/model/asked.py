"""What is asked and started: transports, configurations, benchmarks, launches."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from mpigraft.model.graft import GraftPlan
from mpigraft.model.here import MpiInstall
from mpigraft.model.nodes import LaunchedBy
from mpigraft.model.words import EnvRow, Kind, Peer


@dataclass(frozen=True, slots=True)
class Sign:
    """What a library prints when it really uses a lane. `pattern` is a regular expression over
    one line; named group `lane` overrides `lane`."""

    kind: Kind
    peer: Peer
    pattern: str
    lane: str
    proves: bool  # False: seeing it contradicts the wish
    where: str = "any"  # stdout, stderr, any
    wire: str = ""  # bytes: its payload crosses the kernel's interfaces; none: it must not
    beside: bool = False  # known not to be the transport asked for: windows in shared memory
    says: str = ""  # the same for a person, with {lane} for what was told
    due: str = ""  # for a person, what had to be told; empty where nothing had to


@dataclass(frozen=True, slots=True)
class Transport:
    """One row of knowledge, resolved for one MPI on one machine."""

    name: str  # ofi-lnx
    row: str
    env: tuple[EnvRow, ...]  # forced selection: part of every launch
    template: tuple[tuple[str, str], ...]  # the same before expansion: part of the key
    probe_env: tuple[EnvRow, ...]  # makes the library talk: only in probe launches
    signs: tuple[Sign, ...]
    peers: tuple[Peer, ...]  # peer classes that it can serve
    issues: tuple[str, ...]  # ids of known issues to look at when it fails
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KnownIssue:
    id: str
    symptom: str
    affects: str
    cause: str
    fix: str
    sources: tuple[str, ...]
    evidence: tuple[str, ...]
    pattern: str = ""  # matches the failing output, where one is known


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is compared. `key` is a SHA-256 over contents, `id` a label for people."""

    key: str
    id: str  # openmpi@5.0.11/ofi-lnx, or the name given to an import
    mpi: MpiInstall | None  # None: imported
    transport: Transport | None
    buffers: str = "host"  # host, cuda, rocm
    settings: tuple[tuple[str, str], ...] = ()  # --set K=V
    named: bool = False  # asked for by name: a failure ends the command
    libraries: tuple[tuple[str, str], ...] = ()  # soname, content digest: libmpi and closure
    graft: GraftPlan | None = None  # None: the program of this machine, on this machine
    launcher: LaunchedBy | None = None  # None: the MPI's own


class Better(StrEnum):
    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    unit: str
    better: Better


METRICS = {
    m.name: m
    for m in (
        Metric("latency", "us", Better.LOWER),
        Metric("bandwidth", "MB/s", Better.HIGHER),
        Metric("message_rate", "messages/s", Better.HIGHER),
        Metric("init_time", "ms", Better.LOWER),
        Metric("launch_time", "ms", Better.LOWER),
        Metric("memory", "MiB", Better.LOWER),
        Metric("overlap", "%", Better.HIGHER),
    )
}


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
    files: tuple[tuple[Path, str], ...] = ()  # (path, text) that must stand before it starts
    # What of `env` is this launch's own, whatever the user has; None: a variable that must not be.
    decided: tuple[tuple[str, str | None], ...] = ()
