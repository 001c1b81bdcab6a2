"""Read CPUs, NUMA domains and L3 groups from sysfs; memory; the operating system's name."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from mpigraft.binary import parse_flags
from mpigraft.core.cpuset import cpuset_cpus, is_confined
from mpigraft.core.model import Cpu
from mpigraft.discovery.sources import files
from mpigraft.discovery.sources.candidate import Host

# Arm names no model in /proc/cpuinfo. Source: Arm's MIDR_EL1 tables, implementer and part.
ARM_PARTS = {
    ("0x41", "0xd0c"): "Neoverse N1",
    ("0x41", "0xd40"): "Neoverse V1",
    ("0x41", "0xd49"): "Neoverse N2",
    ("0x41", "0xd4f"): "Neoverse V2",
    ("0x46", "0x001"): "A64FX",
    ("0x43", "0x0af"): "ThunderX2",
}


def cpu(host: Host) -> Cpu:
    """Describe the CPUs that this process may use; of a recorded tree, those that were online."""
    folder = host.path("/sys/devices/system/cpu")
    allowed = set(files.cpu_list(files.text(folder / "online")))
    cpuset: tuple[int, ...] = ()
    if host.root == Path("/"):
        allowed = os.sched_getaffinity(0)
        cpuset = cpuset_cpus() if is_confined() else ()
    topology = {n: folder / f"cpu{n}/topology" for n in sorted(allowed)}
    packages = {n: files.text(t / "physical_package_id") for n, t in topology.items()}
    cores = {n: (packages[n], files.text(t / "core_id") or f"cpu{n}") for n, t in topology.items()}
    cpuinfo = files.text(host.path("/proc/cpuinfo"))
    return Cpu(
        model=_model(cpuinfo),
        architecture=_architecture(host),
        cores=len(set(cores.values())),
        threads=len(allowed),
        sockets=len(set(packages.values())),
        numa=_numa(host, allowed),
        l3=_l3(folder, allowed),
        core_cpus=_grouped_by_name(cores),
        socket_cpus=_grouped_by_name(packages),
        flags=tuple(sorted(parse_flags(cpuinfo))) if cpuinfo else None,
        cpuset=cpuset,
    )


def _grouped_by_name(names: Mapping[int, object]) -> tuple[tuple[int, ...], ...]:
    """Group CPUs by name, in order of the first CPU."""
    groups: dict[object, list[int]] = {}
    for cpu in sorted(names):
        groups.setdefault(names[cpu], []).append(cpu)
    return tuple(map(tuple, groups.values()))


def _architecture(host: Host) -> str:
    """Give the architecture as `uname -m`; a recorded tree has it in the file arch."""
    return files.text(host.path("/arch")) if host.root != Path("/") else platform.machine()


def _model(cpuinfo: str) -> str:
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    if model := fields.get("model name"):
        return re.sub(r"\s+", " ", model)
    implementer, part = fields.get("CPU implementer", ""), fields.get("CPU part", "")
    if implementer:
        return ARM_PARTS.get((implementer, part), f"Arm implementer {implementer} part {part}")
    return fields.get("cpu", "")


def _numa(host: Host, allowed: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    nodes = files.entries(host.path("/sys/devices/system/node"))
    lists = [files.text(n / "cpulist") for n in nodes if re.fullmatch(r"node\d+", n.name)]
    return _groups(lists, allowed)


def _l3(folder: Path, allowed: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    lists: list[str] = []
    for n in sorted(allowed):
        for index in files.entries(folder / f"cpu{n}/cache"):
            if files.text(index / "level") == "3":
                lists.append(files.text(index / "shared_cpu_list"))
    return _groups(lists, allowed)


def _groups(lists: Iterable[str], allowed: Iterable[int]) -> tuple[tuple[int, ...], ...]:
    """Give distinct groups of allowed CPUs, by their first one; memory-only nodes drop out."""
    usable = set(allowed)
    groups = {tuple(n for n in files.cpu_list(words) if n in usable) for words in lists}
    return tuple(sorted(g for g in groups if g))


def memory_mib(host: Host) -> int:
    match = re.search(r"MemTotal:\s+(\d+) kB", files.text(host.path("/proc/meminfo")))
    return int(match[1]) // 1024 if match else 0


def memory_read_mib_s(host: Host) -> int | None:
    """Give the rate at which CPUs read their own memory, of the fastest NUMA domain: the firmware's
    HMAT table, which few machines have (Linux, admin-guide/mm/numaperf). None for others."""
    rates = []
    for node in files.entries(host.path("/sys/devices/system/node")):
        if re.fullmatch(r"node\d+", node.name) and files.text(node / "cpulist"):
            # access1 is what CPUs reach, of kernels since 5.12; access0 is the best of anything
            ways = (files.number(node / f"access{n}/initiators/read_bandwidth") for n in (1, 0))
            rates.append(next((rate for rate in ways if rate), 0))
    return max(rates, default=0) or None


def os_name(host: Host) -> str:
    """Give PRETTY_NAME of os-release (freedesktop.org, os-release(5))."""
    for name in ("/etc/os-release", "/usr/lib/os-release"):
        if match := re.search(
            r'^PRETTY_NAME="?([^"\n]*)', files.text(host.path(name)), re.MULTILINE
        ):
            return match[1]
    return ""
