"""`mpigraft bench`: measure MPIs and transports side by side."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import Gpus, console, image_of, out, place, settings, tell
from mpigraft.cli.dry_run import plan_lines
from mpigraft.errors import UsageError
from mpigraft.natives import BENCHMARKS

if TYPE_CHECKING:
    from mpigraft.model import Allocation, CampaignRecord, Machine, Share
    from mpigraft.store import Store
    from mpigraft.wish import Wish

Words = list[str] | None
Numbers = list[int] | None
WHICH = (
    "One or more of " + ", ".join(BENCHMARKS) + "; options follow: alltoallv,counts=sparse. "
    "By default latency, bibw, allreduce, bw, bcast, alltoall."
)
HOSTS = "Nodes to use: n1,n[3-5]."
QUICK = "A first look in minutes: 6 rounds of latency, bibw and allreduce, 8 ms a size."
LIKE = "osu: time and average as OSU does, to hold figures beside published ones."
LOOKS = "Rounds after which curves are tested, and the campaign may end: 9,14,20."
PAIRS = "Latency and bandwidth between each two nodes; names the slow ones."


def command(
    ctx: typer.Context,
    campaign: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A campaign file (TOML), under the flags; with --resume an id or a name.",
            show_default=False,
        ),
    ] = "",
    mpi: Annotated[
        Words,
        typer.Option(metavar="NAME", help="An MPI: openmpi, mpich@5.0.2; may be given again."),
    ] = None,
    transport: Annotated[
        Words,
        typer.Option(metavar="NAME", help="A transport: ofi-lnx, ob1-sm; may be given again."),
    ] = None,
    benchmark: Annotated[Words, typer.Option(metavar="NAME", help=WHICH)] = None,
    layout: Annotated[
        Words,
        typer.Option(
            metavar="NODESxRANKS",
            help="2x8, 2x8x7:l3cache; may be given again. The flags below say its parts.",
            show_default="a pair of ranks, and every core",
        ),
    ] = None,
    on_nodes: Annotated[Numbers, place("nodes", again=True)] = None,
    per_node: Annotated[Numbers, place("ranks-per-node", again=True)] = None,
    threads: Annotated[Numbers, place("threads", again=True)] = None,
    map_by: Annotated[Words, place("map-by", again=True)] = None,
    bind_to: Annotated[Words, place("bind-to", again=True)] = None,
    gpus: Gpus = False,
    launcher: Annotated[
        Words,
        typer.Option(metavar="NAME", help="own, srun, flux, pals, aprun; may be given again."),
    ] = None,
    hosts: Annotated[
        str, typer.Option(metavar="LIST", help=HOSTS, show_default="the allocation, or this host")
    ] = "",
    hostfile: Annotated[
        str, typer.Option(metavar="FILE", help="The same, a name on each line.", show_default=False)
    ] = "",
    agent: Annotated[
        str, typer.Option(metavar="PROGRAM", help="Used in the place of ssh.", show_default=False)
    ] = "",
    modules: Annotated[
        Words,
        typer.Option(
            metavar="A,-B",
            help="MPIs as these modules bring them (-B is unloaded); may be given again.",
        ),
    ] = None,
    set_: Annotated[
        Words, typer.Option("--set", metavar="NAME=VALUE", help="In every rank's environment.")
    ] = None,
    image: Annotated[
        str | None,
        typer.Option(metavar="GUEST", help="A container: measure in it too, as it is and grafted."),
    ] = None,
    guest: Annotated[
        Words,
        typer.Option(
            metavar="WHERE",
            help="native, grafted, own (the image's MPI); may be given again.",
            show_default="all three with --image",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="That starts the container.", show_default="found"),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Fewer than 6 decide nothing.", show_default="10, with --quick 6"
        ),
    ] = None,
    looks: Annotated[str, typer.Option(metavar="N,N,N", help=LOOKS, show_default="none")] = "",
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the others are held against.")
    ] = None,
    buffers: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="host, cuda or rocm.", show_default="host"),
    ] = None,
    min_size: Annotated[
        str | None,
        typer.Option("--min", metavar="BYTES", help="Smallest message.", show_default="1"),
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option(
            "--max", metavar="BYTES", help="Largest message: 65536, 4GiB.", show_default="4MiB"
        ),
    ] = None,
    budget_ms: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="MS",
            help="Measured time per size.",
            show_default="20, with --quick 8",
        ),
    ] = None,
    limit_s: Annotated[
        float | None,
        typer.Option(
            "--limit",
            metavar="SECONDS",
            help="After which a launch counts as hung.",
            show_default="from sizes and budget",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Seed of the order.", show_default="drawn")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Of the campaign in the store.",
            show_default="bench or quick",
        ),
    ] = None,
    native_build: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="prebuilt, or mpicc to build the benchmarks here.",
            show_default="prebuilt",
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(metavar="SUITE", help=LIKE, show_default="itself"),
    ] = None,
    validate: Annotated[
        bool | None,
        typer.Option(
            "--validate/--no-validate",
            help="Check every received buffer.",
            show_default="validate",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help=QUICK)] = False,
    pairs: Annotated[bool, typer.Option("--pairs", help=PAIRS)] = False,
    here: Annotated[
        bool, typer.Option("--here", help="Measure on this login node all the same.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be started, start nothing.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Go on with a campaign, by default the last one; --rounds extends it."
        ),
    ] = False,
    share: Annotated[
        str,
        typer.Option(
            metavar="K/J",
            help="With --resume: the K-th of J jobs that share its rounds.",
            show_default="all",
        ),
    ] = "",
) -> None:
    """Measure MPIs and transports side by side, with proof of what ran.

    By default every MPI here over every transport that it can use; each round starts every
    configuration once, in random order, and the baseline twice.

    \b
    Examples:
      mpigraft bench --quick
      mpigraft bench --transport ofi-lnx --transport ob1-sm --rounds 20
      mpigraft bench --image app.sif --mpi openmpi --transport ob1-sm
      mpigraft bench --threads 1 --threads 7 --map-by l3cache
      mpigraft bench campaign.toml --dry-run
      mpigraft bench --resume night --rounds 24
    """
    from mpigraft.wish import Wish, given, merged, read_wish

    flags = {
        "name": name, "mpi": mpi, "transport": transport, "benchmark": benchmark,
        "layout": layout, "set": set_, "rounds": rounds, "baseline": baseline,
        "buffers": buffers, "min_size": min_size, "max_size": max_size,
        "budget_ms": budget_ms, "limit_s": limit_s, "seed": seed, "quick": quick or None,
        "native_build": native_build, "validate": validate, "image": image, "guest": guest,
        "engine": engine, "launcher": launcher, "modules": modules, "nodes": on_nodes,
        "ranks_per_node": per_node, "threads": threads, "map_by": map_by, "bind_to": bind_to,
        "gpus": gpus or None, "like": like, "looks": read_looks(looks),
    }  # fmt: skip
    file = read_wish(Path(campaign)) if campaign and not resume else Wish()
    wish = merged(file, flags)
    wish = replace(wish, image=image_of(wish.image)) if wish.image else wish
    if resume and (set(given(flags)) - {"rounds"} or pairs):
        raise UsageError(
            "--resume takes the campaign as it was planned: no other flags with it but --rounds"
        )
    if share and rounds is not None:
        raise UsageError(
            "--share with --rounds: a job measures its part of the rounds that are planned",
            mend="mpigraft submit --resume CAMPAIGN --rounds N extends a submitted campaign",
        )
    if share and not resume:
        raise UsageError(
            "--share without --resume: jobs share a campaign that each of them can name",
            mend="mpigraft submit CAMPAIGN.toml --allocations J writes such jobs",
        )
    part = read_share(share)
    if share and _nothing_left(ctx, campaign, part):
        return
    from mpigraft import allocations

    nodes = allocations.find(os.environ, hosts=hosts, hostfile=hostfile, agent=agent)
    if pairs:
        from mpigraft.pairs import between_all

        wish = between_all(wish, nodes.hosts)
    told = campaign if resume else None
    away = here or bool(hosts or hostfile)
    _bench(ctx, wish, nodes, here=away, dry_run=dry_run, resume=told, share=part)


def _bench(
    ctx: typer.Context,
    wish: Wish,
    nodes: Allocation,
    *,
    here: bool,
    dry_run: bool,
    resume: str | None,
    share: Share,
) -> None:
    from mpigraft import campaign, configure, discover, pipeline, submission
    from mpigraft.cli.compare import show
    from mpigraft.cli.progress import Progress
    from mpigraft.store import Store

    store = Store(settings(ctx).store)
    with console(stderr=True).status("looking at this machine"):
        machine = discover.machine()
    _refuse_login_node(machine, nodes, here)
    kept = None
    if resume is not None:
        agreed = submission.agreed(store, resume, machine, nodes)
        kept = agreed or _unfinished(store, resume)
        if wish.rounds:
            begun = len({launch.round for launch in store.launches(kept.id)})
            kept = campaign.extended(kept, wish.rounds, begun)
        planned = campaign.resumed(kept.plan, machine, configure.contents, nodes)
    else:
        planned = campaign.plan(wish, machine, configure.contents, nodes)
    if dry_run:
        made = len(store.launches(kept.id)) if kept else 0
        out("\n".join(plan_lines(planned, made, kept)))
        return
    try:
        with Progress() as progress:
            identity = pipeline.bench(planned, machine, store, progress, kept, nodes, share)
    except SystemExit:  # a signal: the end of a job, as a rule
        tell("mpigraft: told to end; what was measured is stored, and --resume goes on with it")
        raise
    show(store, identity)


def read_looks(text: str) -> list[int]:
    """`9,14,20` -> these numbers; none for an empty text. Raises UsageError."""
    words = text.split(",") if text else []
    if not all(re.fullmatch(r"\d{1,6}", word, re.ASCII) for word in words):
        raise UsageError(f"--looks {text!r} is no list of numbers", mend="as in 9,14,20")
    return [int(word) for word in words]


def read_share(text: str) -> Share:
    """`2/3` -> the second of three; all for an empty text. Raises UsageError."""
    from mpigraft.model import Share

    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text or "1/1", re.ASCII)
    number, of = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= of:
        raise UsageError(
            f"--share {text!r} is not K/J", mend="for example 2/3: the second of three"
        )
    return Share(number, of)


def _nothing_left(ctx: typer.Context, campaign: str, share: Share) -> bool:
    """Whether an earlier job of a chain has ended this share: said, before any look at a node."""
    from mpigraft import submission
    from mpigraft.store import Store

    found = submission.done(Store(settings(ctx).store), campaign, share)
    if found:
        tell(f"share {share} of {campaign[:8]} is done; nothing is left for this job")
    return found


def _unfinished(store: Store, wish: str) -> CampaignRecord:
    """The campaign to go on with: the one of that id or name, else the last that was run here."""
    from mpigraft.model import Origin

    kept = store.campaign(wish or None)
    if not wish:
        run = [c for c in store.campaigns() if c.origin is Origin.RUN]
        kept = run[-1] if run else kept
    if kept.origin is not Origin.RUN:
        raise UsageError(f"campaign {kept.name} was imported; there is nothing to go on with")
    return kept


def _refuse_login_node(machine: Machine, nodes: Allocation, here: bool) -> None:
    scheduler = machine.scheduler
    if scheduler is None or here:
        return
    if not scheduler.in_allocation:
        seen = f"{scheduler.name} runs this machine and this is not one of its allocations"
    elif nodes.scheduler == "slurm" and not _is_of(nodes, machine.hostname):  # salloc's shell
        seen = f"{machine.hostname} is none of the nodes of {nodes.source}"
    else:
        return
    raise UsageError(
        seen,
        why="a login node is another machine: other cores, other network, other people on it",
        mend="start it on a node of an allocation (srun --pty, or `mpigraft submit`), or say "
        "--here to measure this node",
    )


def _is_of(nodes: Allocation, hostname: str) -> bool:
    """Slurm says so to what it starts; else by name, since a node may have several."""
    short = hostname.partition(".")[0]
    known = {host.partition(".")[0] for host in nodes.hosts}
    return "SLURMD_NODENAME" in os.environ or short in known
