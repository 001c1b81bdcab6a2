"""Which configurations a wish means on this machine, and what their keys are.

A configuration that cannot run here is left out with its reason, unless it was asked for by
name: then the command ends, since measuring something else would answer another question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from mpigraft import env, fetch
from mpigraft.cache import file_digest
from mpigraft.contained import Own, Places
from mpigraft.errors import MissingError, UsageError
from mpigraft.jsonout import digest
from mpigraft.knowledge.loader import Facts, offers, resolve
from mpigraft.knowledge.loader import names as transport_names
from mpigraft.model import (
    Configuration,
    EnvRow,
    Family,
    GraftPlan,
    LaunchedBy,
    Layout,
    Machine,
    MpiInstall,
    Replace,
    Scope,
    Transport,
)
from mpigraft.modules import content
from mpigraft.resolve import contents as resolve_libraries
from mpigraft.starting import launchers_for, plain_name
from mpigraft.used_files import opened_later
from mpigraft.wish import Wish

Contents = Callable[[MpiInstall], tuple[tuple[str, str], ...]]


def contents(mpi: MpiInstall) -> tuple[tuple[str, str], ...]:
    """(name, SHA-256), sorted: libmpi, all that the loader maps with it, and what the MPI opens
    for itself while it runs, which no loader knows of. Another libfabric is another MPI."""
    if mpi.libmpi is None:
        return ()
    environment = env.apply(env.base(), mpi.environment, Scope.RANK)
    found = dict(resolve_libraries(mpi.libmpi, environment))
    for path in opened_later(mpi.libmpi, mpi):
        found.setdefault(path.name, file_digest(path))
    return tuple(sorted(found.items()))


def configurations(
    wish: Wish,
    machine: Machine,
    on: Sequence[Layout],
    libraries_of: Contents,
) -> tuple[tuple[Configuration, ...], tuple[tuple[str, str], ...]]:
    """Configurations that can run here, and those that cannot, with the reason. Raises
    MissingError for buffers in GPU memory on a machine without a GPU of that vendor."""
    _refuse_absent_gpu(wish, machine)
    facts = Facts.of(machine, nodes=max(layout.nodes for layout in on))
    places = Places(wish, machine)
    found: list[Configuration] = []
    skipped: list[tuple[str, str]] = []
    for mpi in select_mpis(wish.mpi, machine.mpis):
        if not mpi.usable:
            skipped.append((mpi.id, mpi.reason))
            continue
        libraries = libraries_of(mpi)
        transports = _transports(wish, mpi, facts, on, skipped)
        launchers = _launchers(wish, mpi, machine, skipped)
        for plan in places.of(mpi, skipped):
            made = (
                _configuration(wish, mpi, t, libraries, plan, by)
                for t in transports
                for by in launchers
            )
            _add(found, skipped, made)
    if own := places.own(_families(wish, machine), skipped):
        by_name = places.own_named
        made = (
            _configuration(wish, own.mpi, transport, (), own.plan, named=by_name)
            for transport in _own_transports(wish, own, found, facts, on, skipped)
        )
        _add(found, skipped, made)
    _refuse_unmet(wish, found, skipped)
    return tuple(found), tuple(skipped)


def _launchers(
    wish: Wish, mpi: MpiInstall, machine: Machine, skipped: list[tuple[str, str]]
) -> tuple[LaunchedBy | None, ...]:
    """Those that were named, else the MPI's own or the scheduler's. An MPI that nothing can start
    is left out with every reason."""
    found, left = launchers_for(mpi, machine, wish.launcher)
    if found or wish.launcher:
        skipped += [(f"{mpi.id} by {name}", why) for name, why in left]
    else:
        here = {one.name for one in machine.launchers}
        told = [f"; {name}: {why}" for name, why in left if name in here]
        why = f"no {mpi.launcher_kind or 'launcher'} to start it with{''.join(told)}"
        skipped.append((mpi.id, why))
    return found


def reaches(configuration: Configuration, layout: Layout) -> bool:
    """Whether a configuration's transport is made for every class of peers in a layout."""
    return configuration.transport is None or _reaches(configuration.transport, layout)


def _reaches(transport: Transport, layout: Layout) -> bool:
    return layout.peers <= set(transport.peers)


