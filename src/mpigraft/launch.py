"""One launch as plain data.

Layers, outermost first: guard, launcher, binding, engine, environment, program. Each layer adds
words or environment rows; nothing is started here, so `--dry-run` prints what would be. A guest
with its own MPI brings its own launcher: then the engine stands outside of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from mpigraft import engines, env, grafts, seating
from mpigraft.errors import MissingError, UsageError
from mpigraft.launchers import LAUNCHERS, Launcher
from mpigraft.launchers.hardware import hardware_order
from mpigraft.model import (
    NOWHERE,
    Allocation,
    Bind,
    Configuration,
    EnvRow,
    GraftPlan,
    Group,
    Launch,
    Layout,
    MpiInstall,
    Order,
    Placement,
    Scope,
    Seat,
    Transport,
)
from mpigraft.natives import Natives
from mpigraft.plan import SEAT

# From a rank's words, and the program with which they end, to those with mpigraft-seat in front.
Wrap = Callable[[tuple[str, ...], tuple[str, ...]], tuple[str, ...]]

CPUS = Path("/sys/devices/system/cpu")
IN_GUEST = "guest"  # source of an MpiInstall that lies in one
LOADER = ("LD_LIBRARY_PATH", "LD_PRELOAD")
PRTE = "PRTE_MCA_"
GRACE_S = 2.0  # between the guard's SIGTERM and SIGKILL
HERE = Allocation((os.uname().nodename,), "this host", here=True)


def prepare(
    configuration: Configuration,
    layout: Layout,
    program: tuple[str, ...],
    *,
    natives: Natives,
    witness: Path,
    limit_s: float,
    cwd: Path,
    probe: bool = False,
    root: bool | None = None,
    cores: int | None = None,
    environ: Mapping[str, str] | None = None,
    inherited: Mapping[str, str] | None = None,
    grace_s: float = GRACE_S,
    extra: tuple[Bind, ...] = (),
    parent: int | None = None,
    allocation: Allocation = HERE,
    placement: Placement = NOWHERE,
    others: tuple[Group, ...] = (),
    folder: Path | None = None,
    stdin: str = "",
) -> Launch:
    """The launch of `program` in this configuration on this layout.

    `witness` is the folder into which every rank writes one record; `probe` adds what makes the
    library say what it uses. `root`, `cores` and `environ` default to this process's own.
    `inherited` is an environment to start from as it is, instead of what of `environ` is allowed.
    `extra` binds are those that somebody wants in a guest. `parent`, by default this process, will
    start it: another one means that it died, and the guard does nothing. `allocation` has the nodes
    and `placement` what each rank of one of them is to have; `others` are more programs, each with
    its part of the layout's ranks. Files for the launcher go into `folder`, by default `cwd`.
    `stdin`: who reads standard input, 0, all or none, by way of `witness`; empty: the launcher's.
    Raises MissingError without an MPI, a transport or a launcher that is known; UsageError for
    GPUs in a guest with a launcher of its own.
    """
    root = os.geteuid() == 0 if root is None else root
    order = _order(configuration, layout, allocation, placement.masks, folder or cwd)
    order = replace(order, root=root, crowded=_crowded(layout, allocation, cores))
    plan = configuration.graft
    start = env.base(environ) if inherited is None else inherited
    inside = _inside(configuration)
    node = 1 if inside else layout.ranks_per_node
    seat = seat_of(plan, node, cwd, root=root, environ=start, extra=extra) if plan else None
    rows = _rows(configuration, order, seat, placement, probe=probe)
    rows += _witness_rows(rows, natives, grafts.inside(plan, witness) if plan else witness)
    environment = env.apply(start, rows, Scope.LAUNCHER, Scope.DAEMON)
    around = (plan, None if inside else seat, rows, environment)
    outer, inner = _seats(configuration, placement, natives, witness, stdin)
    groups = tuple(
        replace(g, words=outer(_inner(*around, g.words, inner), _foreign(g.words, natives)))
        for g in _groups(layout, program, others)
    )
    command = LAUNCHERS[_kind(configuration)].command(replace(order, groups=groups))
    words = _around(plan, seat, rows, command.words) if inside and plan and seat else command.words
    words = (*_guard(natives, limit_s, grace_s, parent), *words)
    given = tuple(sorted(environment.items()))
    return Launch(words, given, cwd, limit_s, witness, command.files, _decided(rows))


def _decided(rows: Iterable[EnvRow]) -> tuple[tuple[str, str | None], ...]:
    return tuple((row.name, row.value) for row in rows if row.scope is not Scope.RANK)


def _crowded(layout: Layout, allocation: Allocation, cores: int | None) -> bool:
    """Whether threads have to share cores: those that this process may use, or the CPUs that a job
    was granted, which not every scheduler enforces."""
    own = _own_cores() if cores is None else cores
    return layout.ranks_per_node * layout.threads > min(own, *granted(allocation, layout.nodes))


def granted(allocation: Allocation, nodes: int) -> tuple[int, ...]:
    """CPUs of a job on its first nodes; some number that bounds nothing where it is not known."""
    return allocation.cpus[:nodes] or (1 << 30,)


def _rows(
    configuration: Configuration,
    order: Order,
    seat: Seat | None,
    placement: Placement,
    *,
    probe: bool,
) -> list[EnvRow]:
    """Every row but the witness's; a later one of a name wins."""
    plan, transport = configuration.graft, configuration.transport
    kind = LAUNCHERS[_kind(configuration)]
    assert transport is not None
    return [
        *(r for r in order.mpi.environment if plan is None or r.scope is not Scope.RANK),
        *kind.rows(order),
        EnvRow("OMP_NUM_THREADS", str(order.layout.threads), Scope.RANK, "layout"),
        *seating.rows(placement),
        *(_graft_rows(plan, seat) if plan and seat else ()),
        *spelled(kind, transport.env),
        *(transport.probe_env if probe else ()),
    ]


