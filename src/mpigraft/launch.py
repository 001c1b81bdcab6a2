"""One launch as plain data.

Layers, outermost first: guard, launcher, binding, engine, environment, program. Each layer adds
words or environment rows; nothing is started here, so `--dry-run` prints what would be. A guest
with its own MPI brings its own launcher: then the engine stands outside of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from mpigraft import engines, env, grafts
from mpigraft.errors import MissingError
from mpigraft.launchers import LAUNCHERS
from mpigraft.model import (
    Bind,
    Configuration,
    EnvRow,
    GraftPlan,
    Launch,
    Layout,
    MpiInstall,
    Scope,
    Seat,
    Transport,
)
from mpigraft.natives import Natives

CPUS = Path("/sys/devices/system/cpu")
IN_GUEST = "guest"  # source of an MpiInstall that lies in one
LOADER = ("LD_LIBRARY_PATH", "LD_PRELOAD")
GRACE_S = 2.0  # between the guard's SIGTERM and SIGKILL


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
) -> Launch:
    """The launch of `program` in this configuration on this layout.

    `witness` is the folder into which every rank writes one record; `probe` adds what makes the
    library say what it uses. `root`, `cores` and `environ` default to this process's own.
    `inherited` is an environment to start from as it is, instead of what of `environ` is allowed.
    `extra` binds are those that a user or a site wants in a guest.
    `parent`, by default this process too, is the one that will start it: the guard does nothing
    under another, since it has another only when that one died first.
    Raises MissingError for a configuration without an MPI, a transport or a known launcher.
    """
    mpi, transport, launcher = _parts(configuration)
    root = os.geteuid() == 0 if root is None else root
    cores = _own_cores() if cores is None else cores
    crowded = layout.ranks_per_node * layout.threads > cores
    kind, plan = LAUNCHERS[mpi.launcher_kind], configuration.graft
    start = env.base(environ) if inherited is None else inherited
    inside = mpi.source == IN_GUEST  # it has a launcher of its own, which nothing outside can run
    per_node = 1 if inside else layout.ranks_per_node
    seat = seat_of(plan, per_node, cwd, root=root, environ=start, extra=extra) if plan else None
    rows = [
        *(r for r in mpi.environment if plan is None or r.scope is not Scope.RANK),
        *kind.rows(mpi, layout, crowded=crowded, root=root),
        EnvRow("OMP_NUM_THREADS", str(layout.threads), Scope.RANK, "layout"),
        *(_graft_rows(plan, seat) if plan and seat else ()),
        *transport.env,
        *(transport.probe_env if probe else ()),
    ]
    rows += _witness_rows(rows, natives, grafts.inside(plan, witness) if plan else witness)
    guard = _guard(natives, limit_s, grace_s, os.getpid() if parent is None else parent)
    keeps = inside or plan is None or engines.ENGINES[plan.engine].KEEPS_FILES
    words = tuple(kind.words(launcher, mpi, layout, crowded=crowded, keeps=keeps))
    environment = env.apply(start, rows, Scope.LAUNCHER, Scope.DAEMON)
    return Launch(
        argv=(*guard, *_layers(words, plan, seat, rows, environment, program, inside=inside)),
        env=tuple(sorted(environment.items())),
        cwd=cwd,
        limit_s=limit_s,
        witness=witness,
    )


def _graft_rows(plan: GraftPlan, seat: Seat) -> tuple[EnvRow, ...]:
    """Of the graft and of its engine; a transport's come after them."""
    return (*grafts.environment(plan), *engines.ENGINES[plan.engine].rows(plan, seat))


def _guard(natives: Natives, limit_s: float, grace_s: float, parent: int) -> tuple[str, ...]:
    times = ("--limit", f"{limit_s:g}", "--grace", f"{grace_s:g}")
    return (str(natives.guard), *times, "--parent", str(parent), "--")


def _layers(
    launcher: tuple[str, ...],
    plan: GraftPlan | None,
    seat: Seat | None,
    rows: list[EnvRow],
    environment: Mapping[str, str],
    program: tuple[str, ...],
    *,
    inside: bool,
) -> tuple[str, ...]:
    """Launcher, engine and environment around the program; `inside`: the engine around all."""
    if plan is None or seat is None:
        return (*launcher, *env.rank_argv(rows, program))
    inner = env.rank_argv(rows, program, plan.guest.env_program or env.ENV)
    engine = engines.ENGINES[plan.engine].words(plan, seat)
    # A launcher's own libraries are no libraries for the engine's program.
    loose = [word for name in LOADER if name in environment for word in ("-u", name)]
    if not inside:
        return (*launcher, *((env.ENV, *loose) if loose and engine else ()), *engine, *inner)
    outer = [
        EnvRow(r.name, r.value, Scope.RANK, r.source) for r in rows if r.scope is not Scope.RANK
    ]
    start = env.rank_argv(outer, (*launcher, *inner), plan.guest.env_program or env.ENV)
    return (*engine, *start)


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
    if mpi.launcher is None:
        raise MissingError(f"{mpi.id} has no launcher", why="its mpirun or mpiexec was not found")
    if mpi.launcher_kind not in LAUNCHERS:
        known = ", ".join(LAUNCHERS)
        raise MissingError(f"{mpi.id}: launcher {mpi.launcher_kind!r} is none of {known}")
    return mpi, transport, mpi.launcher


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
