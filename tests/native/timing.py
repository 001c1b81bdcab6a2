"""The timing loop in made-up worlds (c/timing.c), and what it must find there.

Times of scenarios and results are nanoseconds, those of values microseconds or MB/s. The clock of
every scenario starts anew and nothing else runs in it, so each figure is exact.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.process.command import run_command
from mpigraft.native.programs import sources
from tests.native.native_world import C

Ask = Callable[..., dict[str, Any]]
LIMIT_S = 20.0
# Stand-ins for what the loop never calls are left open: no library of an MPI is loaded.
FLAGS = (
    "-std=c11", "-D_GNU_SOURCE", "-O0", "-w", "-no-pie", "-Wl,--unresolved-symbols=ignore-all",
)  # fmt: skip


def build(folder: Path, include: Path, changed: Mapping[str, str]) -> Path | None:
    """The program with some headers changed, or None where that does not compile."""
    folder.mkdir()
    for name, path in {**sources(), "timing.c": C / "timing.c"}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        if name in changed:
            (folder / name).write_text(changed[name], encoding="utf-8")
        else:
            (folder / name).symlink_to(path)
    program = folder / "timing"
    words = (*FLAGS, "-isystem", include, folder / "timing.c", "-o", program, "-ldl")
    return program if run_command(["gcc", *words], limit_s=60).ok else None


def asker(program: Path, limit_s: float = LIMIT_S) -> Ask:
    """Ask the program for one size of a benchmark in a scenario."""

    def ask(benchmark: str = "latency", **scenario: float) -> dict[str, Any]:
        words = [f"{name}={value!r}" for name, value in scenario.items()]
        done = run_command([program, benchmark, *words], limit_s=limit_s)
        assert done.ok, done.text()
        found: dict[str, Any] = json.loads(done.stdout.replace(b":inf", b":1e300"))
        return found

    return ask


def near(value: float, rel: float = 1e-3) -> Any:
    return pytest.approx(value, rel=rel)


# ------------------------------------------------------------------ the clock


def check_cost_and_resolution(ask: Ask) -> None:
    fine, coarse = ask(cost=20), ask(cost=20, tick=1000)
    assert (fine["cost"], fine["clock_resolution"]) == (near(20), near(20))
    slow, once = ask(cost=20, tick=4e6), ask(cost=20, every=100, stall=1000, until=200)
    for found, step in ((coarse, 1000), (slow, 4e6), (once, 20)):  # ten slow ticks, one stall
        assert (found["cost"], found["clock_resolution"]) == (near(20, 0.01), near(step))


def check_a_batch_is_a_hundred_of_the_larger(ask: Ask) -> None:
    """100 x 20 ns are two iterations of 1 us; 100 x 1 us are a hundred, and no less than that."""
    few = {"budget": 1e-3, "samples": 1e4}
    assert ask(op=999, **few)["batch"] == 2
    assert ask(op=999, tick=1000, **few)["batch"] == 128
    assert ask(op=49, **few)["batch"] == 64
    assert ask(op=999, cost=39, **few)["batch"] == 4
    assert ask(op=1500, **few)["batch"] == 2
    assert ask(op=1500, jitter=40, **few)["batch"] == 4  # 40 ns a reading, steps of 20


def check_the_step_of_a_value(ask: Ask) -> None:
    one = ask(tick=1000, op=5000)
    assert one["resolution"] == near(1000 / one["batch"] / 2 / 1000, 0.01)  # a way is half
    bandwidth = ask("bw", tick=1000, op=5000, bytes=1000)
    assert bandwidth["value"] == near(64 * 1000 / 5000 * 1e3, 0.01)
    seconds = 64 * 1000 / bandwidth["value"] / 1e6
    later = seconds + 1e-6 / bandwidth["batch"]  # a step longer is slower, and never faster
    assert bandwidth["resolution"] == near(bandwidth["value"] * (1 - seconds / later))


def check_values_in_their_units(ask: Ask) -> None:
    """MB are 10^6 bytes; of a window at most 64 MiB are in flight, and one message at least."""
    assert ask("bw", op=5000, bytes=1000)["value"] == near(64 * 1000 / 5000 * 1e3, 0.01)
    assert ask("bibw", op=5000, bytes=1000)["value"] == near(2 * 64 * 1000 / 5000 * 1e3, 0.01)
    assert ask("bw", op=5e6, bytes=1 << 22)["value"] == near(16 * (1 << 22) / 5e6 * 1e3, 0.01)
    assert ask("bw", op=5e6, bytes=1 << 27)["value"] == near((1 << 27) / 5e6 * 1e3, 0.01)
    assert ask("bw", op=5e6, bytes=1 << 20)["value"] == near(64 * (1 << 20) / 5e6 * 1e3, 0.01)
    for start in ("init_time", "launch_time"):
        assert ask(start, op=3e6)["value"] == near(3)


# ------------------------------------------------------------------ how long, how often


def check_the_budget_is_divided(ask: Ask) -> None:
    usual = ask(op=1000, barrier=0)
    assert usual["count"] == 100
    assert usual["batch"] * 100 == pytest.approx(20e6 / 1000, rel=0.03)
    costly = ask(op=1000, barrier=50_000)  # 100 barriers are a quarter of the budget
    assert costly["count"] == 100
    assert costly["batch"] * 100 == pytest.approx(15e6 / 1000, rel=0.03)
    dear = ask(op=1000, barrier=500_000)  # 20 of them are half of it
    assert 18 <= dear["count"] <= 20
    assert dear["batch"] == pytest.approx(500, rel=0.05)
    assert ask(op=1000, samples=7)["count"] == 7
    assert ask(op=1000, samples=12, barrier=500_000)["count"] == 12
    tight = ask(op=400_000, barrier=400_000)
    assert (tight["batch"], tight["count"]) == (1, 24)
    tighter = ask(op=500_000, barrier=400_000)
    assert (tighter["batch"], tighter["count"]) == (1, 22)


def check_nine_samples_despite_the_budget(ask: Ask) -> None:
    """Five where nine would take more than ten budgets, of the operation or of what it needs."""
    for op, count in ((12e6, 9), (22e6, 9), (23e6, 5), (1e9, 5)):
        slow = ask(op=op, barrier=0)
        assert (slow["batch"], slow["count"]) == (1, count), op
        assert slow["value"] == near(op / 2e3)
    assert ask(op=12e6, samples=3)["count"] == 3
    assert ask(op=12e6, barrier=1e9)["count"] == 5
    assert ask(op=12e6, barrier=6e6, budget=1)["batch"] == 1


def check_a_slow_operation_is_not_tried_for_long(ask: Ask) -> None:
    """Three tries; twice as many thrice, or once where others might have had the CPU, and then
    four times as many; neither where they take more than five budgets."""
    bare = {"warmup": 0, "barrier": 0}
    assert [ask(op=op, **bare)["calls"] for op in (60e6, 55e6)] == [3 + 5, 3 + 5]
    assert ask(op=40e6, **bare)["calls"] == 3 + 2 + 5
    assert ask(op=12e6, **bare)["calls"] == 3 + 2 + 4 + 9
    assert ask(op=0.4e6, **bare, budget=1)["calls"] == 3 + 3 * 2 + 9
    longer = ask(op=0.7e6, **bare, budget=1)
    assert (longer["calls"], longer["told"]) == (3 + 2 + 4 + 9, [1, 3, 1])


def check_a_pipeline_of_the_start_is_not_measured(ask: Ask) -> None:
    """The first iteration of a batch takes six times as long: a batch is long enough when twice
    as many take one and a half times as long."""
    few = {"budget": 1e-3, "samples": 1e4}
    assert ask(op=5000, start=50_000, **few)["batch"] == 16
    assert ask(op=5000, start=0, **few)["batch"] == 1


def check_iterations_are_divided(ask: Ask) -> None:
    fixed = ask(op=5000, iterations=1000)
    assert (fixed["batch"], fixed["count"]) == (10, 100)
    uneven = ask(op=5000, iterations=950, samples=100)
    assert (uneven["batch"], uneven["count"]) == (10, 95)
    odd = ask(op=5000, iterations=901)
    assert (odd["batch"], odd["count"]) == (10, 91)
    short = ask(op=999, iterations=50, samples=100)
    assert (short["batch"], short["count"]) == (2, 25)
    slow = ask(op=12e6, iterations=30)  # past the budget, and all of them all the same
    assert (slow["batch"], slow["count"]) == (1, 30)


def check_the_warm_up(ask: Ask) -> None:
    """Single iterations, then batches, for a quarter of the budget; none where none is asked."""
    none, some = ask(op=60e6, warmup=0), ask(op=60e6, warmup=10)
    assert some["calls"] == none["calls"] + 1
    quick = {"iterations": 2, "samples": 1, "op": 1e5}
    assert ask(**quick, warmup=0)["calls"] == 3 + 3 * 2 + 2
    assert ask(**quick, warmup=10)["calls"] == 3 + 3 * 2 + 2 + 10 + 2 + 4 + 8 + 16 + 32
    later = ask(**quick, warmup=10, again=1)  # a tenth at sizes after the first
    assert later["calls"] == 3 + 3 * 2 + 2 + 10 + 2 + 4 + 8
    long = ask(op=1000, budget=100, warmup=2)
    assert long["longest"] == 1024 or long["batch"] > 1000


# ------------------------------------------------------------------ interruptions


def check_an_interrupted_start_is_no_slow_operation(ask: Ask) -> None:
    """The first iterations lose the CPU for a slice each: what comes after them counts."""
    for slow in (3, 8, 14):
        for stall in (0.3e6, 4e6, 12e6):
            found = ask("allreduce", slow=slow, stall=stall, warmup=0)
            assert found["value"] == near(2, 0.01), (slow, stall)
            assert found["count"] > 50


def check_the_shortest_try_counts(ask: Ask) -> None:
    """One try of three is interrupted, in its iterations or before them."""
    few = {"budget": 1e-3, "samples": 1e4, "warmup": 0, "stall": 4e6, "op": 50_000}
    for place in range(3):
        assert ask(**few, slow=1, **{"from": place})["batch"] == 1
        blocked = ask(op=50_000, warmup=0, stall=4e6, block=place)
        assert (blocked["batch"], blocked["count"], blocked["told"][2]) == (3, 100, 1), place
        many = ask(op=50_000, samples=1000, warmup=0, slow=1, stall=4e6, **{"from": place})
        assert (many["batch"], many["told"][2]) == (1, 1), place
        assert many["count"] > 350


def check_rank_0_decides(ask: Ask) -> None:
    """It tells how long is enough and the schedule once an attempt, and the best of each try."""
    found = ask(op=60e6, warmup=0)
    assert found["told"] == [1, 1, 1]
    assert ask(op=40e6, warmup=0)["told"] == [1, 2, 1]


def check_far_is_five_times(ask: Ask) -> None:
    """Nine tries and six of nine samples are slow; beyond five times they are taken again."""
    slow = {"op": 1e6, "warmup": 0, "slow": 9 + 6}
    assert ask(**slow, stall=4.5e6)["value"] == near(500)
    assert ask(**slow, stall=3.7e6)["value"] == near(4700 / 2)


def check_one_quick_sample_shows_that_others_were_disturbed(ask: Ask) -> None:
    """The second of nine; the others take 5.5 times as long."""
    found = ask(op=1e6, warmup=0, slow=9 + 9, quick=9 + 2, stall=4.5e6)
    assert (found["value"], found["told"][2]) == (near(500), 2)


def check_a_schedule_is_made_thrice_at_most(ask: Ask) -> None:
    """Only each third iteration is undisturbed: that is enough for tries, and not for samples."""
    found = ask(op=1e6, warmup=0, slow=1e9, quick=3, stall=9e6)
    assert found["told"][2] == 3
    assert found["value"] == near(5000)


def check_a_schedule_of_a_disturbed_moment(ask: Ask) -> None:
    """Nine calls make it and take `stall` more. It is made again where batches then take less than
    half of what the clock demands, or not all samples less than a quarter of the budget."""
    few = {"warmup": 0, "budget": 1e-3, "samples": 1e4}
    slow = {"warmup": 0, "slow": 9}
    assert ask(op=49, **few)["told"][2] == 1
    short = ask(op=500, stall=4500, slow=9 + 2, **few)  # so are two of five samples
    assert (short["batch"], short["told"][2]) == (4, 2)
    assert ask(op=1500, stall=1000, slow=9, **few)["told"][2] == 1
    assert ask(op=10_000, stall=90_000, **slow)["told"][2] == 1  # all samples were taken
    assert ask(op=0.8e6, stall=1.6e6, **slow)["told"][2] == 1
    assert ask(op=0.4e6, stall=2e6, **slow)["told"][2] == 2


def check_no_batch_is_longer_than_four_million(ask: Ask) -> None:
    endless = ask(op=1e-6, warmup=0, budget=1e-6, samples=1)
    assert (endless["batch"], endless["told"][2]) == (1 << 22, 1)


def check_a_busy_machine(ask: Ask) -> None:
    """Others have the CPU for 4 of 5 ms, or 12 of 20: most batches are as in a quiet world."""
    for every, stall in ((1e6, 4e6), (8e6, 12e6), (0.5e6, 1.5e6)):
        found = ask("allreduce", op=10_000, every=every, stall=stall)
        assert found["value"] == near(20, 0.05), (every, stall)
        assert found["count"] >= 9


def check_samples_far_apart_are_taken_again(ask: Ask) -> None:
    """The whole first attempt is disturbed; the machine is quiet at the second."""
    found = ask("allreduce", op=10_000, every=0.25e6, stall=2e6, until=50e6, warmup=0)
    assert found["value"] == near(20, 0.02)
    assert found["count"] > 50


def check_the_disturbed_end_of_a_budget(ask: Ask) -> None:
    """Sampling ends a quarter past the budget, however many batches were planned."""
    late = ask(op=1000, samples=96, every=3e6, stall=5e6, warmup=0)
    assert late["count"] in range(12, 96, 12)  # looked at after every eighth of the samples
    assert ask(op=1000, samples=72, every=0.25e6, stall=9e6, warmup=0)["count"] == 9


# ------------------------------------------------------------------ ranks


def check_ranks_are_put_together(ask: Ask) -> None:
    """Rank r takes 1 + r times as long as rank 0: here 1, 2, 3 and 4 us an iteration."""
    everyone = ask("allreduce", size=4, op=1000)
    assert everyone["value"] == near(4)
    assert [everyone[f"rank_{k}"] for k in ("mean", "min", "max")] == [
        near(2500), near(1000), near(4000),
    ]  # fmt: skip
    pairs = ask("multi_lat", size=4, op=1000)  # ranks 0 and 1 take the time
    assert pairs["value"] == near((1 + 2) / 2 / 2)
    assert [pairs[f"rank_{k}"] for k in ("mean", "min", "max")] == [
        near(1500), near(1000), near(2000),
    ]  # fmt: skip
    rate = ask("mbw_mr", size=4, op=1000, bytes=100)  # the slowest pair ends last
    assert rate["value"] == near(2 * 64 / 2e-6)


def check_a_follower_counts_for_nothing(ask: Ask) -> None:
    """The second of a pair waits more than it works: it gives 0, and infinity for a minimum."""
    follower = ask("latency", rank=1, op=1000)
    assert follower["sent"] == [0, 0, 0, 1e300]
    assert ask("allreduce", rank=1, op=1000)["sent"] == [near(1000)] * 4


# ------------------------------------------------------------------ as OSU has it


def check_like_osu(ask: Ask) -> None:
    """Each iteration by itself, with the cost of one reading, and the mean of the ranks."""
    latency = ask("latency", osu=1, op=1000)
    assert latency["value"] == near((1000 + 20) / 2e3)
    everyone = ask("allreduce", osu=1, size=4, op=1000)
    assert everyone["value"] == near((1000 + 20) * 2.5 / 1e3)
    one_sided = ask("put_lat", osu=1, op=1000)  # two readings in the loop, and their cost
    assert one_sided["value"] == near((1000 + 40) / 1e3)
    rate = ask("mbw_mr", osu=1, size=4, op=1000, bytes=100)
    assert rate["value"] == near(2 * 64 / 1.53e-6)


def check_barriers_like_osu(ask: Ask) -> None:
    """One after each iteration of a collective and of many pairs' windows, on no clock."""
    for benchmark in ("allreduce", "bcast", "alltoall", "mbw_mr"):
        found = ask(benchmark, osu=1, op=1000, barrier=3000)
        assert found["apart"] == found["calls"], benchmark
        assert found["samples"][0] == pytest.approx(1530 if found["rank_mean"] else 1, rel=1)
        assert found["rank_min"] == near(1020)
    for benchmark in ("latency", "bw", "put_lat", "barrier", "multi_lat"):
        found = ask(benchmark, osu=1, op=1000, barrier=3000)
        assert found["apart"] < found["calls"], benchmark
    assert ask("allreduce", op=1000)["apart"] < ask("allreduce", op=1000)["calls"]


