"""What a campaign would start, and the campaign files for known applications."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from mpigraft.bench import Campaign, Start, Step
    from mpigraft.core.model import CampaignRecord, Configuration, Look
    from mpigraft.knowledge import ApplicationCase


def print_cases(console: Console, cases: Mapping[str, ApplicationCase]) -> None:
    """Print a row for each application that has a campaign file."""
    from rich.table import Table

    table = Table("case", "what", "time in MPI", box=None, pad_edge=False)
    for name, case in cases.items():
        table.add_row(name, case.what, ", ".join(case.routines))
    console.print(table, "\nprint one with mpigraft case NAME > NAME.toml", sep="")


def campaign_plan_lines(
    planned: Campaign, made: int = 0, record: CampaignRecord | None = None
) -> list[str]:
    """Describe what would be started: one line per configuration, then the order of the first
    round. `record` is of a campaign that goes on, which has `made` launches in the store.

    Values of secrets are struck out: a configuration's id has its settings in it.
    """
    from mpigraft.analysis import campaign_looks
    from mpigraft.bench import campaign_record, schedule_launches
    from mpigraft.core import env
    from mpigraft.core.numbers import counted, size

    steps = schedule_launches(planned)
    spec = planned.spec
    spare = f", up to {spec.spare_rounds} spare ones" if spec.spare_rounds else ""
    lines = [
        f"{len(steps)} launches: {spec.rounds} rounds{spare}, seed {spec.seed}",
        *filter(None, [_planned_looks(campaign_looks(record or campaign_record(planned)))]),
        *([f"made until now: {counted(made, 'launch')}"] if made else []),
        _estimate(planned, max(0, len(steps) - made)),
        f"baseline: {planned.baseline.id}",
        "benchmarks: " + ", ".join(b.key for b in planned.benchmarks),
        f"sizes: {size(spec.min_size)} to {size(spec.max_size)}, {spec.budget_ms:g} ms each",
        f"limits: {', '.join([*spec.limits, f'{spec.limit_s:g}'])} s a launch",
        "layouts: " + ", ".join(layout.key for layout in planned.layouts),
    ]
    for configuration in planned.configurations:
        lines.append(f"configuration: {configuration.id}")
        mpi = configuration.mpi
        modules = [row for row in mpi.environment if row.source == "module"] if mpi else []
        for row in (*modules, *configuration.rows):
            value = "(dropped)" if row.value is None else row.value
            lines.append(f"    {row.scope}: {row.name}={value}  [{row.source}]")
        for start in planned.starts:
            if start.configuration.key == configuration.key:
                lines += _start_lines(planned, start, configuration)
    lines += [f"left out: {name}: {why}" for name, why in planned.skipped]
    first = [s for s in steps if s.round == 0]
    lines.append("first round: " + ", ".join(map(_launch, first)))
    return [env.redact(line) for line in lines]


def _start_lines(planned: Campaign, start: Start, configuration: Configuration) -> list[str]:
    """Describe a program of a suite: its command, and what its ranks need besides."""
    words = start.words(planned.spec, planned.suitable(start)[0])
    own = [r for r in start.configuration.environment if r not in configuration.environment]
    return [
        f"    {start.benchmark.key}: {shlex.join(words)}",
        *(f"        bound into the container: {bind.source}" for bind in start.binds),
        *(f"        {row.scope}: {row.name}={row.value}  [{row.source}]" for row in own),
    ]


def _launch(step: Step) -> str:
    tail = f" {step.program}" if step.program else ""
    return f"{step.configuration.id} {step.layout.key}{tail}"


def _planned_looks(looks: Sequence[Look]) -> str:
    """Describe the looks that are planned, in one line; empty for a campaign of a single one."""
    if len(looks) < 2:
        return ""
    rounds = ", ".join(str(look.rounds) for look in looks)
    return f"looks: after {rounds} rounds, p up to {_levels(looks)}"


def _levels(looks: Sequence[Look]) -> str:
    """Write `0.4, 0.22, 0.27 %`."""
    from mpigraft.core.numbers import percent

    return ", ".join(percent(look.level).removesuffix(" %") for look in looks) + " %"


def _estimate(planned: Campaign, launches: int) -> str:
    """Estimate how long it takes. Each pair of configuration and layout is proved by one launch
    more."""
    from mpigraft.core.numbers import node_hours

    all_s = planned.launch_s * (launches + len(planned.configurations) * len(planned.layouts))
    took = f"{all_s / 60:.0f} minutes" if all_s >= 90 else f"{all_s:.0f} seconds"
    took += f", {node_hours(all_s, max(layout.nodes for layout in planned.layouts))}"
    others = "; how long programs of other suites take is not known" if planned.starts else ""
    return (
        f"estimate: about {took}, at {planned.launch_s:.1f} s a launch; "
        f"slow transports and many ranks take longer{others}"
    )
