"""Limits of this node before a launch: what it has, what an MPI needs, and where that is known
from. Nothing is started for it, and a kept start of `run` does not come here."""

from __future__ import annotations

import contextlib
import math
import os
import resource
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core.cpuset import cpuset_cpus
from mpigraft.core.model import Allocation, EnvRow, Finding, Layout, Machine, MpiInstall
from mpigraft.core.numbers import counted
from mpigraft.knowledge import LimitNeed, devices_by_fabric, limit_needs

HERE = Path("/")
IPC_LOCK = 14  # the bit of CAP_IPC_LOCK (capabilities(7)), with which locked memory has no limit
MIB, KIB = 1 << 20, 1 << 10


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of this node beside what the ranks of one MPI need of it."""

    need: LimitNeed
    host: str
    mpi: str
    ranks: int  # of this node
    here: float
    needed: float
    setting: str = ""  # that asks for it, where one does

    @property
    def short(self) -> bool:
        return self.here > self.needed if self.need.most else self.here < self.needed

    def finding(self) -> Finding:
        need = self.need
        return Finding.of(
            "limit-short",
            what=need.what,
            host=self.host,
            here=_number(self.here, need.unit),
            ranks=counted(self.ranks, "rank"),
            verb="needs" if self.ranks == 1 else "need",
            mpi=self.mpi,
            most="at most " if need.most else "",
            needed=_number(self.needed, need.unit),
            reason=need.why.replace("{setting}", self.setting),
            advice=need.fix,
            evidence=need.sources,
        )


def _number(value: float, unit: str) -> str:
    number = "unlimited" if math.isinf(value) else f"{round(value, 1):.10g}"
    return f"{number} {unit}".rstrip()


def launch_limits(
    mpi: MpiInstall,
    layout: Layout,
    machine: Machine,
    rows: Iterable[EnvRow] = (),
    root: Path = HERE,
) -> tuple[Limit, ...]:
    """Return the limits that matter for an MPI on a layout, of those that are known here."""
    ranks, cpus = layout.ranks_per_node, len(cpuset_cpus(str(root).rstrip("/")))
    fabrics = list(devices_by_fabric(machine.fabrics))
    settings = [f"{row.name}={row.value}" for row in rows if row.value is not None]
    copies = any(one.usable for one in machine.single_copy if one.name != "cma")
    limits = []
    for need in limit_needs():
        idle = (need.limit in ("shm", "ptrace") and ranks < 2) or (
            need.limit == "ptrace" and copies
        )
        if idle or not need.concerns(mpi, fabrics, settings):
            continue
        needed = need.of(ranks)
        if need.limit == "cpus":
            needed = min(needed * layout.threads, cpus or math.inf)
        here = READERS[need.limit](root)
        if here is not None:
            asks = need.setting.fullmatch if need.setting else None
            setting = next(filter(asks, settings), "") if asks else ""
            limits.append(Limit(need, machine.hostname, mpi.id, ranks, here, needed, setting))
    return tuple(limits)


def short_limits(limits: Iterable[Limit], nodes: Allocation | None = None) -> tuple[Finding, ...]:
    """Report each limit that is short, for the MPI that needs most of it. Nothing where this host
    is none of `nodes`: their limits are not known here."""
    own = os.uname().nodename
    if nodes is not None and not nodes.here and own not in nodes.hosts:
        return ()
    worst: dict[str, Limit] = {}
    for limit in limits:
        if limit.short and limit.needed > getattr(worst.get(limit.need.limit), "needed", -1):
            worst[limit.need.limit] = limit
    return tuple(limit.finding() for _, limit in sorted(worst.items()))


# ------------------------------------------------------------------ what this node has


def _soft(number: int, unit: int) -> float:
    soft, _ = resource.getrlimit(number)
    return math.inf if soft == resource.RLIM_INFINITY else soft / unit


def _locked(root: Path) -> float:
    for line in _text(root / "proc/self/status").splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff" and int(value.strip() or "0", 16) >> IPC_LOCK & 1:
            return math.inf
    return _soft(resource.RLIMIT_MEMLOCK, KIB)


def _shared(root: Path) -> float | None:
    try:
        room = os.statvfs(root / "dev/shm")
    except OSError:
        return None
    return room.f_bavail * room.f_frsize / MIB


def _huge_pages(root: Path) -> float | None:
    sizes = list((root / "sys/kernel/mm/hugepages").glob("hugepages-*"))
    names = ("free_hugepages", "nr_overcommit_hugepages")
    counts = [_text(size / name).strip() for size in sizes for name in names]
    return sum(int(count) for count in counts if count.isdecimal()) if counts else None


def _memory(root: Path) -> float | None:
    """In MiB, the least that the cgroup of this process or one above it allows."""
    texts = [_text(folder / "memory.max") for folder in _groups(root, "")]
    texts += [_text(folder / "memory.limit_in_bytes") for folder in _groups(root, "memory")]
    numbers = [int(text) / MIB for text in map(str.strip, texts) if text.isdecimal()]
    return min(numbers, default=None)


def _cpu_time(root: Path) -> float | None:
    pairs = [_text(folder / "cpu.max").split() for folder in _groups(root, "")]
    pairs += [
        [_text(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        for folder in _groups(root, "cpu")
    ]
    quotas = [int(p[0]) / int(p[1]) for p in pairs if len(p) == 2 and all(map(str.isdecimal, p))]
    return min(quotas, default=None)


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's cgroup and of those above it; controller "" is of the
    unified hierarchy."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, names, path = [*line.split(":", 2), "", ""][:3]
        if controller in names.split(","):
            folder = root / "sys/fs/cgroup" / controller
            yield folder
            for part in path.strip("/").split("/") if path.strip("/") else ():
                folder /= part
                yield folder


def _ptrace(root: Path) -> float | None:
    text = _text(root / "proc/sys/kernel/yama/ptrace_scope").strip()
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace")
    return ""


READERS: dict[str, Callable[[Path], float | None]] = {
    "memlock": _locked,
    "shm": _shared,
    "nofile": lambda _: _soft(resource.RLIMIT_NOFILE, 1),
    "stack": lambda _: _soft(resource.RLIMIT_STACK, KIB),
    "hugepages": _huge_pages,
    "memory": _memory,
    "cpus": _cpu_time,
    "ptrace": _ptrace,
}
