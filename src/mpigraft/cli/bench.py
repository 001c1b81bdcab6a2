"""`mpigraft bench`: measure MPIs and transports side by side."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import (
    DryRun,
    IgnoreLock,
    Wait,
    examine_machine,
    find_nodes,
    flag,
    image_of,
    option,
    out,
    settings,
    tell,
    tell_unread,
    wait_for_others,
)
from mpigraft.cli.dry_run import benchmark_lines, nodes_of_job
from mpigraft.cli.options import (
    Agent,
    Binds,
    Engine,
    EngineOptions,
    Environment,
    Gpus,
    Hostfile,
    Hosts,
    layout_option,
)
from mpigraft.core.errors import UsageError
from mpigraft.core.hostnames import same_host

if TYPE_CHECKING:
    from mpigraft.core.model import Allocation, CampaignRecord, Machine, Shard
    from mpigraft.request import CampaignSpec
    from mpigraft.store import Store

Words = list[str] | None
Numbers = list[int] | None
OSU = "Build or installation of the OSU benchmarks, for osu:NAME; repeatable."
IMB = "Folder with the Intel MPI Benchmarks, for imb:NAME; repeatable."
APP = "Application as app:NAME: command, figure, unit, better as in [app.NAME]; repeatable."
LIST = "List every benchmark that can be named, and end."
LIMITS = "The same for a suite or a benchmark: osu=300, osu:alltoall=900; repeatable."
QUICK = "Measure for a few minutes: 6 rounds of latency, bibw and allreduce, 8 ms a size."
LIKE = "osu: time and average as the OSU benchmarks do, to compare with published figures."
LOOKS = "Test the curves after these rounds, and stop early once all are decided: 9,14,20."
AGAIN = "Repeat a campaign with the MPIs of today; options override what it requested."
PAIRS = "Measure latency and bandwidth between every two nodes; name the slow nodes and links."


def command(
    ctx: typer.Context,
    campaign: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Campaign file (TOML), which options override; with --resume or --again a "
            "campaign's id or name.",
            show_default=False,
        ),
    ] = "",
    mpi: Annotated[
        Words, option("NAME", "MPI to measure: openmpi, mpich@5, a path; repeatable.", "all")
    ] = None,
    transport: Annotated[
        Words, option("NAME", "Transport to use: ofi-lnx, ob1-sm; repeatable.", "all that run here")
    ] = None,
    benchmark: Annotated[
        Words,
        option(
            "NAME",
            "Benchmark to run; repeatable. Options follow a comma: alltoallv,counts=sparse. "
            "--list prints all; of other suites: osu:NAME, imb:NAME, mini:NAME, app:NAME.",
            "latency, bibw, allreduce, bw, bcast, alltoall",
        ),
    ] = None,
    osu: Annotated[Words, option("PATH", OSU, "those in PATH or of a module")] = None,
    imb: Annotated[Words, option("PATH", IMB, "Intel MPI's")] = None,
    matrix: Annotated[
        str | None, option("FILE", "Matrix Market file for mini:dirac.", "a lattice")
    ] = None,
    app: Annotated[Words, option("NAME={...}", APP)] = None,
    layout: Annotated[
        Words,
        option(
            "NODESxRANKS",
            "Layout of ranks: 2x8, 2x8x7:l3cache; repeatable. Or give its parts, as below.",
            "a pair of ranks, and every core",
        ),
    ] = None,
    nodes: Annotated[Numbers, layout_option("nodes", repeatable=True)] = None,
    ranks_per_node: Annotated[Numbers, layout_option("ranks_per_node", repeatable=True)] = None,
    threads: Annotated[Numbers, layout_option("threads", "1", repeatable=True)] = None,
    map_by: Annotated[Words, layout_option("map_by", repeatable=True)] = None,
    bind_to: Annotated[Words, layout_option("bind_to", repeatable=True)] = None,
    gpus: Gpus = False,
    launcher: Annotated[
        Words,
        option("NAME", "Launcher to use: own (the MPI's), srun, flux, pals, aprun; repeatable."),
    ] = None,
    hosts: Hosts = "",
    hostfile: Hostfile = "",
    agent: Agent = "",
    modules: Annotated[
        Words,
        option("A,-B", "Measure the MPIs that these modules provide (-B unloads B); repeatable."),
    ] = None,
    env: Environment = None,
    image: Annotated[
        str | None, option("GUEST", "Container: measure in it too, with its own MPI and grafted.")
    ] = None,
    stack: Annotated[
        str | None,
        option(
            "STACK",
            "Software stack, or one program of it: measure in it too, with its own MPI and "
            "the injected one.",
        ),
    ] = None,
    guest: Annotated[
        Words,
        option(
            "WHERE",
            "Where to measure: native, grafted (in a stack: injected), container (on the "
            "guest's own MPI); repeatable.",
            "all three with --image or --stack",
        ),
    ] = None,
    engine: Engine = None,
    engine_options: EngineOptions = None,
    bind: Binds = None,
    rounds: Annotated[
        int | None,
        option("N", "Rounds to measure; fewer than 6 decide nothing.", "10, with --quick 6"),
    ] = None,
    looks: Annotated[str, option("N,N,N", LOOKS, "none")] = "",
    baseline: Annotated[
        str | None, option("NAME", "Configuration to compare the others with.")
    ] = None,
    buffers: Annotated[
        str | None, option("KIND", "Memory of messages: host, cuda or rocm.", "host")
    ] = None,
    min_size: Annotated[str | None, option("BYTES", "Smallest message.", "1", "--min")] = None,
    max_size: Annotated[
        str | None, option("BYTES", "Largest message: 65536, 4GiB.", "4MiB", "--max")
    ] = None,
    budget_ms: Annotated[
        float | None,
        option(
            "MS", "Measure each size for this many milliseconds.", "20, with --quick 8", "--budget"
        ),
    ] = None,
    limit_s: Annotated[
        float | None,
        option(
            "SECONDS", "Kill a launch after this many seconds.", "from sizes and budget", "--limit"
        ),
    ] = None,
    limits: Annotated[Words, option("NAME=SECONDS", LIMITS, "none", "--limit-of")] = None,
    seed: Annotated[int | None, option("N", "Seed of the random order.", "random")] = None,
    name: Annotated[
        str | None, option("NAME", "Name of the campaign in the store.", "bench or quick")
    ] = None,
    native_build: Annotated[
        str | None,
        option(
            "HOW",
            "prebuilt: use the benchmarks of this package; mpicc: build them here.",
            "prebuilt",
        ),
    ] = None,
    like: Annotated[str | None, option("SUITE", LIKE, "none")] = None,
    validate: Annotated[
        bool | None,
        option("", "Check every received buffer.", "validate", "--validate/--no-validate"),
    ] = None,
    quick: Annotated[bool, flag(QUICK, "--quick")] = False,
    pairs: Annotated[bool, flag(PAIRS, "--pairs")] = False,
    here: Annotated[
        bool, flag("Measure on this node even if it is a login node.", "--here")
    ] = False,
    list_: Annotated[bool, flag(LIST, "--list")] = False,
    dry_run: DryRun = False,
    resume: Annotated[
        bool, flag("Continue a campaign, by default the last; --rounds extends it.", "--resume")
    ] = False,
    again: Annotated[bool, flag(AGAIN, "--again")] = False,
    wait: Wait = False,
    ignore_lock: IgnoreLock = False,
    share: Annotated[
        str, option("K/J", "With --resume: measure only the K-th of J shares of the rounds.", "all")
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
    options = locals()
    from mpigraft.cli.option_texts import read_looks, read_share
    from mpigraft.request import CampaignSpec, given_fields, merge_specs, read_site, read_spec
    from mpigraft.store import Store

    names = {field.name for field in fields(CampaignSpec)}
    given = {name: value for name, value in options.items() if name in names}
    given |= {"quick": quick or None, "gpus": gpus or None, "looks": read_looks(looks)}
    if resume and again:
        raise UsageError.of("resume-excludes")
    repeats = ""
    if again:
        file, repeats = _repeated(Store(settings(ctx).store), campaign)
    else:
        file = read_spec(Path(campaign)) if campaign and not resume else CampaignSpec()
    spec = read_site(os.environ).with_defaults(merge_specs(file, given))
    spec = _with_guest(spec)
    if list_:
        out("\n".join(benchmark_lines(spec)))
        return
    if resume and (set(given_fields(given)) - {"rounds"} or pairs):
        raise UsageError.of("resume-excludes")
    if share and rounds is not None:
        raise UsageError.of("share-excludes-rounds")
    if share and not resume:
        raise UsageError.of("share-needs-resume")
    part = read_share(share)
    if share and _share_is_done(ctx, campaign, part):
        return
    allocation = find_nodes(hosts, hostfile, agent)
    if pairs:
        from mpigraft.bench import pairing_spec

        spec = pairing_spec(spec, allocation.hosts)
    here = here or bool(hosts or hostfile)
    task = Task(spec, allocation, campaign if resume else None, part, here, dry_run, repeats)
    task = replace(task, wait=wait, locked=not ignore_lock)
    store = Store(settings(ctx).store)
    if identity := measure(store, task):
        _show(store, identity, repeats)


@dataclass(frozen=True, slots=True)
class Task:
    """What one call of `bench` does."""

    spec: CampaignSpec
    allocation: Allocation
    resume: str | None  # id or name of a campaign to continue; empty: the last
    share: Shard
    here: bool  # whether a login node may be measured
    dry_run: bool
    repeats: str = ""  # id of the campaign that this one repeats
    deadline: float = math.inf  # of time.monotonic(): nothing is started after it
    apart: bool = False  # no baseline is needed: each configuration is compared with that of then
    wait: bool = False  # for another campaign on these nodes to end
    locked: bool = True  # whether it keeps others off, and they it


def _repeated(store: Store, name: str) -> tuple[CampaignSpec, str]:
    """Return what was requested of a campaign (id or name; the latest without one), and its id."""
    from mpigraft.bench import repeated_spec

    record = store.campaign(name or None, planned=True)
    return repeated_spec(record), record.id


def _show(store: Store, identity: str, repeats: str) -> None:
    from mpigraft.cli.compare import show

    show(store, identity)
    if repeats:
        out(f"\nwhat changed since: mpigraft compare {repeats[:8]} {identity[:8]}")


def measure(store: Store, task: Task) -> str:
    """Run a campaign, or what is left of one, and return its id; empty for a dry run, which prints
    what would be started."""
    from mpigraft.bench import (
        JobPart,
        agreed_campaign,
        extend_campaign,
        plan_campaign,
        resume_campaign,
        run_campaign,
    )
    from mpigraft.cli.progress import Progress
    from mpigraft.selection import library_digests

    machine = examine_machine()
    try:
        _refuse_login_node(machine, task.allocation, task.here)
    except UsageError as login:
        if not task.dry_run:
            raise
        task = replace(task, allocation=nodes_of_job(task.spec, task.allocation, login.message))
    record = None
    if task.resume is not None:
        record = agreed_campaign(store, task.resume, machine, task.allocation)
        record = record or _unfinished(store, task.resume)
        if task.spec.rounds:
            begun = len({launch.round for launch in store.launches(record.id)})
            record = extend_campaign(record, task.spec.rounds, begun)
        campaign = resume_campaign(record.plan, machine, library_digests, task.allocation)
    else:
        campaign = plan_campaign(task.spec, machine, library_digests, task.allocation)
        campaign = replace(campaign, repeats=task.repeats, deadline=task.deadline, apart=task.apart)
    if task.dry_run:
        made = len(store.launches(record.id)) if record else 0
        from mpigraft.report import campaign_plan_lines

        out("\n".join(campaign_plan_lines(campaign, made, record)))
        return ""
    campaign = replace(campaign, locked=task.locked)
    if task.wait:
        campaign = replace(campaign, deadline=task.deadline + wait_for_others(task.allocation))
    try:
        progress = Progress()
        with progress.bar:
            part = JobPart(task.allocation, task.share)
            return run_campaign(campaign, machine, store, progress, record, part)
    except SystemExit:  # a signal: the end of a job, as a rule
        tell("mpigraft: stopped by a signal; what was measured is stored, and --resume continues")
        raise


def _with_guest(spec: CampaignSpec) -> CampaignSpec:
    """Return the spec with its guest's own name. Raises UsageError for two guests."""
    if spec.stack and spec.image:
        raise UsageError.of("stack-and-image")
    return replace(spec, image=image_of(spec.image)) if spec.image else spec


def _share_is_done(ctx: typer.Context, campaign: str, share: Shard) -> bool:
    """Say whether an earlier job of a chain has ended this share, before looking at any node."""
    from mpigraft.bench import share_done
    from mpigraft.store import Store

    done = share_done(Store(settings(ctx).store), campaign, share)
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
