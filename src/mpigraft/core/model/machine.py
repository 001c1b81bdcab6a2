"""What is on a machine: the values that `discover` makes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core.model.vocabulary import Abi, EnvRow, Family, Finding
from mpigraft.core.serialize import pairs_field


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
    variant: bool = False  # only by name: another way to have the same lanes


@dataclass(frozen=True, slots=True)
class MpiInterface:
    """A way to call an MPI besides C, by the symbols of the library that has it."""

    name: str  # mpif.h, use mpi, use mpi_f08, C++
    library: str  # its soname
    compilers: tuple[str, ...] = ()  # of its modules, or of its run-time library; empty: not known


@dataclass(frozen=True, slots=True)
class MpiInstall:
    """One installed MPI and how it was found. `usable` False always carries a `reason`."""

    id: str  # a label: openmpi@5.0.11
    family: Family
    version: str
    abi: Abi
    soname: str = ""
    prefix: Path = Path()
    libmpi: Path | None = None
    launcher: Path | None = None
    launcher_kind: str = ""  # prrte, orte, hydra: a key of launchers.LAUNCHERS
    launcher_version: str = ""
    wrappers: tuple[tuple[str, Path], ...] = pairs_field()  # (language, wrapper): ("c", .../mpicc)
    library_version: str = ""  # first line of MPI_Get_library_version
    libfabric: NetLibrary | None = None
    ucx: NetLibrary | None = None
    device: str = ""  # MPICH family: ch4:ofi, ch4:ucx, ch4:ucx,ofi; else empty
    components: tuple[tuple[str, tuple[str, ...]], ...] = (
        pairs_field()
    )  # Open MPI: (framework, names)
    environment: tuple[EnvRow, ...] = ()  # what it needs to run at all
    source: str = ""  # wheel, path, module, spack, easybuild, cray, debian
    found: tuple[str, ...] = ()  # each way in which it was found, as text
    usable: bool = True
    reason: str = ""
    transports: tuple[TransportOffer, ...] = ()
    modules: str = ""  # a name of those that bring it, where they belong to a configuration
    interfaces: tuple[MpiInterface, ...] = ()  # Fortran and C++
    provenance: tuple[tuple[str, str], ...] = (
        pairs_field()
    )  # how it was built, where its prefix says so

    @property
    def problem(self) -> str:
        """Say why it cannot be used; empty where it can."""
        found = f" ({self.found[0]})" if self.found else ""
        return "" if self.usable else f"{self.id}{found} cannot be used: {self.reason}"

    def components_of(self, framework: str) -> tuple[str, ...]:
        return dict(self.components).get(framework, ())


@dataclass(frozen=True, slots=True)
class NetDevice:
    name: str
    kind: str  # cxi, infiniband, ethernet, loopback
    state: str
    address: str = ""
    details: tuple[tuple[str, str], ...] = pairs_field()  # firmware, driver, speed


@dataclass(frozen=True, slots=True)
class Gpu:
    index: int
    vendor: str  # nvidia, amd
    name: str
    memory_mib: int
    details: tuple[tuple[str, str], ...] = pairs_field()  # driver, cuda or rocm, gdrcopy
    cpus: tuple[int, ...] = ()  # nearest to it, as its PCI device says; empty: it does not


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
    core_cpus: tuple[tuple[int, ...], ...] = ()  # CPUs of each core: its hardware threads
    socket_cpus: tuple[tuple[int, ...], ...] = ()  # CPUs of each socket
    flags: tuple[str, ...] | None = None  # by which loaders choose folders; None: not known
    cpuset: tuple[int, ...] = ()  # of this process, where an affinity mask leaves it fewer CPUs


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
    memory_read_mib_s: int | None = None  # of the fastest NUMA domain, where firmware says so


Core = tuple[int, ...]  # its CPUs: one, or as many as it has hardware threads


def _index(groups: Iterable[Iterable[int]]) -> dict[int, int]:
    return {c: n for n, group in enumerate(groups) for c in group}


def cores_of(cpu: Cpu) -> tuple[Core, ...]:
    """Physical cores in the order of the hardware, socket by socket. Some machines number CPUs
    across sockets in turn: those of neighbouring numbers are then far from each other."""
    cpus = sorted({c for group in (*cpu.numa, *cpu.l3) for c in group} or range(cpu.threads))
    cores = cpu.core_cpus or tuple((c,) for c in cpus)
    levels = [_index(groups) for groups in (cpu.socket_cpus, cpu.numa, cpu.l3)]

    def position(core: Core) -> tuple[int, ...]:
        return (*(level.get(core[0], -1) for level in levels), core[0])

    return tuple(sorted(cores, key=position))
