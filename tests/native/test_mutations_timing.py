"""Every small change of the timing loop in C is noticed by the checks of it in made-up worlds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.native.programs import SOURCES
from tests.native.c_mutator import Mutant, mutants
from tests.native.timing import CHECKS, asker, build

pytestmark = [pytest.mark.mpi, pytest.mark.long]

LIMIT_S = 2.0  # of a scenario; those that pass take hundredths of a second
ONLY = {
    "common/clock.h": ("examine_clock", "coarseness"),
    "bench/measure.c": (
        "CLOCK_STEPS", "LEAST_SAMPLES", "LEAST_LONG", "LONG", "TRIES", "FARTHEST", "PATIENCE",
        "CHUNKS", "SCATTERED", "SLICE", "time_batch", "time_batch_as_osu", "run_batch",
        "take_samples",
        "warm_up", "try_batch", "too_short", "divide_budget", "divide_iterations",
        "make_schedule", "reduce_samples", "scattered", "misjudged", "measure_size",
        "time_computation", "steps_of", "typical", "overlap_of", "average", "measure_overlap",
    ),
    "bench/output.c": ("messages_of", "in_unit", "figure_of"),
}  # fmt: skip
# Changes that change nothing that anyone could see, and why: beginnings of their names.
SAME = {
    "examine_clock: enum { READINGS": "how many readings are enough is a matter of taste",
    "examine_clock: double begin = now(), last = begin, least = 1; -> double begin = now(), last "
    "= begin, least = 2": "no clock has steps of a second",
    "examine_clock: long readings = 0, steps = 0; -> long": "one reading, one step more or less",
    "examine_clock: while (readings < READINGS || steps < STEPS) { -> while (readings <= ":
        "one reading more",
    "examine_clock: while (readings < READINGS || steps < STEPS) { -> while (readings < READINGS "
    "|| steps <= ": "one step more",
    "FARTHEST: ": "twice and four times are below five as well",
    "too_short: for (long times = 2; times <= (brief ? 2 : FARTHEST); times *= 2) { -> for (long "
    "times = 2; times <= (brief ? 2 : FARTHEST); times += 2": "two and two are four either way",
    "too_short: for (long times = 2; times <= (brief ? 2 : FARTHEST); times *= 2) { -> for (long "
    "times = 2; times <= (brief ? 3 : FARTHEST)": "twice is below three as well",
    "divide_budget: bool is_long = LEAST_SAMPLES * timed.wall > LONG * budget; -> bool is_long = "
    "LEAST_SAMPLES * timed.wall >= ": "no time is exactly that",
    "warm_up: if (decided_by_rank_0(run, i > 0 && now() > deadline)) -> if "
    "(decided_by_rank_0(run, i >= ":
        "the deadline has not passed before the first iteration",
    "warm_up: if (decided_by_rank_0(run, i > 0 && now() > deadline)) -> if "
    "(decided_by_rank_0(run, i > 0 "
    "&& now() >= ": "no time is exactly that",
    "warm_up: for (long n = 2; !decided_by_rank_0(run, now() > deadline); n += n < 1024 ? n : "
    "0) -> "
    "for (long n = 2; !decided_by_rank_0(run, now() >= ": "no time is exactly that",
    "try_batch: for (int i = 1; i < tries && decided_by_rank_0(run, best.clock >= enough); i++) "
    "{ -> "
    "for (int i = 1; i < tries && decided_by_rank_0(run, best.clock > ": "no time is exactly that",
    "try_batch: best.wall = best.clock + overhead; -> best.wall = best.clock - overhead":
        "of three tries it is turned twice",
    "too_short: if (timed.clock < enough) -> if (timed.clock <= ": "no time is exactly that",
    "too_short: bool brief = timed.clock < SLICE; -> bool brief = timed.clock <= SLICE":
        "no time is exactly that",
    "too_short: if (!brief && as_slow > PATIENCE * 1e-3 * run->options->budget) -> if (!brief && "
    "as_slow >= ":
        "no time is exactly that",
    "too_short: if (try_batch(run, times * batch, tries, 0.75 * as_slow).clock < 0.75 * as_slow) "
    "-> if (try_batch(run, times * batch, tries, 0.75 * as_slow).clock <= ":
        "no time is exactly that",
    "divide_budget: double each = larger(timed.clock / (double)least, 1e-12), overhead = timed.wall"
    " - timed.clock; -> double each = larger(timed.clock / (double)least, 2e-12)":
        "no operation takes a picosecond",
    "divide_budget: if (batch < (double)least) -> if (batch <= ": "no quotient is exactly that",
    "divide_iterations: batch = batch > least ? batch : least; -> batch = batch >= ":
        "the larger of two that are alike",
    "make_schedule: while (decided_by_rank_0(run, too_short(run, least, timed, enough) && least < "
    "MOST_BATCH)) { -> while (decided_by_rank_0(run, too_short(run, least, timed, enough) && least "
    "<= ": "four million iterations take longer than a hundred readings",
    "take_samples: bool late = !run->options->iterations && done >= LEAST_SAMPLES && now() > "
    "deadline; -> bool late = !run->options->iterations && done >= LEAST_SAMPLES && now() >= ":
        "no time is exactly that",
    "reduce_samples: for (int i = 0; i < result->count; i++) -> for (int i = 0; i <= ":
        "behind the array: the address sanitizer's tests notice",
    "reduce_samples: for (int i = 0; i < result->count && !counts; i++) -> for (int i = 0; i <= ":
        "behind the array: the address sanitizer's tests notice",
    "reduce_samples: for (int i = 0; i < result->count && mean; i++) -> for (int i = 0; i <= ":
        "behind the array: the address sanitizer's tests notice",
    "scattered: return median_of(samples, count) > SCATTERED * least; -> return median_of(samples, "
    "count) >= ": "no time is exactly that",
    "misjudged: spent < 0.25e-3 * run->options->budget; -> spent <= ": "no time is exactly that",
    "misjudged: (batch < 0.5 * CLOCK_STEPS * coarseness(clock) && result->batch < MOST_BATCH); -> "
    "(batch <= ": "no time is exactly that",
    "average: free(sums); -> ;": "nothing but a leak: the leak sanitizer's tests notice",
    "measure_overlap: free(overall); -> ;": "nothing but a leak",
    "measure_overlap: free(alone); -> ;": "nothing but a leak",
    "measure_overlap: for (int i = 0; i < count; i++) { -> for (int i = 0; i <= ":
        "behind the array: the address sanitizer's tests notice",
    "measure_size: free(samples); -> ;": "nothing but a leak: the leak sanitizer's tests notice",
}  # fmt: skip


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
