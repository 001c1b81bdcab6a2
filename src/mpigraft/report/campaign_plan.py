"""What a campaign would start, and the campaign files for known applications."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from mpigraft.core import env
from mpigraft.core.model import Level
from mpigraft.core.numbers import counted, duration, node_hours, size
from mpigraft.core.text import columns, join_some, labelled, printable
from mpigraft.report.screen import LINES, Screen, shorten
from mpigraft.report.table import Line

if TYPE_CHECKING:
    from rich.console import Console

    from mpigraft.bench import Campaign, Forecast, JobsPlan, Start, Step
    from mpigraft.core.model import CampaignRecord, Configuration, Look, SubmissionRecord
    from mpigraft.knowledge import ApplicationCase

NAMED = 10  # benchmarks and layouts that a line names
FIRST = "the first job to start plans the launches on its nodes"
IDLE = 4  # layouts that leave nodes idle and are named
WHYS = 6  # reasons for what is left out that have a line


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
    from mpigraft.bench import schedule_launches

    steps = schedule_launches(planned)
    spec = planned.spec
    took, but = _estimate(planned, len(steps) - made)
    lines = [
        f"{len(steps)} launches: {_rounds(planned)}, seed {spec.seed}",
        *_planned_looks(planned, record),
        *([f"made until now: {counted(made, 'launch')}"] if made else []),
        f"estimate: about {took}, at {planned.launch_s:.1f} s a launch; {but}",
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
        lines += _setting_lines(planned, configuration)
        for start in planned.starts:
            if start.configuration.key == configuration.key:
                lines += _start_lines(planned, start, configuration)
    lines += [f"left out: {name}: {why}" for name, why in planned.skipped]
    first = [s for s in steps if s.round == 0]
    lines.append("first round: " + ", ".join(map(_launch, first)))
    return [env.redact(line) for line in lines]


def _setting_lines(planned: Campaign, configuration: Configuration) -> Iterator[str]:
    """Yield the files and launcher options of a setting, and the states of its variables."""
    setting = configuration.setting
    if setting is None:
        return
    source = f"[setting {setting.name}]"
    for one in setting.files:
        yield f"    rank: {one.variable}=a copy of {one.path}  {source}"
    if setting.launcher:
        yield f"    launcher: {shlex.join(setting.launcher)}  {source}"
    for effect in planned.effects.get(configuration.key, ()):
        yield f"    {effect.variable}: {effect.state} ({effect.sign})"


def campaign_plan_screen(
    planned: Campaign, made: int = 0, record: CampaignRecord | None = None
) -> Screen:
    """Describe in one screen what would be started: launches, time, what is measured, the
    transports of each MPI, and why others are left out. Parameters are those of
    campaign_plan_lines."""
    from mpigraft.bench import schedule_launches

    spec, count = planned.spec, len(schedule_launches(planned))
    before = f", {made} of them before now" if made else ""
    took, but = _estimate(planned, count - made)
    names = [one.key.removeprefix("native:") for one in planned.benchmarks]
    layouts = join_some([layout.key for layout in planned.layouts], NAMED, ", ")
    answer = (
        f"{counted(count, 'launch')}{before}: {_compared(planned)}, {_rounds(planned)}.",
        f"About {took}; {but}.",
        f"Measured: {join_some(names, NAMED, ', ')}; {size(spec.min_size)} to "
        f"{size(spec.max_size)}; {'layout' if len(planned.layouts) == 1 else 'layouts'} {layouts}.",
    )
    findings = [*_planned_looks(planned, record), *_left_out(planned.skipped)]
    return Screen(
        [printable(env.redact(line)) for line in answer],
        _transports(one.id for one in planned.configurations),
        [(Level.INFO, printable(env.redact(line))) for line in findings],
        ["--full: every setting and command, what is left out, the order of launches"],
    )


def forecast_lines(forecast: Forecast) -> Iterator[str]:
    """Describe what the jobs of a submission will do: which of their nodes idle, and what they
    launch; where that is not known, how to know it."""
    partition, how = forecast.partition, forecast.how
    yield from idle_lines(forecast.record.nodes, forecast.idle)
    described = f"nodes of {partition} as described on {forecast.day}"
    if forecast.made is not None:
        yield f"its launches are planned; {counted(forecast.made, 'launch')} made before now"
    elif forecast.problem:
        yield f"{forecast.problem}; write it again: {how}"
    elif forecast.plan:
        yield f"on {described}:"
        yield from _jobs_plan_lines(forecast.plan, forecast.record, forecast.links)
    elif forecast.error and forecast.unchecked:
        yield f"{FIRST}, since not all MPIs of {described} are on this host:"
        yield forecast.error.message
    elif forecast.error:
        yield f"no plan for {described}, with programs of this host; if nodes changed since: {how}"
    else:
        before = f"name one of {partition}" if "," in partition else how
        yield f"{FIRST}; to know them before: {before}"


def idle_lines(nodes: int, idle: Sequence[tuple[str, int]]) -> Iterator[str]:
    """Name the layouts that leave some of the `nodes` of a job idle, in one line."""
    some = [f"{what} leaves {nodes - used} of {nodes} nodes idle" for what, used in idle]
    if some:
        yield join_some(some, IDLE, "; ")


def _jobs_plan_lines(plan: JobsPlan, record: SubmissionRecord, links: int) -> Iterator[str]:
    """Name the launches, whether the jobs have the time for them, and which of the transports that
    were named are left out."""
    planned, limit_s = plan.campaign, links * record.limit_s
    what = printable(env.redact(_compared(planned)))
    yield f"{counted(plan.launches, 'launch')} at most: {what}, {_rounds(planned)}"
    each = " for each share" if record.shares > 1 else ""
    if plan.time_s <= record.limit_s:
        took = f"about {duration(plan.share_s)} of {duration(limit_s)}{each}"
    else:
        fix = f"--chain {plan.chain}" if plan.chain else f"--time {math.ceil(plan.time_s / 60)}m"
        took = f"about {duration(plan.share_s)}{each}, more than {duration(limit_s)}: use {fix}"
    yield f"{took}; {_caveat(planned)}"
    if planned.spec.transport:
        yield from (printable(env.redact(line)) for line in _left_out(planned.skipped))
    elif planned.skipped:
        yield f"left out there: {counted(len(planned.skipped), 'configuration')}"


def _compared(planned: Campaign) -> str:
    arms, baseline = counted(len(planned.configurations), "configuration"), planned.baseline.id
    return f"{arms} against {baseline}" if len(planned.configurations) > 1 else f"{baseline} alone"


def _rounds(planned: Campaign) -> str:
    spec = planned.spec
    spare = f", up to {spec.spare_rounds} spare ones" if spec.spare_rounds else ""
    return counted(spec.rounds, "round") + spare


def _transports(names: Iterable[str]) -> list[Line]:
    """List the transports of each MPI."""
    transports: dict[str, list[str]] = {}
    for name in names:
        mpi, _, transport = env.redact(name).partition("/")
        transports.setdefault(mpi, []).append(transport)
    wide = max(map(len, transports)) + 2
    texts = [
        line
        for mpi, some in transports.items()
        for line in labelled(printable(mpi), ", ".join(some), column=wide)
    ]
    more = [f"and {len(texts) - LINES + 2} more lines: --full"] if len(texts) >= LINES else []
    head: Line = [(f"{'MPI':{wide}}transports", "dim")]
    return [head, *([(text, "")] for text in [*texts[: LINES - 2 if more else None], *more])]


def _left_out(skipped: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Count what is left out by reason, the most frequent first; name what is alone."""
    names: dict[str, list[str]] = {}
    for name, why in skipped:
        names.setdefault(why.partition("\n")[0], []).append(name)
    if not names:
        return
    yield f"left out: {counted(len(skipped), 'configuration')}, for these reasons:"
    order = sorted(names, key=lambda why: -len(names[why]))
    for why in order[:WHYS]:
        what = names[why][0] if len(names[why]) == 1 else str(len(names[why]))
        yield shorten(f"  {what}: {why}", columns())
    if rest := order[WHYS:]:
        count = sum(len(names[why]) for why in rest)
        yield f"  {count}: for {counted(len(rest), 'other reason')}"


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


