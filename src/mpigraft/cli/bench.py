"""`mpigraft bench`: measure MPIs and transports side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import console, out, settings
from mpigraft.errors import UsageError

if TYPE_CHECKING:
    from mpigraft.campaign import Campaign
    from mpigraft.model import CampaignRecord, Machine
    from mpigraft.store import Store
    from mpigraft.wish import Wish

Words = list[str] | None
START_S = 2.0  # of a small launch on one node, from mpiexec to MPI_Finalize


def command(
    ctx: typer.Context,
    campaign: Annotated[
        str,
        typer.Argument(
            help="A campaign file (TOML), under the flags; with --resume an id or a name."
        ),
    ] = "",
    mpi: Annotated[
        Words, typer.Option(help="An MPI: openmpi, mpich@5.0.2; may be given again.")
    ] = None,
    transport: Annotated[
        Words, typer.Option(help="A transport: ofi-lnx, ob1-sm, shm; may be given again.")
    ] = None,
    benchmark: Annotated[
        Words, typer.Option(help="latency, bibw, alltoallv,counts=sparse, ...")
    ] = None,
    layout: Annotated[Words, typer.Option(help="NODESxRANKS, for example 1x2.")] = None,
    set_: Annotated[
        Words, typer.Option("--set", help="NAME=VALUE in every rank's environment.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Rounds; fewer than 6 decide nothing.")] = 0,
    baseline: Annotated[str, typer.Option(help="What the others are held against.")] = "",
    buffers: Annotated[str, typer.Option(help="host, cuda or rocm.")] = "",
    min_size: Annotated[int, typer.Option("--min", help="Smallest message, bytes.")] = 0,
    max_size: Annotated[int, typer.Option("--max", help="Largest message, bytes.")] = 0,
    budget_ms: Annotated[
        float, typer.Option("--budget", help="Measured milliseconds per size.")
    ] = 0.0,
    limit_s: Annotated[float, typer.Option("--limit", help="Seconds before a launch is hung.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the order; 0 draws one.")] = 0,
    name: Annotated[str, typer.Option(help="Name of the campaign in the store.")] = "",
    native_build: Annotated[
        str, typer.Option(help="prebuilt, or mpicc to build the benchmarks here.")
    ] = "",
    validate: Annotated[
        bool, typer.Option("--validate/--no-validate", help="Check every received buffer.")
    ] = True,
    quick: Annotated[bool, typer.Option("--quick", help="A first look in minutes.")] = False,
    here: Annotated[
        bool, typer.Option("--here", help="Measure on this login node all the same.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be started, start nothing.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a campaign, by default the last one.")
    ] = False,
) -> None:
    """Measure MPIs and transports side by side, with proof of what ran.

    By default every MPI here over every transport that it can use; each round starts every
    configuration once, in random order, and the baseline twice.

    \b
    Examples:
      mpigraft bench --quick
      mpigraft bench --mpi openmpi --transport ofi-lnx --transport ob1-sm --rounds 20
      mpigraft bench campaign.toml --dry-run
      mpigraft bench --resume
    """
    from mpigraft.wish import Wish, merged, read_wish

    flags = {
        "name": name, "mpi": mpi, "transport": transport, "benchmark": benchmark,
        "layout": layout, "set": set_, "rounds": rounds, "baseline": baseline,
        "buffers": buffers, "min_size": min_size, "max_size": max_size,
        "budget_ms": budget_ms, "limit_s": limit_s, "seed": seed, "quick": quick,
        "native_build": native_build, "validate": validate,
    }  # fmt: skip
    file = read_wish(Path(campaign)) if campaign and not resume else Wish()
    wish = merged(file, flags)
    if resume and wish != Wish():
        raise UsageError("--resume takes the campaign as it was planned: no other flags with it")
    _bench(ctx, wish, here=here, dry_run=dry_run, resume=campaign if resume else None)


def _bench(
    ctx: typer.Context, wish: Wish, *, here: bool, dry_run: bool, resume: str | None
) -> None:
    from mpigraft import campaign, discover, pipeline
    from mpigraft.cli.compare import show
    from mpigraft.cli.progress import Progress
    from mpigraft.store import Store

    store = Store(settings(ctx).store)
    with console(stderr=True).status("looking at this machine"):
        machine = discover.machine()
    _refuse_login_node(machine, here)
    identity = ""
    if resume is not None:
        kept = _unfinished(store, resume)
        identity = kept.id
        planned = campaign.resumed(kept.plan, machine)
    else:
        planned = campaign.plan(wish, machine)
    if dry_run:
        out("\n".join(plan_lines(planned)))
        return
    with Progress() as progress:
        identity = pipeline.bench(planned, machine, store, progress, identity)
    show(store, identity)


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


def _refuse_login_node(machine: Machine, here: bool) -> None:
    scheduler = machine.scheduler
    if scheduler is None or scheduler.in_allocation or here:
        return
    raise UsageError(
        f"{scheduler.name} runs this machine and this is not one of its allocations",
        why="a login node is another machine: other cores, other network, other people on it",
        mend="start an allocation and run it there, or say --here to measure this node",
    )


def plan_lines(planned: Campaign) -> list[str]:
    """What would be started: one line per configuration, then the order of the first round.

    Values of secrets are struck out: a configuration's id has its settings in it.
    """
    from mpigraft import env
    from mpigraft.campaign import schedule

    steps = schedule(planned)
    wish = planned.wish
    lines = [
        f"{len(steps)} launches: {wish.rounds} rounds, seed {wish.seed}",
        _estimate(planned, len(steps)),
        f"baseline: {planned.baseline.id}",
        "benchmarks: " + ", ".join(b.key for b in planned.benchmarks),
        f"sizes: {wish.min_size} B to {wish.max_size} B, {wish.budget_ms:g} ms each",
    ]
    for configuration in planned.configurations:
        lines.append(f"configuration: {configuration.id}")
        transport = configuration.transport
        for row in transport.env if transport else ():
            value = "(dropped)" if row.value is None else row.value
            lines.append(f"    {row.scope}: {row.name}={value}  [{row.source}]")
    lines += [f"left out: {who}: {why}" for who, why in planned.skipped]
    first = [s for s in steps if s.round == 0]
    lines.append("first round: " + ", ".join(f"{s.configuration.id} {s.layout.key}" for s in first))
    return [env.redact(line) for line in lines]


def _estimate(planned: Campaign, launches: int) -> str:
    """About how long it takes. Each pair of configuration and layout is proved by one launch
    more; validation and warm-up are off the budget's clock and add about half of it."""
    wish = planned.wish
    sizes = wish.max_size.bit_length() - wish.min_size.bit_length() + 1
    budget_s = len(planned.benchmarks) * sizes * wish.budget_ms / 1000
    launch_s = START_S + 1.5 * budget_s
    all_s = launch_s * (launches + len(planned.configurations) * len(planned.layouts))
    took = f"{all_s / 60:.0f} minutes" if all_s >= 90 else f"{all_s:.0f} seconds"
    return (
        f"estimate: about {took}, at {launch_s:.1f} s a launch; "
        "slow transports and many ranks take longer"
    )
