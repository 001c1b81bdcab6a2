"""What was measured with what: machines and software as two small tables, as published posts
print them, and as words for a caption."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from mpigraft.core import numbers
from mpigraft.core.env import redact
from mpigraft.core.hostlist import fold_hosts
from mpigraft.core.model import GuestKind, Origin, Replace
from mpigraft.core.serialize import parse_object
from mpigraft.core.text import join_some
from mpigraft.report.contents import ReportData
from mpigraft.report.table import Column, Table


class GuestRole(StrEnum):
    """What of a guest a configuration measures, in the order of a title."""

    NATIVE = "native"
    OWN = "own"
    OWN_ON_HOST_NETWORK = "own on host network"
    GRAFTED = "grafted"
    INJECTED = "injected"
    GUEST = "guest"  # not known


ROLES: dict[str, tuple[GuestRole, str]] = {
    Replace.MPI: (GuestRole.GRAFTED, "this machine's MPI, in {name}"),
    Replace.LIBFABRIC: (
        GuestRole.OWN_ON_HOST_NETWORK,
        "the MPI of {name}, this machine's libfabric or UCX",
    ),
    Replace.NOTHING: (GuestRole.OWN, "the MPI of {name}"),
}
IN_STACK: dict[str, tuple[GuestRole, str]] = {
    Replace.MPI: (GuestRole.INJECTED, "this machine's MPI, in {name}"),
    Replace.LIBFABRIC: (
        GuestRole.OWN_ON_HOST_NETWORK,
        "the MPI of {name}, over an injected libfabric or UCX",
    ),
}
NAMED = 6  # nodes or runs of nodes, and versions, that are named


def networks(machine: dict[str, Any]) -> Iterator[str]:
    """Give the interfaces that are up, less the loopback; the same kind at the same speed once."""
    listed = machine.get("fabrics")
    named: dict[str, int] = {}
    for device in listed if isinstance(listed, list) else ():
        if not isinstance(device, dict) or device.get("kind") == "loopback":
            continue
        if device.get("state") == "up":
            details = device.get("details")
            pairs = [p for p in details or () if isinstance(p, list) and len(p) == 2]
            speed = next((f" {value}" for key, value in pairs if key == "speed"), "")
            name = f"{device.get('kind')}{speed}"
            named[name] = named.get(name, 0) + 1
    return (name if count == 1 else f"{count} x {name}" for name, count in named.items())


def machine_table(data: ReportData) -> Table | None:
    """Tabulate hosts, CPU, network and system of each kind of node; None where none is known."""
    alike: dict[tuple[str, ...], dict[str, None]] = {}
    for allocation in data.allocations:
        content = parse_object(allocation.machine)
        if not content:
            continue
        cpu = content.get("cpu") if isinstance(content.get("cpu"), dict) else {}
        assert isinstance(cpu, dict)
        facts = (
            str(cpu.get("model") or "-"),
            str(cpu.get("cores") or "-"),
            ", ".join(networks(content)) or "-",
            ", ".join(str(content[key]) for key in ("os", "kernel") if content.get(key)) or "-",
        )
        hosts = alike.setdefault(tuple(map(redact, facts)), {})
        hosts |= dict.fromkeys(allocation.hosts or (allocation.host,))
    rows = tuple((fold_hosts(list(hosts), NAMED), *facts) for facts, hosts in alike.items())
    heads = ("hosts", "CPU", "cores", "network", "system")
    return Table("Machine", tuple(map(Column, heads)), rows) if rows else None


def software_table(data: ReportData) -> Table | None:
    """Tabulate the MPI of each configuration, how it was found (its modules), and the libraries
    and the launcher below it; None where nothing was recorded."""
    rows = []
    for record in data.configurations:
        content = parse_object(record.provenance)
        if not content.get("mpi"):
            continue
        ways, launcher = _words(content.get("found")), _words(content.get("launcher"))
        rows.append(
            tuple(
                redact(str(part))
                for part in (
                    record.id,
                    content.get("library_version") or content["mpi"],
                    join_some(ways, 2, "; ") if ways else "-",
                    ", ".join(_libraries(content)) or "-",
                    " ".join(launcher) or "-",
                )
            )
        )
    heads = ("configuration", "MPI", "found as", "libraries", "launcher")
    return Table("Software", tuple(map(Column, heads)), tuple(rows)) if rows else None


def guest_roles(data: ReportData) -> dict[str, tuple[GuestRole, str]]:
    """Give {configuration: what of a guest it measures, and what that means}; empty where no guest
    was measured."""
    roles = {}
    for record in data.configurations:
        guest = parse_object(record.provenance).get("guest")
        role, meaning = GuestRole.NATIVE, "this machine's MPI, outside of any guest"
        if isinstance(guest, dict):
            known = ROLES | (IN_STACK if guest.get("kind") == GuestKind.STACK else {})
            role, meaning = known.get(str(guest.get("replace")), (GuestRole.GUEST, "{name}"))
            meaning = redact(meaning.format(name=guest.get("name")))
        roles[record.id] = role, meaning
    return roles if {role for role, _ in roles.values()} - {GuestRole.NATIVE} else {}


def guest_lines(data: ReportData) -> dict[str, str]:
    """Give {configuration: `own (the MPI of app.sif)`}; empty where no guest was measured."""
    return {name: f"{role} ({meaning})" for name, (role, meaning) in guest_roles(data).items()}


def role_lines(data: ReportData) -> Iterator[str]:
    """Give a line for what of a guest several configurations measure: the first, and how many."""
    alike: dict[str, list[str]] = {}
    for name, role in guest_lines(data).items():
        alike.setdefault(role, []).append(name)
    return (f"{join_some(names, 1, ', ')}: {role}" for role, names in alike.items())


def guest_name(data: ReportData) -> tuple[str, str]:
    """Give (stack or container, its name); an empty name where no guest was measured."""
    for record in data.configurations:
        guest = parse_object(record.provenance).get("guest")
        if isinstance(guest, dict):
            kind = "stack" if guest.get("kind") == GuestKind.STACK else "container"
            return kind, redact(str(guest.get("name")))
    return "container", ""


def guest_words(data: ReportData) -> dict[str, GuestRole]:
    """Give {configuration: its role}; empty where no guest was measured."""
    return {name: role for name, (role, _) in guest_roles(data).items()}


def versions(data: ReportData) -> str:
    """`mpich@5.0.2 with libfabric 2.1.0, openmpi@5.0.11`; empty where nothing was recorded."""
    named: dict[str, None] = {}
    for record in data.configurations:
        content = parse_object(record.provenance)
        if not content.get("mpi"):
            continue
        below = list(_libraries(content))
        text = str(content["mpi"]) + (f" with {' and '.join(below)}" if below else "")
        named[redact(text)] = None
    return join_some(list(named), NAMED, ", ")


def node_type(data: ReportData) -> Iterator[str]:
    """`2 nodes with AMD EPYC 7763`, `network cxi 200G`, as far as they were recorded."""
    if not data.allocations:
        return
    nodes = {node for a in data.allocations for node in a.hosts or (a.host,) if node}
    machine = parse_object(data.allocations[0].machine)
    cpu = machine.get("cpu")
    model = str(cpu.get("model") or "") if isinstance(cpu, dict) else ""
    yield numbers.counted(len(nodes), "node") + (f" with {redact(model)}" if model else "")
    if names := ", ".join(networks(machine)):
        yield f"network {redact(names)}"
    if system := machine.get("os"):
        yield redact(str(system))


def _words(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _libraries(content: dict[str, Any]) -> Iterator[str]:
    """`libfabric 2.1.0` and `UCX 1.18.0`, as far as their versions were recorded."""
    for name, key in (("libfabric", "libfabric"), ("UCX", "ucx")):
        library = content.get(key)
        if isinstance(library, dict) and library.get("version"):
            yield f"{name} {library['version']}"


def caption(data: ReportData) -> str:
    """`Measured on 2 nodes with AMD EPYC 7763, network cxi 200G; mpich@5.0.2 with libfabric
    2.1.0.`; empty where nothing is known."""
    if data.comparison.origin is Origin.IMPORT:
        plan = parse_object(data.campaign.plan)
        machine, about = (redact(str(plan.get(key) or "")) for key in ("machine", "about"))
        place = f"Measured on {machine} (imported)" if machine else "Imported"
        return f"{place}{'; ' * bool(about)}{about}." if machine or about else ""
    parts = [", ".join(node_type(data)), versions(data)]
    return f"Measured on {'; '.join(filter(None, parts))}." if parts[0] else ""
