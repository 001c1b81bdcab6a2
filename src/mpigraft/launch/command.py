"""One launch as plain data.

Layers, outermost first: guard, launcher, binding, engine, environment, program. Each layer adds
arguments or environment rows. Nothing is started here, so `--dry-run` prints what would be. A guest
with its own MPI brings its own launcher: then the engine is outside of the launcher.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from mpigraft.core import cache, env
from mpigraft.core.errors import MissingError
from mpigraft.core.model import (
    Allocation,
    Bind,
    Configuration,
    EngineContext,
    EnvRow,
    GraftPlan,
    Group,
    Launch,
    Layout,
    MpiInstall,
    Order,
    Scope,
    granted_cpus,
)
from mpigraft.core.write import process_umask
from mpigraft.graft import ENGINES, find_engine, graft_environment, graft_folder, wrap_program
from mpigraft.launch import children, gpu_select
from mpigraft.launch.launch_request import LaunchRequest
from mpigraft.launch.launchers.hardware import hardware_order
from mpigraft.launch.launchers.registry import LAUNCHERS, Launcher
from mpigraft.launch.rank_wrapper import rank_wrapper

CPUS = Path("/sys/devices/system/cpu")
PRTE = "PRTE_MCA_"


def prepare_launch(request: LaunchRequest) -> Launch:
    """Put the layers of a launch together.

    Raises MissingError without an MPI or a launcher that is known; UsageError for
    GPUs in a guest with a launcher of its own.
    """
    plan, inside = request.configuration.graft, request.launcher_in_guest
    order = _order(request)
    base = env.base(request.environ) if request.inherited is None else request.inherited
    base = {"HOME": str(Path.home()), **base}  # after `env -i`: Open MPI ends without one
    context = _context(plan, request, base) if plan else None
    rows = _rows(request, order, context)
    rows += children.children_rows(request)
    environment = env.apply(base, rows, Scope.LAUNCHER, Scope.DAEMON)
    wrapper = rank_wrapper(request)

    def rank_command(program: tuple[str, ...]) -> tuple[str, ...]:
        words = env.rank_argv(rows, program, (plan.guest.env_program if plan else "") or env.ENV)
        if plan:
            words = wrapper.inside_engine(words, program)
        if plan and context and not inside:
            words = _engine(plan, context, words, environment)
        # No launcher knows the options of our benchmarks, and what is measured starts unwrapped.
        ours = request.natives.has_program(program)
        return wrapper.inside_launcher(words, () if ours else program)

    groups = tuple(replace(g, words=rank_command(g.words)) for g in _groups(request))
    command = LAUNCHERS[request.launcher_kind].command(replace(order, groups=groups))
    words = _with_own_options(request, command.words)
    if inside and plan and context:
        words = _engine_around_launcher(plan, context, rows, words)
    return Launch(
        argv=(*_guard(request), *words),
        env=tuple(sorted(environment.items())),
        cwd=request.cwd,
        limit_s=request.limit_s,
        witness=request.witness,
        files=(*command.files, *_setting_files(request)),
        decided=tuple((row.name, row.value) for row in rows if row.scope is not Scope.RANK),
        children=_children(request, order, context, environment),
    )


def _with_own_options(request: LaunchRequest, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return a launcher's words with those of the setting before its first option."""
    setting = request.configuration.setting
    own = setting.launcher if setting else ()
    first = next((n for n, word in enumerate(words) if word.startswith("-")), 1)
    return (*words[:first], *own, *words[first:])


def _setting_files(request: LaunchRequest) -> tuple[tuple[Path, str], ...]:
    """Return the copies of a setting's files: beside the records of ranks, which every node and
    guest sees."""
    setting = request.configuration.setting
    files = setting.files if setting else ()
    return tuple((request.witness / one.name, one.text) for one in files)


def _children(
    request: LaunchRequest,
    order: Order,
    context: EngineContext | None,
    environment: Mapping[str, str],
) -> tuple[tuple[Path, str], ...]:
    """Return the file of what ranks start, each in a container of its own."""
    alone = context and replace(context, ranks_per_node=1)
    rows = _rows(request, order, alone)
    return children.children_files(request, rows, alone, environment)


