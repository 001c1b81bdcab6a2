"""`mpigraft bench`: measure MPIs and transports side by side."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import (
    DryRun,
    Full,
    IgnoreLock,
    Wait,
    console,
    examine_machine,
    find_nodes,
    flag,
    image_of,
    option,
    out,
    refuse_unknown_engine,
    store_of,
    tell,
    tell_limits,
    tell_unread,
    wait_for_others,
)
from mpigraft.cli.options import Here, Hostfile, Hosts, SshCommand, takes_request
from mpigraft.core.errors import UsageError
from mpigraft.core.hostnames import same_host
from mpigraft.request import Asked, CampaignSpec, asked_campaign

if TYPE_CHECKING:
    from mpigraft.bench import Campaign, JobPart
    from mpigraft.core.model import Allocation, CampaignRecord, Machine, Shard
    from mpigraft.evidence import Limit
    from mpigraft.store import Store

LIST = "List every benchmark that can be named, and end."
AGAIN = "Repeat a campaign with the MPIs of today; options override what it requested."
RESUME = "Continue a campaign, by default the last; --rounds extends it."
PAIRS = "Measure latency and bandwidth between every two nodes; name the slow nodes and links."


@takes_request(read=asked_campaign, after={"launcher": ("hosts", "hostfile", "ssh_command")})
def command(
    *,
    ctx: typer.Context,
    campaign: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Campaign file (TOML), which options override. With --resume or --again a "
            "campaign's id or name.",
            show_default=False,
        ),
    ] = "",
    asked: Asked[CampaignSpec],
    hosts: Hosts = "",
    hostfile: Hostfile = "",
    ssh_command: SshCommand = "",
    pairs: Annotated[bool, flag(PAIRS, "--pairs", panel="What to measure", rare=True)] = False,
    here: Here = False,
    list_: Annotated[bool, flag(LIST, "--list", panel="Output")] = False,
    dry_run: DryRun = False,
    full: Full = False,
    resume: Annotated[bool, flag(RESUME, "--resume", panel="How long", rare=True)] = False,
    again: Annotated[bool, flag(AGAIN, "--again", panel="What to measure", rare=True)] = False,
    wait: Wait = False,
    ignore_lock: IgnoreLock = False,
    share: Annotated[
        str,
        option(
            "K/J",
            "With --resume: measure only the K-th of J shares of the rounds.",
            "all",
            panel="How long",
            rare=True,
        ),
    ] = "",
) -> None:
    """Measure MPIs and transports side by side, with proof of what ran.

    Without options, measure every MPI here over every transport that it can use. Each round
    starts every configuration once, in random order, and the baseline twice.

    \b
    Examples:
      mpigraft bench --quick
      mpigraft bench --transport ofi-lnx --transport ob1-sm --rounds 20
      mpigraft bench --image app.sif --mpi openmpi --transport ob1-sm
      mpigraft bench --stack /opt/stack --mpi openmpi@5 --transport ofi-lnx
      mpigraft bench --benchmark latency,osu:bw,imb:PingPong --osu /opt/osu
      mpigraft bench --app 'md={command="./md", figure="t: (.+)", better="lower"}'
      mpigraft bench --threads 1 --threads 7 --map-by l3cache
      mpigraft bench campaign.toml --dry-run
      mpigraft bench --resume night --rounds 24
      mpigraft bench --again before-update --name after-update
    """
    from mpigraft.bench import JobPart, benchmark_names, pairing_spec
    from mpigraft.core.model import Shard
    from mpigraft.request import override_spec, read_site, read_spec

    if resume and again:
        raise UsageError.of("resume-excludes")
    store = store_of(ctx)
    file, repeats = CampaignSpec(), ""
    if again:
        file, repeats = _repeated(store, campaign)
    elif campaign and not resume:
        file = read_spec(Path(campaign))
    spec = _with_guest(read_site(os.environ).with_defaults(override_spec(file, asked)))
    if list_:
        out("\n".join(benchmark_names(spec)))
        return
    if resume and (asked.given - {"rounds"} or pairs):
        raise UsageError.of("resume-excludes")
    if share and "rounds" in asked.given:
        raise UsageError.of("share-excludes-rounds")
    if share and not resume:
        raise UsageError.of("share-needs-resume")
    shard = read_share(share) if share else Shard()
    if share and _share_is_done(store, campaign, shard):
        return
    allocation = find_nodes(hosts, hostfile, ssh_command)
    spec = pairing_spec(spec, allocation.hosts) if pairs else spec
    task = Task(
        spec=spec,
        part=JobPart(allocation, shard, locked=not ignore_lock),
        resume=campaign if resume else None,
        here=here or bool(hosts or hostfile),
        dry_run=dry_run,
        full=full,
        repeats=repeats,
        wait=wait,
    )
    if identity := measure(store, task):
        _show(store, identity, task)


def read_share(text: str) -> Shard:
    """Read `2/3`, the second of three. Raises UsageError."""
    from mpigraft.core.model import Shard

    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text, re.ASCII)
    number, of = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= of:
        raise UsageError.of("share-invalid", text=text)
    return Shard(number, of)


@dataclass(frozen=True, slots=True)
class Task:
    """What one call of `bench` does."""

    spec: CampaignSpec
    part: JobPart
    here: bool  # whether a login node may be measured
    dry_run: bool
    full: bool = False  # print all, not one screen
    resume: str | None = None  # id or name of a campaign to continue; empty: the last
    repeats: str = ""  # id of the campaign that this one repeats
    wait: bool = False  # for another campaign on these nodes to end


def _repeated(store: Store, name: str) -> tuple[CampaignSpec, str]:
    """Return what was requested of a campaign (id or name; the latest without one), and its id."""
    from mpigraft.bench import repeated_spec

    record = store.campaign(name or None, planned=True)
    return repeated_spec(record), record.id


def _show(store: Store, identity: str, task: Task) -> None:
    from mpigraft.cli.compare import show

    show(store, identity, full=task.full)
    if repeats := task.repeats:
        out(f"\nwhat changed since: mpigraft compare {repeats[:8]} {identity[:8]}")


def measure(store: Store, task: Task) -> str:
    """Run a campaign, or what is left of one, and return its id; empty for a dry run, which prints
    what would be started."""
    from mpigraft.bench import (
        agreed_campaign,
        extend_campaign,
        plan_campaign,
        resume_campaign,
        run_campaign,
        with_effects,
    )
    from mpigraft.cli.progress import Progress
    from mpigraft.selection import library_digests
    from mpigraft.store import refuse_unwritable

    if task.dry_run:
        refuse_unwritable(store.folder)
    machine, nodes = examine_machine(), task.part.nodes
    try:
        _refuse_login_node(machine, nodes, task.here)
    except UsageError as login:
        if not task.dry_run:
            raise
        nodes = _nodes_of_job(task.spec, nodes, login.message)
    record = None
    if task.resume is not None:
        record = agreed_campaign(store, task.resume, machine, nodes)
        record = record or _unfinished(store, task.resume)
        if task.spec.rounds:
            begun = len({launch.round for launch in store.launches(record.id)})
            record = extend_campaign(record, task.spec.rounds, begun)
        campaign = resume_campaign(record.plan, machine, library_digests, nodes)
    else:
        campaign = plan_campaign(task.spec, machine, library_digests, nodes, task.repeats)
    campaign = with_effects(campaign)
    tell_limits(_limits(campaign, machine), nodes)
    if task.dry_run:
        made = len(store.launches(record.id)) if record else 0
        from mpigraft.report import campaign_plan_lines, campaign_plan_screen, print_screen

        if task.full:
            out("\n".join(campaign_plan_lines(campaign, made, record)))
        else:
            print_screen(campaign_plan_screen(campaign, made, record), console())
        return ""
    waited = wait_for_others(nodes) if task.wait else 0.0
    part = replace(task.part, nodes=nodes, deadline=task.part.deadline + waited)
    try:
        progress = Progress()
        with progress.bar:
            return run_campaign(campaign, machine, store, progress, record, part)
    except SystemExit:  # a signal: the end of a job, as a rule
        tell("mpigraft: stopped by a signal; what was measured is stored, and --resume continues")
        raise


def _limits(campaign: Campaign, machine: Machine) -> Iterator[Limit]:
    """Yield the limits of this node for each configuration on each layout."""
    from mpigraft.evidence import launch_limits

    for one, layout in product(campaign.configurations, campaign.layouts):
        if one.mpi is not None:
            yield from launch_limits(one.mpi, layout, machine, one.rows)


def _nodes_of_job(spec: CampaignSpec, nodes: Allocation, login: str) -> Allocation:
    """For a plan on a login node: as many nodes like it as the layouts need. Tells so."""
    from mpigraft.core.model import MAX_COUNT, parse_layout
    from mpigraft.core.numbers import counted

    counts = [*spec.nodes, *(parse_layout(text, MAX_COUNT**2).nodes for text in spec.layout)]
    if nodes.here and (most := max(counts, default=1)) > 1:
        others = (f"node{number}" for number in range(2, most + 1))
        nodes = replace(nodes, hosts=(*nodes.hosts, *others), source="a job", here=False)
    like = counted(len(nodes.hosts), "node")
    tell(f"{login}: the plan is for {like} like it, and jobs plan on their own nodes")
    return nodes


def _with_guest(spec: CampaignSpec) -> CampaignSpec:
    """Return the spec with its guest's own name. Raises UsageError for two guests."""
    if spec.stack and spec.image:
        raise UsageError.of("stack-and-image")
    refuse_unknown_engine(spec.engine)
    return replace(spec, image=image_of(spec.image)) if spec.image else spec