def _groups(
    layout: Layout, program: tuple[str, ...], others: tuple[Group, ...]
) -> tuple[Group, ...]:
    """All programs; the first has the ranks that no other one takes."""
    taken = sum(other.ranks_per_node for other in others)
    return (Group(layout.ranks_per_node - taken, program), *others)


def _foreign(program: tuple[str, ...], natives: Natives) -> tuple[str, ...]:
    """The program's words, but for our benchmarks, whose options no launcher knows: what is
    measured starts without a seat."""
    return () if program[:1] == (str(natives.bench),) else program


def _seats(
    configuration: Configuration,
    placement: Placement,
    natives: Natives,
    witness: Path,
    stdin: str,
) -> tuple[Wrap, Wrap]:
    """What puts mpigraft-seat around a rank's words, right inside of the launcher, and around the
    program's own. The second does nothing, but for an engine that hands on no open files: then
    standard input is fetched in the guest. There the seat is the graft's."""
    plan, kind = configuration.graft, LAUNCHERS[_kind(configuration)]
    inside = _inside(configuration)
    if inside and placement.gpus:
        raise UsageError(
            "a guest's own launcher gives its ranks no GPUs of their own",
            why="mpigraft-seat, which chooses them, is a program of this machine",
            mend="leave the layout's GPUs out, or put this machine's MPI into the guest",
        )
    guest = Path(grafts.place(plan)) / SEAT if plan else Path()
    seat = guest if inside else natives.seat
    reads = seating.Input(stdin, kind.RANK, str(witness)) if stdin else None
    fetches: tuple[str, ...] = ()  # in the guest, behind an engine
    if plan is not None and reads is not None:
        within = replace(reads, folder=str(grafts.inside(plan, witness)))
        if inside:
            reads = within
        elif not engines.ENGINES[plan.engine].KEEPS_FILES:
            reads, fetches = None, seating.words(NOWHERE, guest, "", within)
    outer = partial(seating.seated, seating.words(placement, seat, kind.LOCAL_RANK, reads), seat)
    return outer, partial(_behind_engine, fetches, guest)


