"""List what changed between two campaigns, from what the store keeps of each.

The store has the machine as `discover` saw it (by allocation), the provenance of each configuration
and the evidence of what its ranks mapped. A fact that one of the two campaigns does not have is
`not recorded`: nobody knows whether it changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mpigraft.analysis.overtime.matching import (
    MatchedConfiguration,
    labels_with_values,
    match_configurations,
)
from mpigraft.core.model import EvidenceRecord, LaunchRecord, Measured
from mpigraft.core.serialize import parse_object

Facts = dict[str, str]  # by name; what is not recorded is absent
MACHINE = "machine"
NAMED = ("driver", "firmware")  # of a network device: expected of every one that is not Ethernet's
PLAIN = ("loopback", "ethernet")
# Libraries that a change is looked for in, by the beginning of their soname, and their usual name.
LIBRARIES = {
    "libfabric.": "libfabric",
    "libucp.": "UCX",
    "libcxi.": "libcxi",
    "libpmix.": "PMIx",
    "libpmi2.": "PMI2",
    "libpmi.": "PMI",
}
ALWAYS = ("libfabric", "UCX", "libcxi", "PMIx", "environment", "launcher", "MPI")
CONTENTS = "contents of "
NOT_MAPPED = "not mapped"
MODULE, NOT_LOADED = "module ", "not loaded"  # begins the facts that a printed list of modules has
REAL = re.compile(r"\.so\.(\d+(?:\.\d+)*)$")


class ChangeStatus(StrEnum):
    CHANGED = "changed"
    SAME = "same"
    NOT_RECORDED = "not recorded"


@dataclass(frozen=True, slots=True)
class FactChange:
    """One fact of both campaigns. `old` and `new` are empty where it was not recorded."""

    scope: str  # machine, or the configuration
    name: str
    old: str
    new: str
    status: ChangeStatus

    @property
    def changed(self) -> bool:
        return self.status is ChangeStatus.CHANGED

    @property
    def recorded(self) -> bool:
        """Whether both campaigns have it."""
        return self.status is not ChangeStatus.NOT_RECORDED


def list_changes(
    old: Measured, new: Measured, chosen: Sequence[str] = ()
) -> tuple[FactChange, ...]:
    """Compare every fact of the machine, then of each configuration that both have."""
    rows = list(_compared(MACHINE, machine_facts(old), machine_facts(new)))
    for pair in match_configurations(labels_with_values(old), labels_with_values(new), chosen):
        facts = (configuration_facts(old, pair.old), configuration_facts(new, pair.new))
        rows += _compared(_scope(pair), *_with_all_modules(*facts))
    return tuple(rows)


def _with_all_modules(old: Facts, new: Facts) -> tuple[Facts, Facts]:
    """Where both sides have a list of modules, what is not in it was not loaded."""
    lists = [[name for name in side if name.startswith(MODULE)] for side in (old, new)]
    if not all(lists):
        return old, new
    absent = dict.fromkeys((*lists[0], *lists[1]), NOT_LOADED)
    return {**absent, **old}, {**absent, **new}


def what_changed(rows: Iterable[FactChange]) -> tuple[str, ...]:
    """Name each change once, the machine's first: `kernel 6.1 -> 6.12`. Contents of libraries are
    named where nothing else shows them."""
    changed = [row for row in rows if row.changed]
    plain = [row for row in changed if not row.name.startswith(CONTENTS)]
    texts = [f"{row.name} {row.old} -> {row.new}" for row in plain or changed]
    return tuple(dict.fromkeys(texts))


def _scope(pair: MatchedConfiguration) -> str:
    return pair.new_label


def _compared(scope: str, old: Facts, new: Facts) -> Iterator[FactChange]:
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name, ""), new.get(name, "")
        if not before or not after:
            status = ChangeStatus.NOT_RECORDED
        else:
            status = ChangeStatus.SAME if before == after else ChangeStatus.CHANGED
        yield FactChange(scope, name, before, after, status)


# ------------------------------------------------------------------ of the machine


def machine_facts(side: Measured) -> Facts:
    """Return what the machine documents and the launches' conditions have; several values are
    joined."""
    documents = [parse_object(allocation.machine) for allocation in side.allocations]
    facts: dict[str, set[str]] = {name: set() for name in ("operating system", "kernel", "CPU")}
    facts |= {"CPU governor": _governors(side.launches), "network driver": set()}
    facts |= {"network firmware": set(), "GPU driver": set()}
    for document in documents:
        for name, value in _of_document(document):
            facts.setdefault(name, set()).add(value)
    hosts = {host for a in side.allocations for host in (a.hosts or (a.host,)) if host}
    if not any(document.get("gpus") for document in documents):
        facts.pop("GPU driver")
    joined = {name: ", ".join(sorted(values)) for name, values in facts.items()}
    return {"nodes": ", ".join(sorted(hosts)), **joined}


def _of_document(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if system := document.get("os"):
        yield "operating system", str(system)
    if kernel := document.get("kernel"):
        yield "kernel", str(kernel)
    cpu = document.get("cpu") or {}
    if cpu.get("model"):
        cores = f", {cpu['cores']} cores" if cpu.get("cores") else ""
        yield "CPU", f"{cpu['model']}{cores}"
    if memory := document.get("memory_mib"):
        yield "memory", f"{round(memory / 1024)} GiB"
    for device in document.get("fabrics") or ():
        yield from _of_device(device)
    if ways := [row["name"] for row in document.get("single_copy") or () if row.get("usable")]:
        yield "single copy", ", ".join(sorted(ways))
    for gpu in document.get("gpus") or ():
        yield "GPU", str(gpu.get("name", ""))
        for name, value in gpu.get("details") or ():
            yield f"GPU {name}", str(value)
    for launcher in document.get("launchers") or ():
        yield f"{launcher['name']} of the machine", str(launcher.get("version") or "")
        if pmi := launcher.get("pmi_offered"):
            yield f"PMI of {launcher['name']}", ", ".join(pmi)
    if scheduler := document.get("scheduler"):
        yield "scheduler", f"{scheduler['name']} {scheduler.get('version', '')}".strip()


def _of_device(device: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield a network device that may carry MPI's bytes; drivers and firmware under one name
    each."""
    kind = device.get("kind", "")
    if kind == "loopback":
        return
    yield "network devices", f"{device.get('name')} ({kind}, {device.get('state', '')})"
    for name, value in device.get("details") or ():
        which = f"network {name}" if name in NAMED else f"{device.get('name')} {name}"
        yield which, f"{value}" if kind not in PLAIN else f"{value} ({kind})"


