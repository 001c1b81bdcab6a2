"""Every value that two stages share.

All are frozen: a stage takes the values of the stages before it and makes one new value.
Words are those of the design; one word, one meaning. Sizes are bytes, times are named by
their unit, and anything that is a key is a hex SHA-256 or a UUID.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple


class Family(StrEnum):
    """A line of MPI implementations that share launch, environment and signs."""

    OPENMPI = "openmpi"
    MPICH = "mpich"
    INTEL = "intel"
    CRAY_MPICH = "cray-mpich"
    MVAPICH = "mvapich"


class Abi(StrEnum):
    """A binary interface: programs built for one run on every MPI that has it."""

    OMPI = "ompi"
    MPICH = "mpich"
    MPI_ABI = "mpi-abi"


class Scope(StrEnum):
    """Whose environment a row belongs to."""

    LAUNCHER = "launcher"
    DAEMON = "daemon"
    RANK = "rank"


class Level(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Peer(StrEnum):
    """How far away the other rank is."""

    SELF = "self"
    ON_NODE = "on-node"
    OFF_NODE = "off-node"


class Kind(StrEnum):
    """Kinds of traffic that one library may send over different lanes."""

    P2P = "p2p"
    ONE_SIDED = "one-sided"
    COLLECTIVE = "collective"


class Standing(StrEnum):
    """What the evidence says of one peer class and kind. A missing record is never a pass."""

    PROVEN = "proven"
    CONTRADICTED = "contradicted"
    NOT_EXERCISED = "not exercised"
    NO_EVIDENCE = "no evidence"


@dataclass(frozen=True, slots=True)
class EnvRow:
    """One change of the environment. `value` None drops the variable."""

    name: str
    value: str | None
    scope: Scope
    source: str  # who wants it: mpi, module, transport, user, witness


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check, a launch or a comparison noticed."""

    level: Level
    code: str  # stable, kebab-case or a known issue's id (LNX-02)
    seen: str
    why: str = ""
    mend: str = ""


# ------------------------------------------------------------------ what is here: discover


@dataclass(frozen=True, slots=True)
class NetLibrary:
    """libfabric or UCX as one MPI uses it."""

    name: str  # libfabric, ucx
    version: str | None
    path: Path | None
    offers: tuple[str, ...] = ()  # providers, or transports
    reason: str = ""  # why offers is empty, when it is


@dataclass(frozen=True, slots=True)
class TransportOffer:
    """A transport name that a family knows, and whether it can run here."""

    name: str
    row: str  # id of the row in knowledge/transports.toml
    usable: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class MpiInstall:
    """One installed MPI and how it was found. `usable` False always carries a `reason`."""

    id: str  # a label: openmpi@5.0.11
    family: Family
    version: str
    abi: Abi
    soname: str
    prefix: Path
    libmpi: Path | None
    launcher: Path | None
    launcher_kind: str  # prrte, orte, hydra: a key of launchers.LAUNCHERS
    launcher_version: str
    wrappers: tuple[tuple[str, Path], ...]  # (language, wrapper): ("c", .../mpicc)
    library_version: str  # first line of MPI_Get_library_version
    libfabric: NetLibrary | None
    ucx: NetLibrary | None
    device: str  # MPICH family: ch4:ofi, ch4:ucx, ch4:ucx,ofi; else empty
    components: tuple[tuple[str, tuple[str, ...]], ...]  # Open MPI: (framework, names)
    environment: tuple[EnvRow, ...]  # what it needs to run at all
    source: str  # wheel, path, module, spack, easybuild, cray, debian
    found: tuple[str, ...]  # each way in which it was found, for a person
    usable: bool
    reason: str = ""
    transports: tuple[TransportOffer, ...] = ()

    def components_of(self, framework: str) -> tuple[str, ...]:
        return dict(self.components).get(framework, ())


@dataclass(frozen=True, slots=True)
class NetDevice:
    name: str
    kind: str  # cxi, infiniband, ethernet, loopback
    state: str
    address: str = ""
    details: tuple[tuple[str, str], ...] = ()  # firmware, driver, speed


@dataclass(frozen=True, slots=True)
class Gpu:
    index: int
    vendor: str  # nvidia, amd
    name: str
    memory_mib: int
    details: tuple[tuple[str, str], ...] = ()  # driver, cuda or rocm, gdrcopy


@dataclass(frozen=True, slots=True)
class LauncherInfo:
    """A launcher in PATH or a scheduler's, with the PMI plugins that it offers."""

    name: str
    path: Path
    version: str
    pmi_offered: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Scheduler:
    name: str  # slurm, pbs, flux
    version: str
    in_allocation: bool
    job: str = ""


