"""`mpigraft bench --dry-run`: what a campaign would start."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpigraft.campaign import Campaign
    from mpigraft.model import CampaignRecord

START_S = 2.0  # of a small launch on one node, from mpiexec to MPI_Finalize


def plan_lines(planned: Campaign, made: int = 0, record: CampaignRecord | None = None) -> list[str]:
    """What would be started: one line per configuration, then the order of the first round. Of a
    campaign that goes on, of which there is a `record`, `made` launches are stored.

    Values of secrets are struck out: a configuration's id has its settings in it.
    """
    from mpigraft import campaign, env, looks
    from mpigraft.report import stages, words

    steps = campaign.schedule(planned)
    wish = planned.wish
    lines = [
        f"{len(steps)} launches: {wish.rounds} rounds, seed {wish.seed}",
        *filter(None, [stages.plan(looks.looks_of(record or campaign.record(planned)))]),
        *([f"made until now: {words.many(made, 'launch')}"] if made else []),
        _estimate(planned, max(0, len(steps) - made)),
        f"baseline: {planned.baseline.id}",
        "benchmarks: " + ", ".join(b.key for b in planned.benchmarks),
        f"sizes: {words.size(wish.min_size)} to {words.size(wish.max_size)}, "
        f"{wish.budget_ms:g} ms each",
        "layouts: " + ", ".join(layout.key for layout in planned.layouts),
    ]
    for configuration in planned.configurations:
        lines.append(f"configuration: {configuration.id}")
        mpi, transport = configuration.mpi, configuration.transport
        modules = [row for row in mpi.environment if row.source == "module"] if mpi else []
        for row in (*modules, *(transport.env if transport else ())):
            value = "(dropped)" if row.value is None else row.value
            lines.append(f"    {row.scope}: {row.name}={value}  [{row.source}]")
    lines += [f"left out: {who}: {why}" for who, why in planned.skipped]
    first = [s for s in steps if s.round == 0]
    lines.append("first round: " + ", ".join(f"{s.configuration.id} {s.layout.key}" for s in first))
    return [env.redact(line) for line in lines]


def _estimate(planned: Campaign, launches: int) -> str:
    """About how long it takes. Each pair of configuration and layout is proved by one launch
    more; validation and warm-up are off the budget's clock and add about half of it."""
    from mpigraft.campaign import LONG_TIMES, USUAL, long_bytes, measured

    wish = planned.wish
    nodes = max(layout.nodes for layout in planned.layouts)
    budget_s = measured(wish, planned.benchmarks, nodes) * wish.budget_ms / 1000
    long_s = LONG_TIMES * long_bytes(wish, planned.benchmarks) / USUAL
    launch_s = START_S + 1.5 * budget_s + long_s
    all_s = launch_s * (launches + len(planned.configurations) * len(planned.layouts))
    took = f"{all_s / 60:.0f} minutes" if all_s >= 90 else f"{all_s:.0f} seconds"
    return (
        f"estimate: about {took}, at {launch_s:.1f} s a launch; "
        "slow transports and many ranks take longer"
    )
