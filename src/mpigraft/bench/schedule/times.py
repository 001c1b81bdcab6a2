"""How long a launch takes, and after which time it counts as hung."""

from __future__ import annotations

from collections.abc import Sequence

from mpigraft.bench.suites.registry import NATIVE
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Benchmark
from mpigraft.native import ALONE, STARTUP
from mpigraft.request import USUAL_MAX_SIZE, CampaignSpec

QUICK_MAX_SIZE = 1 << 20  # bytes of a message: the two sizes above took a third of a launch
LONG_TIMES = 12  # warm-up, tries and five samples at least, each prepared and checked
SLOWEST, USUAL = 1e8, 1e9  # bytes a second, of a network over TCP and of one node's memory
START_S = 2.0  # of a small launch on one node, from mpiexec to MPI_Finalize
OTHERS_LIMIT_S = 600.0  # of a launch of another suite's program, unless --limit says more
MOST_START_S = 30.0  # allowed for MPI_Init and the like before a launch counts as hung


def default_limit_s(
    spec: CampaignSpec, benchmarks: Sequence[Benchmark], nodes: int, budget_ms: float
) -> float:
    """After how long a launch counts as hung. Nobody knows that of a program of others."""
    native = [b for b in benchmarks if b.suite == NATIVE]
    own_s = (
        MOST_START_S
        + 30 * count_budgets(spec, native, nodes) * budget_ms / 1000
        + LONG_TIMES * long_bytes(spec, native) / SLOWEST
    )
    return own_s if len(native) == len(benchmarks) else max(own_s, OTHERS_LIMIT_S)


def estimate_launch_s(spec: CampaignSpec, benchmarks: Sequence[Benchmark], nodes: int) -> float:
    """Estimate how many seconds one launch takes: validation and warm-up are off the budget's
    clock and add about half of it. Slow transports and many ranks take longer."""
    budgets = count_budgets(spec, benchmarks, nodes)
    long_s = LONG_TIMES * long_bytes(spec, benchmarks) / USUAL
    return START_S + 1.5 * budgets * spec.budget_ms / 1000 + long_s


def completed_limits(
    spec: CampaignSpec, benchmarks: Sequence[Benchmark], nodes: int, budget_ms: float
) -> tuple[str, ...]:
    """Return the limits of a spec, and where it names none for them that of our own launches in a
    round with others: a program of others may take longer, and ours need not wait for it."""
    native = [b for b in benchmarks if b.suite == NATIVE]
    if spec.limit_s or NATIVE in spec.limited or not native or len(native) == len(benchmarks):
        return spec.limits
    return (*spec.limits, f"{NATIVE}={default_limit_s(spec, native, nodes, budget_ms):g}")


def refuse_idle_limits(spec: CampaignSpec, benchmarks: Sequence[Benchmark]) -> None:
    """Raise UsageError for a limit of nothing that is started: a misspelled one would be none."""
    alone = [b.key for b in benchmarks if b.suite != NATIVE or b.name in ALONE]
    names = [part for key in alone for part in (key, key.partition(",")[0])]
    known = dict.fromkeys([*(b.suite for b in benchmarks), *names])
    for name in spec.limited:
        if name not in known:
            raise UsageError.unknown("limit-idle", name, known)


def usual_max_size(spec: CampaignSpec) -> int:
    """Return the largest message, in bytes, where none was requested."""
    quick = spec.quick and spec.min_size <= QUICK_MAX_SIZE
    return QUICK_MAX_SIZE if quick else USUAL_MAX_SIZE


def count_budgets(spec: CampaignSpec, benchmarks: Sequence[Benchmark], nodes: int) -> int:
    """Return how many times a launch on `nodes` spends the budget: once for each size; where nodes
    meet pair by pair, thrice in each round of meetings, which are no more than nodes. Thirty times
    as long counts as hung, since slow transports pass the budget with one message and validation is
    off the clock."""
    sizes = spec.max_size.bit_length() - spec.min_size.bit_length() + 1
    return sum(3 * nodes if b.name == "pairs" else sizes for b in benchmarks)


def long_bytes(spec: CampaignSpec, benchmarks: Sequence[Benchmark]) -> int:
    """Return bytes of one message of every size that passes the budget by itself, of all
    benchmarks: each is sent LONG_TIMES despite the budget."""
    sizes = [spec.min_size]
    while sizes[-1] * 2 <= spec.max_size:
        sizes.append(sizes[-1] * 2)
    sized = [b for b in benchmarks if b.name not in (*STARTUP, "barrier", "pairs")]
    return len(sized) * sum(size for size in sizes if size > USUAL_MAX_SIZE)