def _transports(
    wish: Wish,
    mpi: MpiInstall,
    facts: Facts,
    on: Sequence[Layout],
    skipped: list[tuple[str, str]],
) -> list[Transport]:
    """Those that were named, else all that can run here without variants; the others are left
    out."""
    offered = {offer.name: offer for offer in offers(mpi, facts)}
    found = []
    for name in wish.transport or [name for name, one in offered.items() if not one.variant]:
        offer = offered.get(name)
        if offer is None or not offer.usable:
            why = offer.reason if offer else f"{mpi.family} has no transport of this name"
            skipped.append((f"{mpi.id}/{name}", why))
            continue
        transport = resolve(name, mpi, facts)
        if any(_reaches(transport, layout) for layout in on):
            found.append(transport)
        else:
            lost = ", ".join(sorted(set().union(*(x.peers for x in on)) - set(transport.peers)))
            skipped.append((f"{mpi.id}/{name}", f"it cannot reach {lost} peers"))
    return found


def _families(wish: Wish, machine: Machine) -> frozenset[Family]:
    """The families of the MPIs that were named, all if none was, that have one of the transports
    that were named; none where neither was."""
    if not wish.mpi and not wish.transport:
        return frozenset()
    mpis = {m.family for m in select_mpis(wish.mpi, machine.mpis)} if wish.mpi else set(Family)
    named = set(wish.transport)
    return frozenset(f for f in mpis if not named or named & set(transport_names(f)))


def _own_transports(
    wish: Wish,
    own: Own,
    found: Sequence[Configuration],
    facts: Facts,
    on: Sequence[Layout],
    skipped: list[tuple[str, str]],
) -> Iterator[Transport]:
    """For a guest's own MPI: those that were named; else those that the others run over; else the
    first that its family has. Only what it was built with, as far as its bytes say; the probe
    tells the rest."""
    known = {offer.name: offer.reason for offer in offers(own.mpi, facts)}
    others = {c.transport.name for c in found if c.transport and c.mpi}
    usable: dict[str, Transport] = {}
    for name, why in known.items():
        try:
            transport = resolve(name, own.mpi, facts)
        except MissingError:
            if name in wish.transport:
                skipped.append((f"{own.name}/{name}", why))
            continue
        if any(_reaches(transport, layout) for layout in on):
            usable[name] = transport
        elif name in wish.transport:
            skipped.append((f"{own.name}/{name}", "it cannot reach the peers of these layouts"))
    if set(wish.transport) & set(known):
        chosen = [name for name in usable if name in wish.transport]
    else:
        chosen = [name for name in usable if name in others] or list(usable)[:1]
    yield from (usable[name] for name in chosen)


def _add(
    found: list[Configuration], skipped: list[tuple[str, str]], made: Iterable[Configuration]
) -> None:
    for one in made:
        if one.key in {c.key for c in found}:
            skipped.append((one.id, "the same libraries were found under another name"))
        else:
            found.append(one)


def _refuse_absent_gpu(wish: Wish, machine: Machine) -> None:
    vendor = {"cuda": "nvidia", "rocm": "amd"}.get(wish.buffers)
    if vendor and not any(gpu.vendor == vendor for gpu in machine.gpus):
        raise MissingError(
            f"buffers in {wish.buffers} memory, but there is no {vendor} GPU here",
            mend="`mpigraft discover` shows the GPUs; --buffers host needs none",
        )


def _refuse_unmet(
    wish: Wish, found: Sequence[Configuration], skipped: Iterable[tuple[str, str]]
) -> None:
    """A transport or launcher that was named and that no chosen MPI can use ends the command."""
    kinds = {c.launcher.kind if c.launcher else "own" for c in found}
    for name in map(plain_name, wish.launcher):
        reasons = [f"{who}: {why}" for who, why in skipped if who.endswith(f" by {name}")]
        if name not in kinds and reasons:  # else it is a transport that is not there
            raise MissingError(f"nothing can be started by {name} here ({'; '.join(reasons)})")
    met = {c.transport.name for c in found if c.transport}
    for name in wish.transport:
        if name in met:
            continue
        reasons = [f"{who}: {why}" for who, why in skipped if who.endswith(f"/{name}")]
        raise MissingError(
            f"transport {name} cannot be used here ({'; '.join(reasons) or 'unknown name'})",
            mend="`mpigraft discover` lists the transports of each MPI with the reason",
        )


