"""What really ran and what was measured: evidence, measurements and the rows of the store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from mpigraft.core.model.configuration import Benchmark
from mpigraft.core.model.nodes import LayoutOrder, layout_order
from mpigraft.core.model.vocabulary import Finding, Kind, Peer, ProofStatus


@dataclass(frozen=True, slots=True)
class MappedLibrary:
    path: str
    device: int
    inode: int
    content: str = ""  # of an MPI's parts: "BUILD ID/SIZE" or "sha256:SUM"; empty: not known


@dataclass(frozen=True, slots=True)
class RankRecord:
    """One record of the witness, written by one rank at the end of its MPI_Init."""

    rank: int
    size: int
    host: str
    pid: int
    library_version: str
    cores: tuple[int, ...]  # CPUs that the rank may run on
    libraries: tuple[MappedLibrary, ...]
    numa: tuple[int, ...] = ()  # NUMA nodes of these CPUs; empty: not known
    gpus: tuple[str, ...] = ()  # NAME=VALUE of each *_VISIBLE_DEVICES that is set
    devices: tuple[str, ...] = ()  # files of network devices that it has open: /dev/cxi0
    boot: str = ""  # boot id of the kernel it runs on; empty: not known
    program: str = ""  # name of its file; empty: not known
    world: int = 0  # number of its world in the job; 0: the launch's own
    world_kind: str = "launch"  # of that world, as core/worlds.py names it

    @property
    def of_launch(self) -> bool:
        """Whether it is a record of a rank of the launch's own world."""
        return self.world == 0 and self.rank >= 0


@dataclass(frozen=True, slots=True)
class Proof:
    """What one peer class and kind of traffic really used."""

    peer: Peer
    kind: Kind
    standing: ProofStatus
    lane: str  # as the library names it: "sm", "lnx (shm+lo)"
    sign: str  # the line that was seen; empty without evidence
    says: str = ""  # what that line says, as a clause


class SettingState(StrEnum):
    """How far it is shown that a variable of a setting reached the library that it is for."""

    IN_EFFECT = "in effect"  # the library holds the value
    READ = "read"  # the library names the variable; what it does with it is not visible
    UNKNOWN = "unknown to this version"
    OVERRIDDEN = "overridden"  # by a configuration file
    REFUSED = "not taken"  # the library reports another value, or that it cannot read this one
    NOT_KNOWN = "not known"  # nothing says so


@dataclass(frozen=True, slots=True)
class SettingEffect:
    """One variable of a setting, and by which sign its state is known."""

    variable: str
    state: SettingState
    sign: str = ""  # a line of the library, or a variable of MPI_T with its value
    near: str = ""  # of a name that is unknown, the nearest one that is not


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was asked, what ran, and how that is known."""

    asked: str
    ran: str
    proof: tuple[Proof, ...]
    findings: tuple[Finding, ...]
    ranks: tuple[RankRecord, ...]
    wire: tuple[tuple[str, int], ...] = ()  # (interface, bytes sent) during the p2p probe
    ok: bool = True  # False: another transport or world than asked
    counters: tuple[tuple[str, str], ...] = ()  # (interface, who counted: netdev, infiniband, ...)
    named: tuple[str, ...] = ()  # interfaces that the payload had to cross; empty: any
    payload: int = 0  # bytes that all ranks sent in that probe; 0: not known
    # (interface, bytes) that the ranks' own TCP connections sent in it; None: not known
    own: tuple[tuple[str, int], ...] | None = None
    settings: tuple[SettingEffect, ...] = ()  # of the configuration's setting


@dataclass(frozen=True, slots=True)
class Measurement:
    """One benchmark at one size in one launch. `value` is the launch's median."""

    benchmark: Benchmark
    metric: str  # a key of METRICS, or one that says its own unit and direction
    size: int  # bytes per message; 0 where there is none
    value: float
    mean: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    p90: float | None = None
    p99: float | None = None
    iterations: int | None = None
    valid: bool | None = None  # None: not validated
    samples: tuple[float, ...] = ()
    resolution: float | None = None  # smallest step that `value` can show; None: not known


class Origin(StrEnum):
    RUN = "run"
    IMPORT = "import"


class LaunchState(StrEnum):
    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    MISMATCH = "mismatch"


@dataclass(frozen=True, slots=True)
class CampaignRecord:
    """A campaign as it was planned; written once, before the first launch."""

    id: str  # UUID
    name: str
    created: str  # ISO 8601, UTC
    origin: Origin
    seed: int
    rounds: int
    baseline: str  # key of the baseline configuration
    plan: str  # canonical JSON of the campaign: what --resume reads
    tool: str  # version of mpigraft


