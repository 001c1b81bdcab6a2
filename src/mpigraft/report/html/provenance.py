"""Where a configuration and a machine come from, in the HTML report.

A record is shown as it is, key by key: what other programs wrote into it is not known here.
"""

from __future__ import annotations

import json
from typing import Any

from mpigraft.core.env import SECRET_NAME, STRUCK
from mpigraft.core.hostlist import fold_hosts
from mpigraft.core.model import AllocationRecord
from mpigraft.core.numbers import counted
from mpigraft.core.serialize import parse_object
from mpigraft.report.contents import ReportData
from mpigraft.report.markup import Html, el, foreign, join, table

NAMED = 12  # nodes, or runs of nodes, that one machine is named by
MACHINE = {
    "os": "system",
    "kernel": "kernel",
    "memory_mib": "memory, MiB",
    "memory_read_mib_s": "memory read by a NUMA domain, MiB/s",
}


def machine(data: ReportData) -> Html:
    """Return every allocation's machine, as `discover` saw it on the first node; alike ones once,
    since a campaign may have a hundred jobs."""
    alike: dict[Html, list[AllocationRecord]] = {}
    for allocation in data.allocations:
        rows = el("dl", *_machine(parse_object(allocation.machine)))
        alike.setdefault(rows, []).append(allocation)
    parts = (join(_machine_heading(allocations), rows) for rows, allocations in alike.items())
    return join(*parts) if alike else el("p", "The machine was not recorded.")


def _machine_heading(allocations: list[AllocationRecord]) -> Html:
    nodes = list(dict.fromkeys(node for one in allocations for node in one.hosts or (one.host,)))
    text = f" from {min(one.started for one in allocations)}"
    text += f", {len(allocations)} allocations" if len(allocations) > 1 else ""
    if len(nodes) > 1:
        text += f"; examined on {fold_hosts(sorted({one.host for one in allocations}), NAMED)}"
    return el("h3", foreign(fold_hosts(nodes, NAMED)), el("small", foreign(text)))


def _machine(facts: dict[str, Any]) -> list[Html]:
    rows = [_term(what, facts[key]) for key, what in MACHINE.items() if facts.get(key)]
    cpu = facts.get("cpu")
    if isinstance(cpu, dict):
        counts = ((cpu.get(key, "?"), key) for key in ("sockets", "cores", "threads"))
        parts = [f"{number} {what[:-1] if number == 1 else what}" for number, what in counts]
        domains = len(cpu.get("numa", ()))
        parts.append(counted(domains, "NUMA domain"))
        rows.append(
            _term("CPU", ", ".join([f"{cpu.get('model')} ({cpu.get('architecture')})", *parts]))
        )
    for key, what in (("fabrics", "network"), ("single_copy", "single copy"), ("gpus", "GPUs")):
        listed = facts.get(key)
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
    """Render a configuration's provenance: all that its record has, key by key."""
    try:
        record = json.loads(text)
    except ValueError:
        return el("p", foreign(text))
    if not isinstance(record, dict):
        return el("p", foreign(record))
    environment = record.pop("environment", None)
    rows = [
        _term(key.replace("_", " "), _struck(key, record[key]))
        for key in sorted(record)
        if record[key]
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
    """List a JSON value as lines: pairs and objects on one line each, digests shortened."""
    if isinstance(value, dict):
        return [", ".join(f"{k} {_scalar(_struck(str(k), v))}" for k, v in value.items() if v)]
    if isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):
            return [_scalar(value)]
        return [_scalar(item) for item in value]
    return [_scalar(value)]


def _scalar(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(_scalar(item) for item in value)
    text = str(value)
    is_digest = len(text) == 64 and all(c in "0123456789abcdef" for c in text)
    return f"sha256:{text[:16]}" if is_digest else text
