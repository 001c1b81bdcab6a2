"""Repeat a campaign: what was requested then, with the MPIs and libraries of today."""

from __future__ import annotations

import json
from dataclasses import replace

from mpigraft.core.errors import UsageError
from mpigraft.core.model import CampaignRecord, Origin
from mpigraft.request import CampaignSpec, stored_spec


def repeated_spec(record: CampaignRecord, *, checks: bool = False) -> CampaignSpec:
    """Read what was requested of a campaign: MPIs by the words of then, benchmarks, layouts, sizes
    and rounds. The order of launches is drawn anew, and looks stay where they were planned. With
    `checks` it is to be held against that campaign: on its layouts whatever the nodes have, and
    without looks. Raises UsageError for a campaign that was not measured by mpigraft."""
    stored = json.loads(record.plan)
    if record.origin is not Origin.RUN or "wish" not in stored:
        raise UsageError.of("again-imported", name=record.name)
    spec = stored_spec(stored["wish"], "stored plan")
    rounds = spec.looks[-1] if spec.looks else spec.rounds
    spec = replace(spec, seed=0, rounds=rounds)
    if not checks:
        return spec
    layouts = tuple(stored.get("layouts") or spec.layout)
    return replace(
        spec, layout=layouts, nodes=(), ranks_per_node=(), threads=(), map_by=(), bind_to=(),
        looks=(),
    )  # fmt: skip
