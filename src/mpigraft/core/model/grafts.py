"""The host's MPI under a guest: what is examined, what is decided, what a launch needs of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from mpigraft.core.model.machine import MpiInstall
from mpigraft.core.model.vocabulary import EnvRow, Finding, Level


class Role(StrEnum):
    """What a library of an MPI's closure is to it, which decides whose copy a guest gets."""

    MPI = "mpi"  # libmpi and what belongs to it: bindings, libopen-pal, libpmix
    NET = "net"  # libfabric, UCX, libibverbs, libcxi: they know the machine's network
    LIBC = "libc"  # one coherent set: libc, libm, the loader
    OTHER = "other"


class Replace(StrEnum):
    """What of the guest's is replaced by the host's."""

    MPI = "mpi"
    LIBFABRIC = "libfabric"  # libfabric and UCX under the guest's own MPI
    NOTHING = "nothing"  # the guest as it is


@dataclass(frozen=True, slots=True)
class AbiObject:
    """One library of a host MPI as a linker sees it. Symbols are `name`, `name@NODE` when they
    need or define a version that is not the default, `name@@NODE` for the default one."""

    soname: str
    path: str  # on the machine that it was seen on
    digest: str  # SHA-256 of its content
    role: Role
    machine: str  # x86_64, aarch64
    needed: tuple[str, ...]
    needs: tuple[tuple[str, str, bool], ...]  # (library, version node, weak)
    defines: tuple[str, ...]  # version nodes
    exported: tuple[str, ...]
    imported: tuple[str, ...]  # those that must be there
    rpath: str = ""
    runpath: str = ""
    opened: bool = False  # opened by name at run time: a plugin
    place: str = ""  # of a plugin, the folder below the graft's `lib` in which it is looked for


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file that an MPI reads at run time: help texts, parameter files, tuning tables."""

    path: str
    place: str  # below the graft folder: share/openmpi/help-mpi-runtime.txt
    digest: str


@dataclass(frozen=True, slots=True)
class MpiAbi:
    """All that `check` and `plan` know of a host MPI; complete without the machine itself."""

    mpi: MpiInstall
    objects: tuple[AbiObject, ...]  # libmpi first, its other bindings, closure, plugins
    data: tuple[DataFile, ...] = ()
    glibc: str = ""  # of the machine: 2.36
    environment: tuple[EnvRow, ...] = ()  # of ranks; {graft} is the graft folder's place
    programs: tuple[AbiObject, ...] = ()  # that it starts; `place` is below the graft folder


class GuestKind(StrEnum):
    PROGRAM = "program"  # on this machine, or in a folder of another architecture
    FOLDER = "folder"
    SIF = "sif"
    OCI = "oci"  # archive, of OCI or of docker save
    PODMAN = "podman"  # an image in podman's storage
    STACK = "stack"  # of this machine, with a loader and an MPI of its own

    @property
    def on_host(self) -> bool:
        """Whether its files are seen at the paths at which this machine has them."""
        return self in (GuestKind.PROGRAM, GuestKind.STACK)


@dataclass(frozen=True, slots=True)
class GuestLabel:
    """A guest as plans, results and people name it."""

    name: str  # app.sif
    kind: GuestKind
    source: str  # as engines get it: absolute path, or name of the image
    digest: str  # SHA-256: of the image file, else over the files that were examined
    architecture: str
    os: str  # PRETTY_NAME of os-release
    glibc: str  # 2.36; empty where there is none
    programs: tuple[str, ...]  # paths inside, of those that need MPI
    environment: tuple[tuple[str, str], ...] = ()  # what the image sets
    env_program: str = ""  # /usr/bin/env, where it has one
    of_host: tuple[str, ...] = ()  # of the programs, those that are files of this machine


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One named part of a verdict: versions, symbols, fortran. Its level is its worst finding's."""

    name: str
    level: Level
    message: str = field(metadata={"was": "said"})  # one line, also when all is well
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a host MPI fits under a guest: no when a part is an error."""

    guest: GuestLabel
    mpi: str  # id
    replace: Replace
    parts: tuple[CheckResult, ...]
    fitting: tuple[str, ...] = ()  # programs that would fit if they were alone

    @property
    def ok(self) -> bool:
        return all(part.level is not Level.ERROR for part in self.parts)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(finding for part in self.parts for finding in part.findings)


class BindKind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    DEVICE = "device"
    SOCKET = "socket"


@dataclass(frozen=True, slots=True)
class Bind:
    """A path of the host that ranks see at `target`."""

    source: str  # absolute; `{graft}/...` is below the graft folder
    target: str  # absolute, inside the guest
    kind: BindKind = BindKind.FILE
    writable: bool = False
    required: bool = True  # False: bound where the source is there
    why: str = ""


@dataclass(frozen=True, slots=True)
class Copy:
    """A file of the graft folder: a copy, for libraries with another search path."""

    source: str  # absolute, on the host
    name: str  # below the graft folder: lib/libmpi.so.40
    digest: str  # of the source
    edit: bool = False  # False: bytes as they are
    rpath: str = ""  # DT_RPATH; absolute folders as ranks see them
    soname: str = ""  # another DT_SONAME; empty keeps it
    renamed: tuple[tuple[str, str], ...] = ()  # DT_NEEDED: (old, new)
    symbols: tuple[tuple[str, str], ...] = ()  # dynamic symbols: (old, new)
    added: tuple[str, ...] = ()  # DT_NEEDED besides its own
    interpreter: str = ""  # another PT_INTERP; empty keeps it


@dataclass(frozen=True, slots=True)
class Stamp:
    """A cheap sign that a file changed. All zero: it was not there."""

    path: str
    device: int
    inode: int
    size: int
    changed_ns: int  # ctime


@dataclass(frozen=True, slots=True)
class GraftPlan:
    """The host MPI put under a guest, as plain data: nothing is left to decide.

    `{graft}` in the source of a bind is the graft folder on the host; ranks see that folder,
    read-only, at `place`, and its subfolder `ranks`, writable, at `place`/ranks.
    """

    key: str  # SHA-256 over contents; names the graft folder
    guest: GuestLabel
    mpi: str  # id
    replace: Replace
    engine: str
    place: str
    copies: tuple[Copy, ...]
    binds: tuple[Bind, ...]  # over the guest's files
    devices: tuple[Bind, ...]
    environment: tuple[EnvRow, ...]  # of ranks: set, or dropped
    passed: tuple[str, ...]  # patterns of names that a container is given of the launcher's
    libmpi: str  # path inside of the one libmpi that ranks must map
    libmpi_copy: str  # its file: below the graft folder, or empty: the guest's own
    glibc: bool  # the host's glibc goes in too
    parts: tuple[CheckResult, ...]  # of the check that allowed it
    inputs: tuple[Stamp, ...]  # files that it was computed from
    options: tuple[str, ...] = ()  # of the engine's own, as a site wants them
    libmpi_elsewhere: tuple[str, ...] = ()  # its other paths, on other CPUs than the planner's


@dataclass(frozen=True, slots=True)
class EngineContext:
    """Where and as whom an engine starts a rank: all that it needs besides the plan."""

    program: str  # path of the engine's program
    version: str
    root: bool
    cwd: str
    ranks_per_node: int
    graft: str  # the graft folder on the host
    extra: tuple[Bind, ...] = ()  # of the user or of the site
    environment: tuple[tuple[str, str], ...] = ()  # of this process: HOME, USER, TMPDIR
    parent: str = ""  # process that spawns the rank, which joins its container if that is possible
    umask: str = ""  # of this process: 0022; empty: not known