def _behind_engine(
    front: tuple[str, ...], seat: Path, given: tuple[str, ...], program: tuple[str, ...]
) -> tuple[str, ...]:
    """Words of the guest, with its own seat where that is needed: to fetch standard input, and for
    bytes that are no UTF-8, which Apptainer 1.4.5 replaces."""
    if front or any(map(seating.is_binary, program)):
        return seating.seated(front or (str(seat), "--"), seat, given, program)
    return given


def _order(
    configuration: Configuration,
    layout: Layout,
    allocation: Allocation,
    masks: tuple[tuple[int, ...], ...],
    folder: Path,
) -> Order:
    """What is known of the order before the programs are. Raises MissingError as `prepare`."""
    mpi, transport, launcher = _parts(configuration)
    other, plan = configuration.launcher, configuration.graft
    inside = _inside(configuration)
    masks = () if inside else masks  # it reads no file of this machine
    keeps = inside or plan is None or engines.ENGINES[plan.engine].KEEPS_FILES
    return Order(
        launcher,
        mpi,
        layout,
        allocation,
        (),
        masks,
        keeps=keeps,
        pmi=other.pmi if other else "",
        version=other.version if other else mpi.launcher_version,
        numbers=hardware_order() if masks and _kind(configuration) == "prrte" else (),
        uneven=_uneven(allocation),
        slingshot=_over_slingshot(transport),
        folder=folder,
        reads=not inside,
    )


def _inside(configuration: Configuration) -> bool:
    """Whether the launcher lies in the guest, as a guest's own MPI has it: no program outside can
    start it, so the engine stands around it."""
    mpi = configuration.mpi
    return mpi is not None and mpi.source == IN_GUEST and configuration.launcher is None


def _uneven(allocation: Allocation) -> bool:
    """Whether a node may have other CPUs than this one. Those of a job that has all of each are
    alike."""
    whole = bool(allocation.cpus) and min(allocation.cpus) >= (os.cpu_count() or 1)
    return not allocation.here and not whole


def _over_slingshot(transport: Transport) -> bool:
    values = (row.value or "" for row in transport.env)
    return "cxi" in transport.name or any("cxi" in value for value in values)


def spelled(kind: Launcher, rows: Iterable[EnvRow]) -> Iterator[EnvRow]:
    """Rows of a transport as this launcher reads them. The settings of Open MPI's own launcher
    are PRTE_MCA_ of version 5 and OMPI_MCA_ of version 4, which does not know the others; another
    launcher reads neither."""
    for row in rows:
        if row.scope is Scope.RANK or not row.name.startswith(PRTE):
            yield row
        elif kind.MCA:
            yield replace(row, name=f"{kind.MCA}{row.name.removeprefix(PRTE)}")


def _kind(configuration: Configuration) -> str:
    """The key of launchers.LAUNCHERS: of another launcher that was asked for, or the MPI's own."""
    if configuration.launcher:
        return configuration.launcher.kind
    return configuration.mpi.launcher_kind if configuration.mpi else ""


def _graft_rows(plan: GraftPlan, seat: Seat) -> tuple[EnvRow, ...]:
    """Of the graft and of its engine; a transport's come after them."""
    return (*grafts.environment(plan), *engines.ENGINES[plan.engine].rows(plan, seat))


def _guard(natives: Natives, limit_s: float, grace_s: float, parent: int | None) -> tuple[str, ...]:
    """Leaves nothing behind. The launcher reads nothing: Open MPI 5.0.11 never ends what it sends
    on, and MPICH 5.0.2 gives up where a rank reads slowly; `stdin` goes past it."""
    times = ("--limit", f"{limit_s:g}", "--grace", f"{grace_s:g}")
    starter = os.getpid() if parent is None else parent
    return (str(natives.guard), *times, "--stdin", os.devnull, "--parent", str(starter), "--")