def _share_is_done(store: Store, campaign: str, share: Shard) -> bool:
    """Say whether an earlier job of a chain has ended this share, before looking at any node."""
    from mpigraft.bench import share_done

    done = share_done(store, campaign, share)
    if done:
        tell(f"share {share} of {campaign[:8]} is done; this job has nothing to do")
    return done


def _unfinished(store: Store, name: str) -> CampaignRecord:
    """Find the campaign to continue: of that id or name, else the last that was run here."""
    from mpigraft.core.model import Origin

    record = store.campaign(name or None, planned=True)
    if not name:
        own = [c for c in store.campaigns() if c.origin is Origin.RUN]
        record = own[-1] if own else record
    tell_unread(store)
    if record.origin is not Origin.RUN or "wish" not in json.loads(record.plan):
        raise UsageError.of("campaign-imported", name=record.name)
    return record


def _refuse_login_node(machine: Machine, nodes: Allocation, here: bool) -> None:
    scheduler = machine.scheduler
    if scheduler is None or here:
        return
    if not scheduler.in_allocation:
        place = f"this node belongs to {scheduler.name} but to none of its allocations"
    elif nodes.scheduler == "slurm" and not _is_of(nodes, machine.hostname):  # salloc's shell
        place = f"{machine.hostname} is not one of the nodes of {nodes.source}"
    else:
        return
    raise UsageError.of("login-node", place=place)


def _is_of(nodes: Allocation, hostname: str) -> bool:
    """Return whether this host is a node of the allocation: as Slurm says to what it starts, else
    by its name, since a node may have several."""
    known = any(same_host(hostname, host) for host in nodes.hosts)
    return "SLURMD_NODENAME" in os.environ or known
