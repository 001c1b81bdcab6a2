"""The values of a build: what was requested, what a machine offers, and what is planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mpigraft.core.model import Finding
from mpigraft.knowledge import Archive, Compiler, Package, Patch, Recipe, Unneeded

MACHINE = "this machine"
ASSUMED = "assumed"  # nobody looked: the machine is another one
FABRICS = ("cxi", "infiniband")  # that recipes ask for
GPUS = {"cuda": "NVIDIA", "rocm": "AMD"}


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What was asked for. `versions` has package to version, empty for any; `without` leaves
    packages out, those of the machine and of a stack too."""

    recipe: str
    versions: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    compiler: str = "gnu"


@dataclass(frozen=True, slots=True)
class Offer:
    """A package that is there already, and is used where it is."""

    prefix: str  # of fortran: the compiler
    version: str = ""  # empty: unknown
    by: str = MACHINE  # or the name of a stack, or ASSUMED

    @property
    def of_stack(self) -> bool:
        return self.by not in (MACHINE, ASSUMED)


@dataclass(frozen=True, slots=True)
class BuildStack:
    """The stack that a plan is for, as far as a build is concerned."""

    name: str
    folder: str  # with NAME/VERSION of each package
    compilers: str = ""  # prefix of its GCC; empty: it has none
    fortran: str = ""  # the gfortran of that GCC; empty: it has none
    generation: str = ""  # of the packages that it offers: GCCcore-13.2.0
    others: tuple[str, ...] = ()  # generations that it has besides
    loader: str = ""  # its own dynamic loader; empty: the machine's
    glibc: str = ""  # of that loader
    needed: Mapping[str, int] = field(
        default_factory=dict
    )  # sonames of MPI, and by how many programs


@dataclass(frozen=True, slots=True)
class BuildHost:
    """What a machine offers."""

    architecture: str
    features: frozenset[str]  # cxi, infiniband, xpmem, gdrcopy, nvidia, amd
    provided: Mapping[str, Offer]  # fortran is the compiler
    sources: frozenset[str] = frozenset()  # files of --sources
    offline: bool = False  # nothing is downloaded: only those files count
    patches: Mapping[str, str] = field(default_factory=dict)  # of those files: name to SHA-256
    name: str = ""  # of the machine
    glibc: str = ""  # its version; empty: unknown
    stack: BuildStack | None = None
    interfaces: frozenset[str] = frozenset()  # of the MPI, that are wanted besides C's

    @property
    def partition(self) -> str:
        """Tells it from other partitions of a system: x86_64, aarch64-cuda."""
        gpus = [name for name in GPUS if name in self.provided]
        return "-".join([self.architecture, *gpus])


@dataclass(frozen=True, slots=True)
class PlannedPatch:
    """A patch that a step applies, with the SHA-256 of its file."""

    patch: Patch
    sha256: str


@dataclass(frozen=True, slots=True)
class BuildStep:
    """One package of a plan. In `configure`, {NAME} is the prefix of another package, and {own} its
    own."""

    package: Package
    archive: Archive
    needs: tuple[str, ...]  # packages of the plan, which are built before
    configure: tuple[str, ...]
    why: str
    chosen: str  # why this version
    source: str = ""  # of that, where somebody else ran it
    patches: tuple[PlannedPatch, ...] = ()
    packed: bool = False  # EasyBuild packs the archive from git: its SHA-256 is another each time

    @property
    def id(self) -> str:
        return self.package.id

    @property
    def version(self) -> str:
        return self.archive.version


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """All packages of a chain, each after what it needs."""

    recipe: Recipe
    compiler: Compiler
    host: BuildHost
    steps: tuple[BuildStep, ...]
    findings: tuple[Finding, ...]
    unneeded: tuple[Unneeded, ...] = ()  # on others' lists, and why not here

    @property
    def versions(self) -> dict[str, str]:
        return {step.id: step.version for step in self.steps}
