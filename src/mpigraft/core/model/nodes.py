"""Nodes and places on them: allocations, layouts, and what a launcher gets of both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core.model.machine import MpiInstall
from mpigraft.core.model.vocabulary import Peer


@dataclass(frozen=True, slots=True)
class Allocation:
    """Nodes that launches may use, in the order in which ranks fill them."""

    hosts: tuple[str, ...]  # as launchers are to call them; one at least
    source: str  # as text: "Slurm job 42", "--hosts", "hosts.txt", "this host"
    scheduler: str = ""  # slurm, pbs, flux; empty: nobody handed them out
    job: str = ""  # its id there
    cpus: tuple[int, ...] = ()  # granted on each host; empty: not known
    agent: str = ""  # a program used like ssh; empty: the launcher's own way
    here: bool = False  # the only host is this one, so launchers need no hosts
    granted: tuple[str, ...] = ()  # hosts of the job, where a user named others of them as `hosts`
    component: str = ""  # of a heterogeneous job, where these are not the nodes of all


def granted_cpus(allocation: Allocation, nodes: int) -> tuple[int, ...]:
    """Count the CPUs of a job on each of its first nodes; one huge number where this is not known,
    so that it bounds nothing."""
    return allocation.cpus[:nodes] or (1 << 30,)


COUNTS = re.compile(
    r"(\d{1,6})x(\d{1,6})(?:x(\d{1,6}))?(?!\d)", re.ASCII
)  # what a layout's key begins with
PART = re.compile(r"(\d{1,9})(?:nodes|ranks|per-node)\b", re.ASCII)  # of one that is not whole
LayoutOrder = tuple[bool, int, int, int, str]


def layout_order(key: str) -> LayoutOrder:
    """Sort keys of layouts as numbers, smallest first: 2x128, then 16x128; nodes before ranks per
    node before threads. What is no layout, `unknown` or an id, follows by its letters, and a part
    of a layout, `4ranks`, by its number."""
    match = COUNTS.match(key)
    if match is None:
        part = PART.match(key)
        return (True, int(part[1]) if part else 0, 0, 0, key)
    nodes, ranks, threads = (int(number or 1) for number in match.groups())
    return (False, nodes, ranks, threads, key)


@dataclass(frozen=True, slots=True)
class Layout:
    """Nodes, ranks, threads, mapping, binding and GPUs. `key` names it in results."""

    nodes: int = 1
    ranks_per_node: int = 2
    threads: int = 1
    bind: str = "core"  # to what a rank is bound: core, l3cache, numa, socket, none
    map_by: str = "core"  # over what the ranks of a node are dealt: those, and node
    gpus: bool = False  # each rank sees the GPU nearest to its cores, and no other
    explicit: bool = False  # launchers get the CPUs, though they have words for these cores

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node

    @property
    def peers(self) -> frozenset[Peer]:
        """The classes of peers that a rank has in it."""
        on_node = {Peer.ON_NODE} if self.ranks_per_node > 1 else set()
        return frozenset(on_node | ({Peer.OFF_NODE} if self.nodes > 1 else set()))

    @property
    def plain(self) -> bool:
        """Whether it is left to the launchers, which all have words for it: cores one after the
        other and no more, or nothing bound. The nodes' CPUs may then differ."""
        usual = self.map_by == "core" and self.bind in ("core", "none")
        return usual and not (self.gpus or self.explicit)

    @property
    def key(self) -> str:
        """`2x4`: nodes x ranks per node; then threads, mapping, binding and GPUs where they are
        not the default: `2x8x7:l3cache-numa+gpus`. `2x4:core` is the default said aloud: the same
        cores by another command line, so another layout."""
        tail = "" if self.threads == 1 else f"x{self.threads}"
        mapped = f":{self.map_by}" if self.map_by != "core" or self.explicit else ""
        bound = "" if self.bind == "core" else f"-{self.bind}"
        gpus = "+gpus" if self.gpus else ""
        return f"{self.nodes}x{self.ranks_per_node}{tail}{mapped}{bound}{gpus}"


@dataclass(frozen=True, slots=True)
class Placement:
    """What each rank of a node is to have, by its number on the node."""

    masks: tuple[tuple[int, ...], ...] = ()  # CPUs, ascending; empty: nothing is bound
    gpus: tuple[int, ...] = ()  # index of its GPU, as in Machine.gpus; empty: none is chosen
    vendor: str = ""  # of the GPUs


NOWHERE = Placement()  # no rank has a required place


@dataclass(frozen=True, slots=True)
class LaunchedBy:
    """A launcher that is not the MPI's own, and the PMI that it is to offer the ranks."""

    kind: str  # srun, flux, pals, aprun: a key of launchers.LAUNCHERS
    path: Path
    version: str
    pmi: str = ""  # pmix, pmi2, cray_shasta; empty: the launcher's default


@dataclass(frozen=True, slots=True)
class Group:
    """One program of a launch. Most launches have one; several are MPMD, ranks in this order on
    every node."""

    ranks_per_node: int
    words: tuple[str, ...]  # all inside of the launcher: engine, environment, program


@dataclass(frozen=True, slots=True)
class Order:
    """The input of a launcher: a pure function makes its command line from it."""

    launcher: Path
    mpi: MpiInstall  # of the ranks
    layout: Layout
    allocation: Allocation
    groups: tuple[Group, ...]  # their ranks add up to layout.ranks_per_node
    masks: tuple[tuple[int, ...], ...] = ()  # CPUs of each rank of a node; empty: nothing is bound
    crowded: bool = False  # more ranks than cores on a node: let them on, bind nothing
    root: bool = False
    keeps: bool = True  # what is between launcher and ranks hands on open files
    pmi: str = ""  # as in LaunchedBy
    version: str = ""  # of the launcher; empty: not known
    numbers: tuple[int, ...] = ()  # CPU by its number in the hardware's order; empty: the same
    uneven: bool = False  # nodes may have other CPUs each: jobs share them, or nobody knows
    slingshot: bool = False  # bytes go over it, and a step of one node has to ask for a VNI
    folder: Path = Path()  # where files may be written that launcher and ranks read
    reads: bool = True  # they see that folder; a guest's own launcher does not


@dataclass(frozen=True, slots=True)
class Command:
    """A launcher's command line, and the files (path, text) that it reads."""

    words: tuple[str, ...]
    files: tuple[tuple[Path, str], ...] = ()
