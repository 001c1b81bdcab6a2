"""Repeat a campaign: what was requested then, with the MPIs and libraries of today."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mpigraft.bench.measurement import native_words
from mpigraft.bench.suites.registry import NATIVE
from mpigraft.core.errors import MpigraftError, UsageError
from mpigraft.core.model import CampaignRecord, Origin
from mpigraft.native import ALONE
from mpigraft.request import USUAL_MAX_SIZE, CampaignSpec, option_words, stored_spec

# What `benchmark_command` adds itself, and what a new campaign names or draws anew.
CHANGED = (
    "name", "benchmark", "seed", "limit", "quick", "spare_rounds", "layout", "nodes",
    "ranks_per_node",
)  # fmt: skip
AXES = ("threads", "map_by", "bind_to", "gpus")  # a layout's key has them


def repeated_spec(record: CampaignRecord, *, checks: bool = False) -> CampaignSpec:
    """Read what was requested of a campaign: MPIs by the same words, benchmarks, layouts, sizes and
    rounds. The order of launches is drawn anew, and looks stay where they were planned. With
    `checks` it is to be compared with that campaign: on its layouts for any nodes, and without
    looks. Raises UsageError for a campaign that was not measured by mpigraft."""
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
        looks=(), spare_rounds=0,
    )  # fmt: skip


def benchmark_command(record: CampaignRecord, benchmark: str, layouts: Sequence[str]) -> str:
    """Write the command that measures a benchmark of a campaign again:
    `mpigraft bench --benchmark latency --layout 2x1 --mpi openmpi`. Empty where no plan says what
    was requested, as of an import, and for a plan of another version."""
    if record.origin is not Origin.RUN:
        return ""
    try:
        spec = stored_spec(json.loads(record.plan)["wish"], "the stored plan")
        own = tuple(app for app in spec.app if benchmark == f"app:{app.name}")
        largest = 0 if spec.max_size == USUAL_MAX_SIZE else spec.max_size
        name = benchmark.partition(",")[0]
        named = (name.partition(":")[0], name, benchmark)
        limits = tuple(one for one in spec.limits if one.rpartition("=")[0] in named)
        matrix = spec.matrix if name == "mini:dirac" else ""
        spec = replace(spec, app=own, max_size=largest, limits=limits, matrix=matrix)
        flags = option_words(spec, (*CHANGED, *AXES))
        words = ["mpigraft", "bench", "--benchmark", benchmark.removeprefix(f"{NATIVE}:")]
        for layout in layouts:
            words += ["--layout", layout]
        return shlex.join([*words, *flags])
    except (MpigraftError, AttributeError, KeyError, TypeError, ValueError):
        return ""


def native_launches(plan: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Write the options of mpigraft-bench for each launch that mpigraft makes of the native
    benchmarks of a stored plan. Raises KeyError or TypeError for what is no plan."""
    spec = stored_spec(plan["wish"], "stored plan")
    keys = [key for key in plan.get("benchmarks", ()) if key.startswith(f"{NATIVE}:")]
    names = [key.removeprefix(f"{NATIVE}:").replace(",", ":") for key in keys]
    names = [name for name in names if not name.startswith("launch_time")]  # needs a start time
    together = [name for name in names if name.partition(":")[0] not in ALONE]
    groups = [[name] for name in names if name not in together]
    return [native_words(spec, group) for group in ([together] if together else []) + groups]
