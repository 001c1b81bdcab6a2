"""Where GPUs are in a node, and how a rank is given one of them: gpus.toml."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Cpu, Gpu
from mpigraft.knowledge.reader import load_rows

MAX_CPUS = 4096  # of one node


class CpuRange(tuple[int, ...]):
    """CPUs that a file writes as `48-55`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> CpuRange:
        match = re.fullmatch(r"(\d{1,4})-(\d{1,4})", text, re.ASCII)
        first, last = (int(n) for n in match.groups()) if match else (1, 0)
        if not first <= last < MAX_CPUS:
            raise ValueError(f"{text!r} is not FIRST-LAST")
        return cls(range(first, last + 1))


@dataclass(frozen=True, slots=True)
class GpuNode:
    """A kind of node: which CPUs are nearest to each of its GPUs, by index."""

    id: str
    what: str
    gpu: re.Pattern[str]  # of whole names
    cpu: re.Pattern[str]
    nearest: tuple[CpuRange, ...]
    source: str

    def matches(self, cpu: Cpu, gpus: Sequence[Gpu]) -> bool:
        return (
            len(gpus) == len(self.nearest)
            and self.cpu.fullmatch(cpu.model) is not None
            and all(self.gpu.fullmatch(gpu.name) for gpu in gpus)
        )


@dataclass(frozen=True, slots=True)
class VendorVariables:
    """The variables by which a vendor's runtime is given its GPUs."""

    id: str
    variable: str
    source: str
    set: tuple[tuple[str, str], ...] = ()
    unset: tuple[str, ...] = ()


def gpu_nodes() -> tuple[GpuNode, ...]:
    """Return the kinds of node that the file has."""
    return load_rows(GpuNode, "node", "gpus.toml")


def gpu_variables(vendor: str) -> VendorVariables:
    """Find how GPUs of `vendor` are given to a rank. Raises UsageError where this is not known."""
    for row in load_rows(VendorVariables, "vendor", "gpus.toml"):
        if row.id == vendor:
            return row
    raise UsageError.of("gpu-variable-unknown", vendor=vendor)


def nearest_cpus(cpu: Cpu, gpus: Sequence[Gpu]) -> tuple[tuple[int, ...], ...]:
    """Find the CPUs of this node nearest to each GPU; empty where nothing says which.

    A row of knowledge counts where it says more than the kernel does, not where it contradicts
    it: a node of the same kind may be set up in another way.
    """
    own = {c for group in (*cpu.core_cpus, *cpu.numa) for c in group} or set(range(cpu.threads))
    row = next((node.nearest for node in gpu_nodes() if node.matches(cpu, gpus)), None)
    nearest = []
    for n, gpu in enumerate(gpus):
        kernel, known = set(gpu.cpus) & own, set(row[n]) & own if row else set()
        cpus = known if known and (not gpu.cpus or known & kernel) else kernel
        nearest.append(tuple(sorted(cpus if cpus != own else ())))
    return tuple(nearest)