def _inner(
    plan: GraftPlan | None,
    seat: Seat | None,
    rows: list[EnvRow],
    environment: Mapping[str, str],
    program: tuple[str, ...],
    fetching: Wrap,
) -> tuple[str, ...]:
    """Engine, where it stands inside of the launcher, and environment around the program.
    `fetching` is what stands right behind an engine."""
    if plan is None:
        return env.rank_argv(rows, program)
    inner = fetching(env.rank_argv(rows, program, plan.guest.env_program or env.ENV), program)
    if seat is None:
        return inner
    engine = engines.around(plan, seat, inner)
    # A launcher's own libraries are no libraries for the engine's program.
    loose = [word for name in LOADER if name in environment for word in ("-u", name)]
    return (*((env.ENV, *loose) if loose and engine != inner else ()), *engine)


def _around(
    plan: GraftPlan, seat: Seat, rows: list[EnvRow], words: tuple[str, ...]
) -> tuple[str, ...]:
    """The engine around a launcher that lies in the guest."""
    outer = [
        EnvRow(r.name, r.value, Scope.RANK, r.source) for r in rows if r.scope is not Scope.RANK
    ]
    start = env.rank_argv(outer, words, plan.guest.env_program or env.ENV)
    return engines.around(plan, seat, start)


def seat_of(
    plan: GraftPlan,
    ranks_per_node: int,
    cwd: Path,
    *,
    root: bool | None = None,
    environ: Mapping[str, str] | None = None,
    extra: tuple[Bind, ...] = (),
) -> Seat:
    """Where an engine of this machine starts a rank. `root` and `environ` default to this
    process's own. Raises MissingError where the engine is not here."""
    own = env.base() if environ is None else dict(environ)
    program, version = engines.find(plan.engine, own)
    return Seat(
        program=program,
        version=version,
        root=os.geteuid() == 0 if root is None else root,
        cwd=str(cwd),
        ranks_per_node=ranks_per_node,
        graft=str(grafts.folder(plan)),
        extra=extra,
        environment=tuple(sorted(own.items())),
    )


def _parts(configuration: Configuration) -> tuple[MpiInstall, Transport, Path]:
    mpi, transport = configuration.mpi, configuration.transport
    if mpi is None or transport is None:
        raise MissingError(f"{configuration.id} was imported and cannot be launched")
    launcher = configuration.launcher.path if configuration.launcher else mpi.launcher
    if launcher is None:
        raise MissingError(f"{mpi.id} has no launcher", why="its mpirun or mpiexec was not found")
    if (kind := _kind(configuration)) not in LAUNCHERS:
        known = ", ".join(LAUNCHERS)
        raise MissingError(f"{mpi.id}: launcher {kind!r} is none of {known}")
    return mpi, transport, launcher


def _witness_rows(rows: list[EnvRow], natives: Natives, folder: Path) -> list[EnvRow]:
    """The witness goes before whatever else is preloaded, so it sees MPI_Init first."""
    preloads = [r.value for r in rows if r.name == "LD_PRELOAD" and r.scope is Scope.RANK]
    before = preloads[-1] if preloads else None
    preload = f"{natives.witness}:{before}" if before else str(natives.witness)
    return [
        EnvRow("LD_PRELOAD", preload, Scope.RANK, "witness"),
        EnvRow("MPIGRAFT_WITNESS", str(folder), Scope.RANK, "witness"),
    ]


def _own_cores(cpus: Iterable[int] | None = None, system: Path = CPUS) -> int:
    """Physical cores that this process may use: two hardware threads of a core are one."""
    own = os.sched_getaffinity(0) if cpus is None else cpus
    cores = set()
    for cpu in own:
        siblings = system / f"cpu{cpu}" / "topology" / "thread_siblings_list"
        try:
            cores.add(siblings.read_text(encoding="ascii").strip())
        except OSError:  # hidden in some containers: then a CPU counts as a core
            cores.add(str(cpu))
    return len(cores)
