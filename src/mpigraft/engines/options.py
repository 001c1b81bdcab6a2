"""Options of an engine's own that somebody wants besides: `--nv`, `--device`, `--ulimit`."""

from __future__ import annotations

from dataclasses import replace

from mpigraft.jsonout import digest
from mpigraft.model import EnvRow, GraftPlan

# With these Apptainer binds a GPU's libraries there and leads to them by LD_LIBRARY_PATH alone.
# Source: Apptainer's user guide, GPU Support.
GPU_OPTIONS, GPU_LIBRARIES = ("--nv", "--nvccli", "--rocm"), "/.singularity.d/libs"
SEARCH = "LD_LIBRARY_PATH"


def with_options(plan: GraftPlan, words: tuple[str, ...]) -> GraftPlan:
    """The plan whose engine is started with these words too. It is another plan: what ran with
    `--device` is no proof for what runs without."""
    if not words:
        return plan
    environment = plan.environment
    if plan.engine == "apptainer" and not set(words).isdisjoint(GPU_OPTIONS):
        environment = tuple(map(_with_gpu, environment))
    key = digest([plan.key, list(words)])
    return replace(plan, key=key, options=words, environment=environment)


def _with_gpu(row: EnvRow) -> EnvRow:
    if row.name != SEARCH:
        return row
    return replace(row, value=":".join(filter(None, (row.value, GPU_LIBRARIES))))