@dataclass(frozen=True, slots=True)
class AllocationRecord:
    """One set of nodes for one span of time."""

    id: str
    campaign: str
    started: str
    host: str
    machine: str  # canonical JSON, redacted: what `discover` saw
    hosts: tuple[str, ...] = ()  # as launchers call them; empty: `host` alone
    job: str = ""  # its id at the scheduler; empty: nobody handed the nodes out
    share: str = ""  # of the rounds: 2/3; empty: written before there were shares
    steps: int = 0  # launches that were to be made when it began
    ended: str = ""  # ISO 8601, UTC: nothing was left of them; empty: it runs, or was cut off

    @property
    def nodes(self) -> str:
        """Its hosts as one text: what is measured on the same nodes may be one round."""
        return ",".join(self.hosts) or self.host


@dataclass(frozen=True, slots=True)
class ConfigurationRecord:
    """A configuration as the store keeps it: label, key and redacted provenance."""

    campaign: str
    key: str
    id: str
    provenance: str  # canonical JSON, redacted
    buffers: str = "host"  # host, cuda, rocm


@dataclass(frozen=True, slots=True)
class NodeState:
    """The load of one node at one moment. Empty or None: its kernel does not say."""

    load: tuple[float, ...] = ()  # load average of 1, 5 and 15 minutes
    pressure: float | None = None  # PSI: % of the last 10 s in which some task waited for a CPU
    stalled_s: float | None = None  # PSI: seconds of such waiting since boot
    steal_s: float | None = None  # CPU seconds that a hypervisor gave to others since boot
    governor: str = ""  # of the CPU frequency; several of them with commas


@dataclass(frozen=True, slots=True)
class CpuUse:
    """Who used the CPUs of one node's ranks: during a benchmark, or from after MPI_Init to before
    MPI_Finalize."""

    host: str
    ranks: int
    cpus: int  # that these ranks may run on
    wall_s: float
    busy_s: float  # CPU seconds of these CPUs, in user and system mode, by whomever
    steal_s: float  # CPU seconds of these CPUs that a hypervisor gave to others
    own_s: float  # CPU seconds of the ranks, on any CPU
    others: float  # greatest share, 0 to 1, that others took of CPUs which ranks have in common
    switches: int  # involuntary context switches of the ranks
    benchmark: str = ""  # key; empty: the whole launch


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under what a launch was measured."""

    before: NodeState  # of the node where mpigraft runs
    after: NodeState
    nodes: tuple[CpuUse, ...] = ()  # of each node of the launch; empty: its ranks did not say


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """One launch that ended, well or not."""

    id: str
    campaign: str
    allocation: str
    configuration: str  # key
    layout: str  # Layout.key
    round: int  # from 0
    slot: int  # position in the round
    replica: int  # 0, or 1 for the baseline's second launch in a round
    started: str  # ISO 8601, UTC
    wall_s: float
    exit_code: int | None
    state: LaunchState
    findings: tuple[Finding, ...]
    artefacts: tuple[tuple[str, str], ...] = ()  # (what, SHA-256): ("stdout", "ab12...")
    ended: str = ""  # ISO 8601, UTC; empty: not known, as of an imported table
    conditions: Conditions | None = None  # None: not recorded
    # Key of the benchmark whose own program it started; empty: our native program, or an import.
    program: str = ""

    def without(self, code: str) -> LaunchRecord:
        """Return the launch without its findings of a code."""
        return replace(self, findings=tuple(f for f in self.findings if f.code != code))


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    campaign: str
    configuration: str
    layout: str
    evidence: Evidence
    allocation: str = ""  # on whose nodes it was seen; empty: written before there were several


class SeriesKey(NamedTuple):
    """What values must share to be compared."""

    benchmark: str  # Benchmark.key
    metric: str
    layout: str
    buffers: str

    @property
    def order(self) -> tuple[str, str, LayoutOrder, str]:
        """The place of a series in every table: layouts as numbers, the rest by letters."""
        return (self.benchmark, self.metric, layout_order(self.layout), self.buffers)


class ValueRow(NamedTuple):
    """One measured value with all that a comparison groups by."""

    configuration: str
    layout: str
    allocation: str
    round: int
    replica: int
    benchmark: str  # Benchmark.key
    metric: str
    size: int
    value: float
    buffers: str
    resolution: float | None = None  # as in Measurement

    @property
    def series(self) -> SeriesKey:
        return SeriesKey(self.benchmark, self.metric, self.layout, self.buffers)


@dataclass(frozen=True, slots=True)
class Measured:
    """One campaign as the store has it."""

    campaign: CampaignRecord
    configurations: tuple[ConfigurationRecord, ...]
    allocations: tuple[AllocationRecord, ...]
    launches: tuple[LaunchRecord, ...]
    values: tuple[ValueRow, ...]  # that configurations are compared by, not those of links
    evidence: tuple[EvidenceRecord, ...] = ()

    @property
    def title(self) -> str:
        """`nightly 1f2e3d4c`: as a sentence names it."""
        return f"{self.campaign.name} {self.campaign.id[:8]}"
