"""The rows of stacks.toml as values."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from mpigraft.core.model import Abi
from mpigraft.knowledge.reader import NEVER, load_rows, toml

ARM = "0x41"  # the implementer of all CPUs that no row names
LIBRARIES = ("libfabric", "ucx")


@dataclass(frozen=True, slots=True)
class OverrideName:
    """What a name in the path of an override says."""

    name: re.Pattern[str]
    holds: str = field(metadata=toml(words=(*(abi.value for abi in Abi), *LIBRARIES)))
    source: str
    sonames: re.Pattern[str] = re.compile(NEVER)


@dataclass(frozen=True, slots=True)
class CpuTarget:
    """A tree of a stack's version, and the CPUs that take it."""

    path: str
    vendor: str
    flags: tuple[str, ...]
    models: tuple[str, ...] = ()


def cpu_targets(machine: str, cpuinfo: str) -> tuple[str, ...]:
    """Give the targets that a CPU can take, the best first, by the text of /proc/cpuinfo."""
    lines = (line.partition(":") for line in cpuinfo.splitlines())
    facts = {name.strip(): value.strip() for name, _, value in lines}
    rows = load_rows(CpuTarget, "target", "stacks.toml")
    rows = tuple(row for row in rows if row.path.startswith(f"{machine}/"))
    vendor = facts.get("vendor_id") or facts.get("CPU implementer", "")
    if machine == "aarch64" and vendor not in {row.vendor for row in rows}:
        vendor = ARM
    flags = {*facts.get("flags", "").split(), *facts.get("Features", "").split()}
    fits = [
        row.path
        for row in rows
        if row.vendor == vendor
        and flags.issuperset(row.flags)
        and (not row.models or facts.get("model") in row.models)
    ]
    return (*reversed(fits), f"{machine}/generic")


def is_network_library(soname: str, holds: str) -> bool:
    """Return whether a library of this name is the libfabric or UCX that `holds` names."""
    rows = load_rows(OverrideName, "override", "stacks.toml")
    return any(row.holds == holds and row.sonames.fullmatch(soname) for row in rows)


def network_library_of(soname: str) -> str:
    """Give what a library of this name belongs to: libfabric or ucx; empty for any other."""
    return next((name for name in LIBRARIES if is_network_library(soname, name)), "")


def library_of_override(path: str) -> str:
    """Read the library from the end of an override's path: an ABI, libfabric or ucx; empty where
    it names none. EESSI's is OpenMPI/system."""
    for part in PurePosixPath(path).parts[:-3:-1]:
        for row in load_rows(OverrideName, "override", "stacks.toml"):
            if re.fullmatch(row.name.pattern, part, re.IGNORECASE):
                return row.holds
    return ""
