"""Where GPUs sit, and how a rank is shown one of them: gpus.toml."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from mpigraft.errors import UsageError
from mpigraft.knowledge.table import Document, Table, document
from mpigraft.model import Cpu, Gpu

FILE = "gpus.toml"
MOST = 4096  # CPUs of one node


@dataclass(frozen=True, slots=True)
class Node:
    """A kind of node: which CPUs are nearest to each of its GPUs, by index."""

    id: str
    gpu: str  # patterns over whole names
    cpu: str
    nearest: tuple[tuple[int, ...], ...]
    source: str

    def is_of(self, cpu: Cpu, gpus: Sequence[Gpu]) -> bool:
        return (
            len(gpus) == len(self.nearest)
            and re.fullmatch(self.cpu, cpu.model) is not None
            and all(re.fullmatch(self.gpu, gpu.name) for gpu in gpus)
        )


@dataclass(frozen=True, slots=True)
class Showing:
    """How the GPUs of a vendor are shown to a rank."""

    vendor: str
    variable: str
    set: tuple[tuple[str, str], ...]
    unset: tuple[str, ...]


@cache
def known() -> tuple[tuple[Node, ...], tuple[Showing, ...]]:
    return read(document(FILE))


def read(data: Document, file: str = FILE) -> tuple[tuple[Node, ...], tuple[Showing, ...]]:
    """Both tables of the file. Raises UsageError for a wrong row, and for two rows of one id."""
    top = Table(file, dict(data))
    nodes = tuple(_node(table, file) for table in top.tables("node"))
    showings = tuple(_showing(table, file) for table in top.tables("vendor"))
    top.done()
    for ids in ([node.id for node in nodes], [one.vendor for one in showings]):
        if len(set(ids)) != len(ids):
            raise UsageError(f"{file}: two rows have one id")
    return nodes, showings


def _node(table: Table, file: str) -> Node:
    name = table.text("id")
    table.where = f"{file}, row {name}"
    table.text("what")
    groups = tuple(_cpus(table, words) for words in table.texts("nearest"))
    node = Node(name, table.pattern("gpu"), table.pattern("cpu"), groups, table.text("source"))
    table.done()
    return node


def _cpus(table: Table, words: str) -> tuple[int, ...]:
    found = re.fullmatch(r"(\d{1,4})-(\d{1,4})", words, re.ASCII)
    first, last = (int(n) for n in found.groups()) if found else (1, 0)
    if not first <= last < MOST:
        raise table.wrong("nearest", f"{words!r} is not FIRST-LAST")
    return tuple(range(first, last + 1))


def _showing(table: Table, file: str) -> Showing:
    name = table.text("id")
    table.where = f"{file}, row {name}"
    one = Showing(name, table.text("variable"), table.words("set"), table.texts("unset", []))
    table.text("source")
    table.done()
    return one


def showing(vendor: str) -> Showing:
    """How GPUs of `vendor` are shown. Raises UsageError for one of which that is not known."""
    for one in known()[1]:
        if one.vendor == vendor:
            return one
    raise UsageError(
        f"how a rank is shown one GPU of {vendor} is not known",
        mend="leave the choice of GPUs to the launcher or the program",
    )


def nearest(cpu: Cpu, gpus: Sequence[Gpu]) -> tuple[tuple[int, ...], ...]:
    """Of the CPUs here those nearest to each GPU; empty where nothing says which.

    A row of knowledge counts where it says more than the kernel does, not where it contradicts
    it: a node of the same kind may be set up in another way.
    """
    mine = {c for group in (*cpu.core_cpus, *cpu.numa) for c in group} or set(range(cpu.threads))
    row = next((node.nearest for node in known()[0] if node.is_of(cpu, gpus)), None)
    found = []
    for n, gpu in enumerate(gpus):
        seen, told = set(gpu.cpus) & mine, set(row[n]) & mine if row else set()
        near = told if told and (not gpu.cpus or told & seen) else seen
        found.append(tuple(sorted(near if near != mine else ())))
    return tuple(found)