@dataclass(frozen=True, slots=True)
class Cpu:
    model: str
    architecture: str  # x86_64, aarch64
    cores: int  # physical cores that this process may use
    threads: int
    sockets: int
    numa: tuple[tuple[int, ...], ...]  # CPUs of each NUMA domain
    l3: tuple[tuple[int, ...], ...]  # CPUs of each L3 group


@dataclass(frozen=True, slots=True)
class SingleCopy:
    """Means of moving bytes between processes of a node with one copy."""

    name: str  # xpmem, knem, cma
    usable: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Machine:
    hostname: str
    os: str
    kernel: str
    cpu: Cpu
    memory_mib: int
    fabrics: tuple[NetDevice, ...]
    single_copy: tuple[SingleCopy, ...]
    gpus: tuple[Gpu, ...]
    launchers: tuple[LauncherInfo, ...]
    scheduler: Scheduler | None
    mpis: tuple[MpiInstall, ...]
    findings: tuple[Finding, ...] = ()


# ------------------------------------------------------------------ what is asked


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
class Layout:
    """Nodes, ranks, threads, mapping and binding. `key` names it in results."""

    nodes: int = 1
    ranks_per_node: int = 2
    threads: int = 1
    bind: str = "core"  # core or none

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def key(self) -> str:
        tail = "" if self.threads == 1 else f"x{self.threads}"
        bound = "" if self.bind == "core" else f"-{self.bind}"
        return f"{self.nodes}x{self.ranks_per_node}{tail}{bound}"


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


# ------------------------------------------------------------------ what is started


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of one configuration, as plain data: nothing is left to decide."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]  # the whole environment of the launcher
    cwd: Path
    limit_s: float
    witness: Path  # folder into which every rank writes one record


# ------------------------------------------------------------------ what really ran


@dataclass(frozen=True, slots=True)
class MappedLibrary:
    path: str
    device: int
    inode: int


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


@dataclass(frozen=True, slots=True)
class Proof:
    """What one peer class and kind of traffic really used."""

    peer: Peer
    kind: Kind
    standing: Standing
    lane: str  # as the library names it: "sm", "lnx (shm+lo)"
    sign: str  # the line that was seen; empty without evidence


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


# ------------------------------------------------------------------ what was measured


@dataclass(frozen=True, slots=True)
class Measurement:
    """One benchmark at one size in one launch. `value` is the launch's median."""

    benchmark: Benchmark
    metric: str  # a key of METRICS
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


@dataclass(frozen=True, slots=True)
class ConfigurationRecord:
    """A configuration as the store keeps it: label, key and redacted provenance."""

    campaign: str
    key: str
    id: str
    provenance: str  # canonical JSON, redacted
    buffers: str = "host"  # host, cuda, rocm


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
    started: str
    wall_s: float
    exit_code: int | None
    state: LaunchState
    findings: tuple[Finding, ...]
    artefacts: tuple[tuple[str, str], ...] = ()  # (what, SHA-256): ("stdout", "ab12...")


@dataclass(frozen=True, slots=True)
class EvidenceRecord:
    campaign: str
    configuration: str
    layout: str
    evidence: Evidence


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


# ------------------------------------------------------------------ what it says: compare


class Verdict(StrEnum):
    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Cell:
    """One size of one comparison. `ratio` is configuration over baseline; `low` and `high`
    bound its 95 % interval and are None where a single round gives none."""

    size: int
    baseline: float
    value: float
    ratio: float
    low: float | None
    high: float | None
    verdict: Verdict
    rounds: int
    rounds_needed: int | None = None  # to decide an inconclusive cell; None: cannot be said


@dataclass(frozen=True, slots=True)
class CellGroup:
    """All sizes of one benchmark for one configuration against the baseline."""

    benchmark: str
    metric: str
    unit: str
    layout: str
    buffers: str
    configuration: str  # id
    cells: tuple[Cell, ...]
    curve: Verdict  # joint test over the sizes
    curve_p: float | None
    pooled: float  # geometric mean of the ratios
    pooled_low: float | None
    pooled_high: float | None
    crossovers: tuple[int, ...] = ()  # sizes from which the better one changes


@dataclass(frozen=True, slots=True)
class Noise:
    """What the baseline's two launches per round say of this machine, per benchmark."""

    benchmark: str
    layout: str
    margin: float  # max(3 %, median over sizes of |median A/A ratio - 1|)
    spread: float  # half-width of a typical cell's 95 % interval, as a fraction
    false_verdicts: int  # A/A cells that would have been called
    cells: int


@dataclass(frozen=True, slots=True)
class Comparison:
    campaign: str
    baseline: str  # id
    origin: Origin
    rounds: int
    groups: tuple[CellGroup, ...]
    noise: tuple[Noise, ...]
    findings: tuple[Finding, ...]
    summary: tuple[str, ...] = field(default=())  # lines for a person, most useful first
