"""Every small change of the timing loop in C is noticed by the checks of it in made-up worlds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mpigraft.model import Family
from mpigraft.natives import SOURCES
from tests.native.c_mutator import Mutant, mutants
from tests.native.timing import CHECKS, asker, build

pytestmark = [pytest.mark.mpi, pytest.mark.long]

LIMIT_S = 2.0  # of a scenario; those that pass take hundredths of a second
ONLY = {
    "clock.h": ("examine_clock", "coarseness"),
    "measure.h": (
        "CLOCK_STEPS", "LEAST_SAMPLES", "TRIES", "FARTHEST", "CHUNKS", "SCATTERED", "SLICE",
        "time_batch", "time_batch_as_osu", "run_batch", "warm_up", "try_batch", "too_short",
        "divide_budget", "divide_iterations", "make_schedule", "take_samples", "reduce_samples",
        "scattered", "misjudged", "measure_size",
    ),
    "output.h": ("messages_of", "in_unit", "figure_of"),
}  # fmt: skip
# Changes that change nothing that anyone could see, and why: beginnings of their names.
SAME: dict[str, str] = {}


def survivor(mutant: Mutant, name: str, include: Path, folder: Path) -> str:
    """The mutant's name, if it compiles and passes every check; else nothing."""
    program = build(folder, include, {name: mutant.text})
    if program is None:
        return ""
    ask = asker(program, LIMIT_S)
    for check in CHECKS:
        try:
            check(ask)
        except Exception:  # whatever it is, the change was noticed
            return ""
    return mutant.name


@pytest.mark.parametrize("name", ONLY)
def test_every_change_is_noticed(mpis: Mapping[Family, Path], tmp_path: Path, name: str) -> None:
    include = mpis[Family.MPICH] / "include"
    tried = list(mutants((SOURCES / name).read_text(encoding="utf-8"), ONLY[name]))
    assert len(tried) > 20
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = pool.map(
            lambda numbered: survivor(numbered[1], name, include, tmp_path / str(numbered[0])),
            enumerate(tried),
        )
        alive = [mutant for mutant in found if mutant]
    unexpected = [mutant for mutant in alive if not mutant.startswith(tuple(SAME))]
    assert not unexpected, "\n".join(["nothing noticed:", *unexpected])