def _planned_looks(planned: Campaign, record: CampaignRecord | None) -> Iterator[str]:
    """Describe the looks that are planned, in one line; none for a campaign of a single one."""
    from mpigraft.analysis import campaign_looks
    from mpigraft.bench import campaign_record

    looks = campaign_looks(record or campaign_record(planned))
    if len(looks) > 1:
        rounds = ", ".join(str(look.rounds) for look in looks)
        yield f"looks: curves are tested after {rounds} rounds, and called up to p {_levels(looks)}"


def _levels(looks: Sequence[Look]) -> str:
    """Write `0.4, 0.22, 0.27 %`."""
    from mpigraft.core.numbers import percent

    return ", ".join(percent(look.level).removesuffix(" %") for look in looks) + " %"


def _estimate(planned: Campaign, launches: int) -> tuple[str, str]:
    """Say how long so many launches and the proofs take, and how that may be wrong."""
    all_s = planned.launch_s * max(0, launches) + planned.proofs_s
    hours = node_hours(all_s, max(layout.nodes for layout in planned.layouts))
    return f"{duration(all_s)}, {hours}", _caveat(planned)


def _caveat(planned: Campaign) -> str:
    others = "; how long programs of other suites take is not known" if planned.starts else ""
    return f"slow transports and many ranks take longer{others}"