def check_means_like_osu(ask: Ask) -> None:
    """The mean over iterations, which interruptions weigh in, where the median has none."""
    busy = {"op": 10_000, "every": 3e6, "stall": 1e6}
    like, usual = ask("allreduce", osu=1, **busy), ask("allreduce", **busy)
    assert usual["value"] == near(20, 0.02)
    assert like["value"] == near(sum(like["samples"]) / like["count"] / 1e3)
    assert like["value"] > 1.1 * 15


# ------------------------------------------------------------------ data


def check_preparing_and_checking(ask: Ask) -> None:
    """Content is new for each batch; without validation it is made once."""
    checked, bare = ask("put_lat", validate=1), ask("put_lat")
    assert (checked["checked"], bare["checked"]) == (1, 0)
    assert (bare["rounds"], bare["syncs"]) == (1, 1)
    assert checked["rounds"] == checked["barriers"] / 2  # one before a batch, one before a check
    assert checked["syncs"] == checked["barriers"]
    assert checked["value"] == near(1)
    assert ask("barrier", validate=1)["checked"] == 0


def check_data_is_valid_where_it_is_on_all_ranks(ask: Ask) -> None:
    assert [ask("put_lat", wrong=wrong)["valid"] for wrong in (0, 1)] == [1, 0]
    assert ask("put_lat")["windows"] == 0  # that are still open at the end


