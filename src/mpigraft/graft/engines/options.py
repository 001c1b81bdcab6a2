"""Add options of the engine itself: `--nv`, `--device`, `--ulimit`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from mpigraft.core.model import EnvRow, GraftPlan
from mpigraft.core.serialize import digest
from mpigraft.graft.engines.registry import ENGINES

# With these Apptainer binds a GPU's libraries there and sets LD_LIBRARY_PATH to that folder.
# Source: Apptainer's user guide, GPU Support.
GPU_OPTIONS, GPU_LIBRARIES = ("--nv", "--nvccli", "--rocm"), "/.singularity.d/libs"
PREFIXES = ("APPTAINER_", "SINGULARITY_")  # a user's APPTAINER_NV=1 counts as the option
OFF = ("", "0", "f", "false")
NOTHING: Mapping[str, str] = MappingProxyType({})
SEARCH = "LD_LIBRARY_PATH"


def options_by_engine(options: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Split `ENGINE=WORD` and `WORD` into pairs; an empty engine means any."""
    for option in options:
        engine, equals, word = option.partition("=")
        yield (engine, word) if equals and engine in ENGINES else ("", option)


def with_engine_options(
    plan: GraftPlan, options: Iterable[str], environ: Mapping[str, str] = NOTHING
) -> GraftPlan:
    """Give the plan whose engine gets the words that are meant for it. It is another plan: a proof
    with `--device` does not hold without it. A user's `environ` gives words too."""
    words = tuple(word for name, word in options_by_engine(options) if name in ("", plan.engine))
    given = (word for name, word in _of_environment(environ) if name == plan.engine)
    words = (*(word for word in given if word not in words), *words)
    if not words or not ENGINES[plan.engine].PROGRAMS:
        return plan
    environment = plan.environment
    if plan.engine == "apptainer" and not set(words).isdisjoint(GPU_OPTIONS):
        environment = tuple(map(_with_gpu, environment))
    key = digest([plan.key, list(words)])
    return replace(plan, key=key, options=words, environment=environment)


def _of_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """List (engine, option) of what a user's environment says: Apptainer's for GPUs."""
    for option in GPU_OPTIONS:
        values = (environ.get(prefix + option.strip("-").upper(), "") for prefix in PREFIXES)
        if any(value.lower() not in OFF for value in values):
            yield "apptainer", option


def _with_gpu(row: EnvRow) -> EnvRow:
    if row.name != SEARCH:
        return row
    return replace(row, value=":".join(filter(None, (row.value, GPU_LIBRARIES))))
