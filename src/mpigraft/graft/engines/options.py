"""Add options of the engine itself: `--nv`, `--device`, `--ulimit`."""

from __future__ import annotations

from dataclasses import replace

from mpigraft.core.model import EnvRow, GraftPlan
from mpigraft.core.serialize import digest

# With these Apptainer binds a GPU's libraries there and sets LD_LIBRARY_PATH to that folder.
# Source: Apptainer's user guide, GPU Support.
GPU_OPTIONS, GPU_LIBRARIES = ("--nv", "--nvccli", "--rocm"), "/.singularity.d/libs"
SEARCH = "LD_LIBRARY_PATH"


def with_engine_options(plan: GraftPlan, words: tuple[str, ...]) -> GraftPlan:
    """Give the plan whose engine gets these words too. It is another plan: a proof with
    `--device` does not hold without it."""
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