def check_what_computation_hides(ask: Ask) -> None:
    """Two ranks of which the second takes twice as long: the mean is 1.5 times the first's, the
    slowest twice. Each computes for as long as the call takes it."""
    for hides in (0, 0.25, 0.75):
        one = ask("ibcast", op=1e5, hides=hides)
        assert one["value"] == near(200)
        assert (one["pure"], one["compute"]) == (near(1.5e5), near(1.5e5, 2e-3))
        both = 1e5 * (2 - hides)
        assert (one["overall"], one["overall_mean"]) == (near(2 * both), near(1.5 * both))
        assert one["overlap"] == pytest.approx(100 * hides, abs=0.2)
        assert one["first"] == [near(2 * both), pytest.approx(100 * hides, abs=0.2)]
        assert (one["work"], one["calibrations"]) == (0, 5)
    short = ask("ibcast", op=1e3, hides=0.5)  # in batches
    assert short["batch"] > 1
    assert (short["overall_mean"], short["compute"]) == (near(2250, 0.05), near(1500, 0.05))
    slower = ask("ibcast", op=1e5, hides=-1)  # the call takes longer beside computation
    assert slower["overlap"] == 0
    mean = ask("ibcast", op=1e5, hides=0.5, osu=1)
    assert (mean["overall"], mean["overlap"]) == (near(2.25e5), pytest.approx(50, abs=0.2))
    assert ask("bcast", op=1e5)["overall"] == 0


def check_interruptions_of_computation(ask: Ask) -> None:
    """One good try of five is enough to know how long a step takes; what is computed alone is not
    longer because one time was interrupted."""
    for slowed in (0b11110, 0b01111):
        assert ask("ibcast", op=1e5, slowed=slowed)["compute"] == near(1.5e5, 2e-3)
    assert ask("ibcast", op=1e5, slowed=0b11111)["compute"] == near(0.75e5, 2e-3)
    assert ask("ibcast", op=1e5, disturbs=1e8)["compute"] == near(1.5e5, 2e-3)
    burst = {"op": 1e5, "slow": 30, "from": 150, "stall": 1e6}
    assert ask("ibcast", **burst)["pure"] == near(1.5e5)
    assert ask("ibcast", osu=1, **burst)["pure"] > 1.6e5


SLOW = (  # come last: most mutants are noticed before
    check_values_in_their_units, check_no_batch_is_longer_than_four_million,
    check_cost_and_resolution,
)  # fmt: skip
CHECKS = (
    *(
        check
        for name, check in sorted(globals().items())
        if name.startswith("check_") and check not in SLOW
    ),
    *SLOW,
)
