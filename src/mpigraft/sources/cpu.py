"""CPUs, NUMA domains and L3 groups from sysfs; memory; the operating system's name."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from mpigraft.model import Cpu
from mpigraft.sources import look
from mpigraft.sources.candidate import Here

# Arm names no model in /proc/cpuinfo. Source: Arm's MIDR_EL1 tables, implementer and part.
ARM_PARTS = {
    ("0x41", "0xd0c"): "Neoverse N1",
    ("0x41", "0xd40"): "Neoverse V1",
    ("0x41", "0xd49"): "Neoverse N2",
    ("0x41", "0xd4f"): "Neoverse V2",
    ("0x46", "0x001"): "A64FX",
    ("0x43", "0x0af"): "ThunderX2",
}


def cpu(here: Here) -> Cpu:
    """The CPUs that this process may use; of a recorded tree, those that were online."""
    folder = here.at("/sys/devices/system/cpu")
    allowed = set(look.cpu_list(look.text(folder / "online")))
    if here.root == Path("/"):
        allowed = os.sched_getaffinity(0)
    topology = {n: folder / f"cpu{n}/topology" for n in sorted(allowed)}
    packages = {n: look.text(t / "physical_package_id") for n, t in topology.items()}
    cores = {n: (packages[n], look.text(t / "core_id") or f"cpu{n}") for n, t in topology.items()}
    return Cpu(
        model=_model(look.text(here.at("/proc/cpuinfo"))),
        architecture=_architecture(here),
        cores=len(set(cores.values())),
        threads=len(allowed),
        sockets=len(set(packages.values())),
        numa=_numa(here, allowed),
        l3=_l3(folder, allowed),
        core_cpus=_alike(cores),
        socket_cpus=_alike(packages),
    )


def _alike(names: Mapping[int, object]) -> tuple[tuple[int, ...], ...]:
    """CPUs of each name, in order of their first one."""
    groups: dict[object, list[int]] = {}
    for cpu in sorted(names):
        groups.setdefault(names[cpu], []).append(cpu)
    return tuple(map(tuple, groups.values()))


def _architecture(here: Here) -> str:
    """As `uname -m`; a recorded tree keeps it in arch, as /proc has no such file."""
    return look.text(here.at("/arch")) if here.root != Path("/") else platform.machine()


def _model(cpuinfo: str) -> str:
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    if model := fields.get("model name"):
        return re.sub(r"\s+", " ", model)
    who, part = fields.get("CPU implementer", ""), fields.get("CPU part", "")
    if who:
        return ARM_PARTS.get((who, part), f"Arm implementer {who} part {part}")
    return fields.get("cpu", "")


def _numa(here: Here, allowed: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    nodes = look.entries(here.at("/sys/devices/system/node"))
    lists = [look.text(n / "cpulist") for n in nodes if re.fullmatch(r"node\d+", n.name)]
    return _groups(lists, allowed)


def _l3(folder: Path, allowed: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    lists: list[str] = []
    for n in sorted(allowed):
        for index in look.entries(folder / f"cpu{n}/cache"):
            if look.text(index / "level") == "3":
                lists.append(look.text(index / "shared_cpu_list"))
    return _groups(lists, allowed)


def _groups(lists: Iterable[str], allowed: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """Distinct groups of allowed CPUs, in order of their first one; memory-only nodes drop out."""
    mine = set(allowed)
    groups = {tuple(n for n in look.cpu_list(words) if n in mine) for words in lists}
    return tuple(sorted(g for g in groups if g))


def memory_mib(here: Here) -> int:
    found = re.search(r"MemTotal:\s+(\d+) kB", look.text(here.at("/proc/meminfo")))
    return int(found[1]) // 1024 if found else 0


def os_name(here: Here) -> str:
    """PRETTY_NAME of os-release (freedesktop.org, os-release(5))."""
    for name in ("/etc/os-release", "/usr/lib/os-release"):
        if found := re.search(r'^PRETTY_NAME="?([^"\n]*)', look.text(here.at(name)), re.MULTILINE):
            return found[1]
    return ""
