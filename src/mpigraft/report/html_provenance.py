"""Where a configuration and a machine come from, in the HTML report.

A record is shown as it is, key by key: what other programs wrote into it is not known here.
"""

from __future__ import annotations

import json
from typing import Any

from mpigraft.env import SECRET_NAME, STRUCK
from mpigraft.launchers.hostlist import folded
from mpigraft.model import AllocationRecord
from mpigraft.report import ReportData
from mpigraft.report.markup import Html, el, foreign, join, table

NAMED = 12  # nodes, or runs of nodes, that one machine is named by
MACHINE = {"os": "system", "kernel": "kernel", "memory_mib": "memory, MiB"}


def machine(data: ReportData) -> Html:
    """Every allocation's machine, as `discover` saw it on the first node; alike ones once, since
    a campaign may have a hundred jobs."""
    alike: dict[Html, list[AllocationRecord]] = {}
    for allocation in data.allocations:
        try:
            seen = json.loads(allocation.machine)
        except ValueError:
            seen = {}
        rows = el("dl", *_machine(seen if isinstance(seen, dict) else {}))
        alike.setdefault(rows, []).append(allocation)
    parts = (join(_whose(found), rows) for rows, found in alike.items())
    return join(*parts) if alike else el("p", "The machine was not recorded.")


def _whose(found: list[AllocationRecord]) -> Html:
    nodes = list(dict.fromkeys(node for one in found for node in one.hosts or (one.host,)))
    told = f" from {min(one.started for one in found)}"
    told += f", {len(found)} allocations" if len(found) > 1 else ""
    if len(nodes) > 1:
        told += f"; looked at on {folded(sorted({one.host for one in found}), NAMED)}"
    return el("h3", foreign(folded(nodes, NAMED)), el("small", foreign(told)))


def _machine(seen: dict[str, Any]) -> list[Html]:
    rows = [_term(what, seen[key]) for key, what in MACHINE.items() if seen.get(key)]
    cpu = seen.get("cpu")
    if isinstance(cpu, dict):
        counts = ((cpu.get(key, "?"), key) for key in ("sockets", "cores", "threads"))
        parts = [f"{number} {what[:-1] if number == 1 else what}" for number, what in counts]
        domains = len(cpu.get("numa", ()))
        parts.append(f"{domains} NUMA domain{'' if domains == 1 else 's'}")
        rows.append(
            _term("CPU", ", ".join([f"{cpu.get('model')} ({cpu.get('architecture')})", *parts]))
        )
    for key, what in (("fabrics", "network"), ("single_copy", "single copy"), ("gpus", "GPUs")):
        listed = seen.get(key)
        if isinstance(listed, list):
            devices = [_device(d) for d in listed] or ["none"]
            rows.append(join(el("dt", what), el("dd", *_lines(devices))))
    return rows


def _device(device: Any) -> str:
    if not isinstance(device, dict):
        return str(device)
    parts = [str(device.get(k, "")) for k in ("vendor", "name", "kind", "state", "reason")]
    if "usable" in device:
        parts.insert(2, "usable:" if device["usable"] else "not usable:")
    details = [": ".join(str(x) for x in pair) for pair in device.get("details", ())]
    return " ".join(part for part in [*parts, *details] if part)


def provenance(text: str) -> Html:
    """A configuration's provenance: whatever its record says, key by key."""
    try:
        told = json.loads(text)
    except ValueError:
        return el("p", foreign(text))
    if not isinstance(told, dict):
        return el("p", foreign(told))
    environment = told.pop("environment", None)
    rows = [
        _term(key.replace("_", " "), _struck(key, told[key])) for key in sorted(told) if told[key]
    ]
    parts = [el("h4", "Provenance"), el("dl", *rows)]
    if isinstance(environment, list) and environment:
        parts.append(_environment(environment))
    return join(*parts)


def _environment(rows: list[Any]) -> Html:
    columns = ("name", "value", "scope", "source")
    body = []
    for row in (r for r in rows if isinstance(r, dict)):
        value = _struck(str(row.get("name", "")), row.get("value", ""))
        cells = [row.get("name", ""), value, row.get("scope", ""), row.get("source", "")]
        first, second, *others = (foreign(cell) for cell in cells)
        code = (el("td", el("code", text)) for text in (first, second))
        body.append(el("tr", *code, *(el("td", text) for text in others)))
    return table("Environment, as far as it may be shown", columns, body, class_="plain")


def _struck(name: str, value: Any) -> Any:
    return STRUCK if SECRET_NAME.search(name) and name != "key" else value


def _term(name: str, value: Any) -> Html:
    return join(el("dt", name), el("dd", *_lines(_flat(value))))


def _lines(values: list[str]) -> list[Html]:
    return [el("div", foreign(value)) for value in values]


def _flat(value: Any) -> list[str]:
    """A JSON value as lines: pairs and objects on one line each, digests shortened."""
    if isinstance(value, dict):
        return [", ".join(f"{k} {_one(_struck(str(k), v))}" for k, v in value.items() if v)]
    if isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):
            return [_one(value)]
        return [_one(item) for item in value]
    return [_one(value)]


def _one(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(_one(item) for item in value)
    text = str(value)
    is_digest = len(text) == 64 and all(c in "0123456789abcdef" for c in text)
    return f"sha256:{text[:16]}" if is_digest else text