# ------------------------------------------------------------------ what launchers are given


def _order(request: LaunchRequest) -> Order:
    """Return the order without its programs. Raises MissingError as `prepare_launch`."""
    mpi, path = _parts(request)
    allocation, layout = request.allocation, request.layout
    plan, launcher = request.configuration.graft, request.configuration.launcher
    inside = request.launcher_in_guest
    masks = () if inside else request.placement.masks  # it reads no file of this machine
    return Order(
        path,
        mpi,
        layout,
        allocation,
        (),
        masks,
        keeps=inside or plan is None or ENGINES[plan.engine].KEEPS_FILES,
        pmi=launcher.pmi if launcher else "",
        version=launcher.version if launcher else mpi.launcher_version,
        numbers=hardware_order() if masks and request.launcher_kind == "prrte" else (),
        uneven=_uneven(allocation),
        slingshot=_over_slingshot(request.configuration),
        folder=request.folder or request.cwd,
        reads=not inside,
        root=os.geteuid() == 0 if request.root is None else request.root,
        crowded=_crowded(layout, allocation, request.cores),
    )


def _parts(request: LaunchRequest) -> tuple[MpiInstall, Path]:
    """Return the MPI and its launcher's program."""
    configuration = request.configuration
    mpi = configuration.mpi
    if mpi is None:
        raise MissingError.of("mpi-imported", id=configuration.id)
    launcher = configuration.launcher.path if configuration.launcher else mpi.launcher
    if launcher is None:
        raise MissingError.of("mpi-no-launcher", id=mpi.id)
    if (kind := request.launcher_kind) not in LAUNCHERS:
        known = ", ".join(LAUNCHERS)
        raise MissingError.of("launcher-kind-unknown", id=mpi.id, kind=kind, known=known)
    return mpi, launcher


def _groups(request: LaunchRequest) -> tuple[Group, ...]:
    """Return all programs; the first has the ranks that no other one takes."""
    others = request.other_programs
    rest = request.layout.ranks_per_node - sum(other.ranks_per_node for other in others)
    return (Group(rest, request.program), *others)


def _crowded(layout: Layout, allocation: Allocation, cores: int | None) -> bool:
    """Return whether threads have to share cores: those that this process may use, or the CPUs that
    a job was granted, which not every scheduler enforces."""
    own = _own_cores() if cores is None else cores
    granted = granted_cpus(allocation, layout.nodes)
    return layout.ranks_per_node * layout.threads > min(own, *granted)


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


def _uneven(allocation: Allocation) -> bool:
    """Return whether a node may have other CPUs than this one. The nodes of a job that has all CPUs
    of each are alike."""
    whole = bool(allocation.cpus) and min(allocation.cpus) >= (os.cpu_count() or 1)
    return not allocation.here and not whole


def _over_slingshot(configuration: Configuration) -> bool:
    name = configuration.transport.name if configuration.transport else ""
    return "cxi" in name or any("cxi" in (row.value or "") for row in configuration.rows)


# ------------------------------------------------------------------ environment


def _rows(request: LaunchRequest, order: Order, context: EngineContext | None) -> list[EnvRow]:
    """Return every row; a later one of a name wins. The witness is preloaded first, so that it
    meets MPI_Init first; what traces comes next."""
    plan, transport = request.configuration.graft, request.configuration.transport
    kind, setting = LAUNCHERS[request.launcher_kind], request.configuration.setting
    rows = [
        *(r for r in order.mpi.environment if plan is None or r.scope is not Scope.RANK),
        *kind.rows(order),
        EnvRow("OMP_NUM_THREADS", str(order.layout.threads), Scope.RANK, "layout"),
        *gpu_select.gpu_environment(request.placement),
        *(graft_environment(plan) if plan else ()),
        *(ENGINES[plan.engine].rows(plan, context) if plan and context else ()),
        *rows_for_launcher(kind, request.configuration.rows),
        *(setting.file_rows(request.witness_in_guest) if setting else ()),
        *(transport.probe_env if request.probe and transport else ()),
    ]
    preloads = [r.value for r in rows if r.name == "LD_PRELOAD" and r.scope is Scope.RANK]
    preload = ":".join(filter(None, (*map(str, request.preloads), *preloads[-1:])))
    folder = str(request.witness_in_guest)
    rows.append(EnvRow("LD_PRELOAD", preload, Scope.RANK, "witness"))
    rows.append(EnvRow("MPIGRAFT_WITNESS", folder, Scope.RANK, "witness"))
    if not request.allocation.here:  # other kernels are compared by the contents of their MPI
        sums = str(cache.folders().cache / "contents")
        rows.append(EnvRow("MPIGRAFT_CONTENTS", sums, Scope.RANK, "witness"))
    if request.tracing is not None:
        options = ",".join(request.tracing)
        rows.append(EnvRow("MPIGRAFT_TRACE", folder, Scope.RANK, "trace"))
        rows.append(EnvRow("MPIGRAFT_TRACE_OPTIONS", options, Scope.RANK, "trace"))
    return rows


