"""The words that every stage uses: families, ABIs, scopes, levels, peers, kinds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from mpigraft.core.messages import message_of

if TYPE_CHECKING:
    from mpigraft.core.errors import MpigraftError


class Family(StrEnum):
    """A line of MPI implementations that share launch, environment and signs."""

    OPENMPI = "openmpi"
    MPICH = "mpich"
    INTEL = "intel"
    CRAY_MPICH = "cray-mpich"
    MVAPICH = "mvapich"

    def abi(self, soname: str) -> Abi:
        """Give the binary interface of this family's library of that name."""
        if soname.startswith("libmpi_abi"):
            return Abi.MPI_ABI
        return Abi.OMPI if self is Family.OPENMPI else Abi.MPICH

    def launcher_kind(self, version: str) -> str:
        """Name the launcher that this family brings: prrte, orte or hydra."""
        if self is not Family.OPENMPI:
            return "hydra"
        major = version.partition(".")[0]
        return "prrte" if major.isdecimal() and int(major) >= 5 else "orte"


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


class ProofStatus(StrEnum):
    """The proof of one peer class and kind. A missing record is never a pass."""

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
    message: str = field(metadata={"was": "seen"})
    why: str = ""
    fix: str = field(default="", metadata={"was": "mend"})
    evidence: tuple[str, ...] = ()  # lines that show it: files, symbols, folders that were tried

    @classmethod
    def of(
        cls,
        code: str,
        /,
        *,
        level: Level | None = None,
        evidence: tuple[str, ...] = (),
        **values: object,
    ) -> Self:
        """Make the finding of a row, of its level unless one is given.

        Raises KeyError for an unknown code or a missing value."""
        row = message_of(code).fill(values)
        return cls(level or Level(row.level), code, row.message, row.why, row.fix, evidence)

    @classmethod
    def of_error(cls, error: MpigraftError, level: Level) -> Self:
        """Make a finding of an error that ends no command here."""
        return cls(level, error.code, error.message, error.why, error.fix)

    def for_stack(self) -> Self:
        """Give the finding the code and advice that its row has for a stack, where it has them."""
        code = message_of(self.code).stack
        if not code:
            return self
        row = message_of(code)
        return replace(self, code=code, why=row.why, fix=row.fix)