def _configuration(
    wish: Wish,
    mpi: MpiInstall,
    transport: Transport,
    libraries: tuple[tuple[str, str], ...],
    plan: GraftPlan | None = None,
    launcher: LaunchedBy | None = None,
    *,
    named: bool = True,
) -> Configuration:
    """`named` False: it is there by default, whatever transport was named."""
    rows = tuple(EnvRow(k, v, Scope.RANK, "user") for k, v in wish.settings)
    key = digest(
        {
            "libraries": libraries,
            "transport": [transport.row, transport.template],
            "settings": wish.settings,
            "buffers": wish.buffers,
            "guest": _guest_key(plan),
            **({"launcher": [launcher.kind, launcher.pmi]} if launcher else {}),
            **({"modules": content(_of_modules(mpi))} if mpi.modules else {}),
        }
    )
    tail = f"+{launcher.kind}" if launcher else ""
    tail += "".join(f"+{k}={v}" for k, v in wish.settings)
    tail += "" if wish.buffers == "host" else f"[{wish.buffers}]"
    return Configuration(
        key=key,
        id=f"{_label(mpi, transport, plan)}{tail}",
        mpi=mpi,
        transport=replace(transport, env=transport.env + rows),
        buffers=wish.buffers,
        settings=wish.settings,
        named=named and bool(wish.transport),
        libraries=libraries,
        graft=plan,
        launcher=launcher,
    )


def _of_modules(mpi: MpiInstall) -> list[EnvRow]:
    return [row for row in mpi.environment if row.source == "module"]


def chosen(
    wish: Wish,
    mpi: MpiInstall,
    machine: Machine,
    plan: GraftPlan | None = None,
    nodes: int = 1,
    by: LaunchedBy | None = None,
) -> Configuration:
    """The configuration of the one transport that `wish` names, on an MPI and by a launcher that
    were chosen. Raises UsageError or MissingError as `knowledge.loader.resolve` does."""
    transport = resolve(wish.transport[0], mpi, Facts.of(machine, nodes))
    libraries = () if plan and plan.replace is Replace.NOTHING else contents(mpi)
    return _configuration(wish, mpi, transport, libraries, plan, by)


def _label(mpi: MpiInstall, transport: Transport, plan: GraftPlan | None) -> str:
    """`openmpi@5.0.11/ob1-sm@app.sif` in a guest; `app.sif:openmpi@4.1.4/ob1-sm` its own."""
    label = f"{mpi.id}/{transport.name}"
    if plan is None:
        return label
    name = plan.guest.name
    return f"{name}:{label}" if plan.replace is Replace.NOTHING else f"{label}@{name}"


def _guest_key(plan: GraftPlan | None) -> list[object] | None:
    """The guest, the engine and what went in, by content."""
    if plan is None:
        return None
    return [
        plan.guest.digest,
        plan.replace,
        plan.engine,
        sorted((copy.name, copy.digest) for copy in plan.copies),
    ]


def select_mpis(specs: Sequence[str], mpis: Sequence[MpiInstall]) -> tuple[MpiInstall, ...]:
    """MPIs by id (openmpi@5.0.11), by family (intel), or by id's beginning (openmpi@5)."""
    if not specs:
        return tuple(m for m in mpis if m.usable)
    chosen: dict[str, MpiInstall] = {}
    for spec in specs:
        hits = [m for m in mpis if m.id == spec] or [
            m for m in mpis if m.family == spec or ("@" in spec and m.id.startswith(spec))
        ]
        if not hits:
            known = ", ".join(m.id for m in mpis) or "none"
            command = fetch.command_for(spec)
            mend = f"`{command}` may fetch it" if command else "name one of those"
            raise MissingError(f"no MPI {spec!r} here; found: {known}", mend=mend)
        chosen.update((m.id, m) for m in hits)
    return tuple(chosen.values())


def baseline(configurations: Sequence[Configuration], wish: str) -> Configuration:
    """--baseline (an id or its beginning), else of those outside of guests Cray MPICH, else the
    first MPI in PATH, else the first MPI by id; of an MPI, the transport that its family lists
    first. Raises UsageError for a wish that names none, or several."""
    if wish:
        same = [c for c in configurations if c.id == wish]
        hits = same or [c for c in configurations if c.id.startswith(wish)]
        if len(hits) == 1:
            return hits[0]
        problem = "begins the names of several configurations" if hits else "is none of them"
        known = ", ".join(c.id for c in hits or configurations)
        raise UsageError(f"baseline {wish!r} {problem}", mend=f"name one of: {known}")
    here = [c for c in configurations if c.graft is None] or configurations
    cray = [c for c in here if c.mpi and c.mpi.family is Family.CRAY_MPICH]
    in_path = [c for c in here if c.mpi and c.mpi.source == "path"]
    return (cray or in_path or sorted(here, key=lambda c: c.mpi.id if c.mpi else ""))[0]
