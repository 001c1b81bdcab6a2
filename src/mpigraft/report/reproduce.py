"""The command that measures a benchmark of this campaign again, from its stored plan."""

from __future__ import annotations

import shlex
from dataclasses import replace

from mpigraft.core.env import redact
from mpigraft.core.errors import MpigraftError
from mpigraft.core.model import Origin
from mpigraft.report.contents import ReportData
from mpigraft.report.scaling import Card
from mpigraft.report.software import document
from mpigraft.request import stored_spec

# What a card says itself, and what a new campaign names or draws anew.
OWN = ("name", "benchmark", "seed", "limit_s", "quick", "layout", "nodes", "ranks_per_node")
AXES = ("threads", "map_by", "bind_to", "gpus")  # a layout's key has them


def command(data: ReportData, card: Card) -> str:
    """`mpigraft bench --benchmark latency --layout 2x1 --mpi openmpi`; empty where no plan says
    what was requested, as of an import."""
    if data.campaign is None or data.campaign.origin is not Origin.RUN:
        return ""
    wish = document(data.campaign.plan).get("wish")
    if not isinstance(wish, dict):
        return ""
    try:
        spec = stored_spec(wish, "the stored plan")
        own = tuple(app for app in spec.app if card.benchmark == f"app:{app.name}")
        flags = replace(spec, app=own).words((*OWN, *AXES))
        words = ["mpigraft", "bench", "--benchmark", card.benchmark.removeprefix("native:")]
        for section in card.sections:
            words += ["--layout", section.layout]
        return redact(shlex.join([*words, *flags]))
    except (MpigraftError, TypeError, ValueError):  # a plan of another version
        return ""