def rows_for_launcher(kind: Launcher, rows: Iterable[EnvRow]) -> Iterator[EnvRow]:
    """Name rows as this launcher reads them. The settings of Open MPI's own launcher are
    PRTE_MCA_ of version 5 and OMPI_MCA_ of version 4, which does not know the others; another
    launcher reads neither."""
    for row in rows:
        if row.scope is Scope.RANK or not row.name.startswith(PRTE):
            yield row
        elif kind.MCA:
            yield replace(row, name=f"{kind.MCA}{row.name.removeprefix(PRTE)}")


# ------------------------------------------------------------------ guard and engine


def _guard(request: LaunchRequest) -> tuple[str, ...]:
    """Return the guard's words: it ends every process of the launch. The launcher gets no input:
    Open MPI 5.0.11 never ends what it forwards, and MPICH 5.0.2 gives up where a rank reads slowly;
    `stdin` goes past it."""
    times = ("--limit", f"{request.limit_s:g}", "--grace", f"{request.grace_s:g}")
    parent = os.getpid() if request.parent is None else request.parent
    return (
        str(request.natives.guard), *times, "--stdin", os.devnull, "--parent", str(parent), "--",
    )  # fmt: skip


def _engine(
    plan: GraftPlan,
    context: EngineContext,
    words: tuple[str, ...],
    environment: Mapping[str, str],
) -> tuple[str, ...]:
    """Return the engine around a rank's words, inside of the launcher. The launcher's own libraries
    are no libraries for the engine's program."""
    engine = wrap_program(plan, context, words)
    unset = [word for name in children.LOADER if name in environment for word in ("-u", name)]
    return (env.ENV, *unset, *engine) if unset and engine != words else engine


def _engine_around_launcher(
    plan: GraftPlan, context: EngineContext, rows: list[EnvRow], words: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the engine around a launcher that is in the guest."""
    outer = [replace(r, scope=Scope.RANK) for r in rows if r.scope is not Scope.RANK]
    start = env.rank_argv(outer, words, plan.guest.env_program or env.ENV)
    return wrap_program(plan, context, start)


def _context(plan: GraftPlan, request: LaunchRequest, base: Mapping[str, str]) -> EngineContext:
    ranks = 1 if request.launcher_in_guest else request.layout.ranks_per_node
    return engine_context(
        plan, ranks, request.cwd, root=request.root, environ=base, extra=request.binds
    )


def engine_context(
    plan: GraftPlan,
    ranks_per_node: int,
    cwd: Path,
    *,
    root: bool | None = None,
    environ: Mapping[str, str] | None = None,
    extra: tuple[Bind, ...] = (),
) -> EngineContext:
    """Describe where an engine of this machine starts a rank. `root` and `environ` default to this
    process's own; `extra` are binds of the user or the site. Raises MissingError where the engine
    is not installed."""
    own = env.base() if environ is None else dict(environ)
    program, version = find_engine(plan.engine, own)
    return EngineContext(
        program=program,
        version=version,
        root=os.geteuid() == 0 if root is None else root,
        cwd=str(cwd),
        ranks_per_node=ranks_per_node,
        graft=str(graft_folder(plan)),
        extra=extra,
        environment=tuple(sorted(own.items())),
        umask=f"{process_umask():04o}",
    )