def _governors(launches: Iterable[LaunchRecord]) -> set[str]:
    conditions = [launch.conditions for launch in launches if launch.conditions]
    return {c.before.governor for c in conditions if c.before.governor}


# ------------------------------------------------------------------ of a configuration


def configuration_facts(side: Measured, key: str) -> Facts:
    """Return what the provenance of a configuration has, and the evidence of what its ranks
    mapped."""
    record = next((c for c in side.configurations if c.key == key), None)
    document = parse_object(record.provenance) if record else {}
    facts: dict[str, str] = {
        "MPI": str(document.get("mpi") or ""),
        "library version": str(document.get("library_version") or ""),
    }
    for name, column in (("libfabric", "libfabric"), ("UCX", "ucx")):
        library = document.get(column)
        if isinstance(library, dict) and library.get("version"):
            facts[name] = str(library["version"])
    facts |= {name: "" for name in ALWAYS if name not in facts}
    facts["launcher"] = " ".join(str(word) for word in document.get("launcher") or () if word)
    facts["transport row"] = "/".join(map(str, document.get("transport") or ()))
    if "environment" in document:
        rows = [f"{row['name']}={row['value']}" for row in document["environment"]]
        facts["environment"] = " ".join(sorted(rows)) or "nothing set"
    contents = {str(soname): str(digest) for soname, digest in document.get("libraries") or ()}
    mapped = _mapped([e for e in side.evidence if e.configuration == key], contents)
    for name, version in mapped.items():
        facts[name] = facts.get(name) or version
    facts |= {f"{CONTENTS}{soname}": digest[:12] for soname, digest in contents.items()}
    if guest := document.get("guest"):
        facts["guest"] = f"{guest.get('name', '')} {str(guest.get('digest', ''))[:12]}".strip()
    if programs := document.get("programs"):
        facts["benchmark program"] = str(programs)[:12]
    facts |= {str(name): str(value) for name, value in (document.get("printed") or {}).items()}
    facts["mpigraft"] = side.campaign.tool
    return facts


def _mapped(evidence: Iterable[EvidenceRecord], contents: Mapping[str, str]) -> Facts:
    """Versions of libraries: by the names of the files that ranks mapped, else by contents. Where
    it is known what ranks mapped, a library that is not among it was not mapped."""
    files = {
        library.path.rpartition("/")[2]
        for record in evidence
        for rank in record.evidence.ranks
        for library in rank.libraries
    }
    facts = {}
    for head, name in LIBRARIES.items():
        own = [file for file in (*files, *contents) if file.startswith(head)]
        versions = {f"so {match[1]}" for file in own if (match := REAL.search(file))}
        versions = {version for version in versions if "." in version}
        digests = {contents[file][:12] for file in own if file in contents}
        if versions or digests:
            facts[name] = ", ".join(sorted(versions or digests))
        elif files and not own:
            facts[name] = NOT_MAPPED
    return facts
