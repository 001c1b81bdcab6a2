"""The part of a figure's caption on its machine: node type, network, versions."""

from __future__ import annotations

from mpigraft.core.env import redact
from mpigraft.core.model import Origin
from mpigraft.report.contents import ReportData
from mpigraft.report.software import document, node_type, versions


def caption(data: ReportData) -> str:
    """`Measured on 2 nodes with AMD EPYC 7763, network cxi 200G; mpich@5.0.2 with libfabric
    2.1.0.`; empty where nothing is known."""
    if data.campaign is None:
        return ""
    if data.comparison.origin is Origin.IMPORT:
        plan = document(data.campaign.plan)
        machine, about = (redact(str(plan.get(key) or "")) for key in ("machine", "about"))
        place = f"Measured on {machine} (imported)" if machine else "Imported"
        return f"{place}{'; ' * bool(about)}{about}." if machine or about else ""
    parts = [", ".join(node_type(data)), versions(data)]
    return f"Measured on {'; '.join(filter(None, parts))}." if parts[0] else ""
