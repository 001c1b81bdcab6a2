"""Make the configurations that a request means on this machine, and their keys.

A configuration that cannot run here is left out with its reason, unless it was asked for by
name: then the command ends, since measuring something else would answer another question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from mpigraft.binary import closure_digests as resolve_libraries
from mpigraft.core import env
from mpigraft.core.cache import file_digest
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import (
    Configuration,
    EnvRow,
    Family,
    GraftPlan,
    GuestKind,
    LaunchedBy,
    Layout,
    Machine,
    MpiInstall,
    Replace,
    Scope,
    Transport,
)
from mpigraft.core.serialize import digest
from mpigraft.discovery import row_content
from mpigraft.evidence import opened_libraries
from mpigraft.knowledge import Facts, resolve_transport, transport_names, transport_offers
from mpigraft.launch import launcher_name, launchers_for, split_reason
from mpigraft.request import CampaignSpec
from mpigraft.selection.guest_variants import GuestVariants, Own, Skipped
from mpigraft.selection.mpi import MpiSelection, select_mpis
from mpigraft.selection.settings import with_settings

LibraryDigests = Callable[[MpiInstall], tuple[tuple[str, str], ...]]


@dataclass(frozen=True, slots=True)
class UserChoice:
    """What a user sets for any MPI: variables of ranks, sorted, and the memory of messages."""

    variables: tuple[tuple[str, str], ...] = ()
    buffers: str = "host"


NO_CHOICE = UserChoice()


def library_digests(mpi: MpiInstall) -> tuple[tuple[str, str], ...]:
    """(name, SHA-256), sorted: libmpi, all that the loader maps with it, and what the MPI opens
    for itself while it runs, which no loader knows of. Another libfabric is another MPI."""
    if mpi.libmpi is None:
        return ()
    environment = env.apply(env.base(), mpi.environment, Scope.RANK)
    digests = dict(resolve_libraries(mpi.libmpi, environment))
    for path in opened_libraries(mpi.libmpi, mpi):
        digests.setdefault(path.name, file_digest(path))
    return tuple(sorted(digests.items()))


def make_configurations(
    spec: CampaignSpec,
    machine: Machine,
    on: Sequence[Layout],
    libraries_of: LibraryDigests,
) -> tuple[tuple[Configuration, ...], tuple[Skipped, ...]]:
    """Make the configurations that can run here, and list those that cannot, with why. Raises
    MissingError for buffers in GPU memory on a machine without a GPU of that vendor."""
    _refuse_absent_gpu(spec, machine)
    facts = Facts.of(machine, nodes=max(layout.nodes for layout in on))
    places = GuestVariants(spec, machine)
    user, named = UserChoice(spec.variables, spec.buffers), bool(spec.transport)
    configurations: dict[str, Configuration] = {}
    skipped: list[Skipped] = []

    def add(made: Iterable[Configuration]) -> None:
        for one in made:
            if configurations.setdefault(one.key, one) is not one:
                skipped.append((one.id, "the same libraries were found under another name"))

    for mpi in select_mpis(spec.mpi, machine.mpis):
        if not mpi.usable:
            skipped.append((mpi.id, mpi.reason))
            continue
        libraries = libraries_of(mpi)
        transports, absent = _transports(spec, mpi, facts, on)
        launchers, refused = _launchers(spec, mpi, machine)
        skipped += [*absent, *refused]
        for plan in places.of(mpi):
            if isinstance(plan, tuple):
                skipped.append(plan)
                continue
            choice = MpiSelection(mpi, plan=plan)
            add(
                _configuration(choice, t, libraries, user, by, named=named)
                for t in transports
                for by in launchers
            )
    for own in places.own(_families(spec, machine)):
        if isinstance(own, tuple):
            skipped.append(own)
            continue
        choice, by_name = MpiSelection(own.mpi, plan=own.plan), named and places.own_named
        transports, absent = _own_transports(spec, own, configurations.values(), facts, on)
        skipped += absent
        add(
            _configuration(choice, transport, (), user, named=by_name)
            for transport in transports
            if own.runs_over(transport.name)
        )
    _refuse_unmet(spec, configurations.values(), skipped)
    arms, absent_arms = with_settings(spec.setting, configurations.values(), combine=spec.combine)
    return arms, (*skipped, *absent_arms)


def _launchers(
    spec: CampaignSpec, mpi: MpiInstall, machine: Machine
) -> tuple[tuple[LaunchedBy | None, ...], list[Skipped]]:
    """Select those that were named, else the MPI's own or the scheduler's. An MPI that nothing
    starts is left out with every reason."""
    launchers, refused = launchers_for(mpi, machine, spec.launcher)
    if launchers or spec.launcher:
        return launchers, [(f"{mpi.id} by {name}", why) for name, why in refused]
    here = {one.name for one in machine.launchers}
    reasons = [f"; {name}: {why}" for name, why in refused if name in here]
    why = f"no {mpi.launcher_kind or 'launcher'} to start it with{''.join(reasons)}"
    return launchers, [(mpi.id, why)]


def reached_nodes(configuration: Configuration, layout: Layout) -> bool:
    """Return whether a configuration's transport is made for every class of peers in a layout."""
    return configuration.transport is None or _reaches(configuration.transport, layout)


def _reaches(transport: Transport, layout: Layout) -> bool:
    return layout.peers <= set(transport.peers)


def _transports(
    spec: CampaignSpec, mpi: MpiInstall, facts: Facts, on: Sequence[Layout]
) -> tuple[list[Transport], list[Skipped]]:
    """Select those that were named, else all that can run here without variants; the others are
    left out."""
    offered = {offer.name: offer for offer in transport_offers(mpi, facts)}
    transports: list[Transport] = []
    skipped: list[Skipped] = []
    for name in spec.transport or [name for name, one in offered.items() if not one.variant]:
        offer = offered.get(name)
        if not any(name in transport_names(family) for family in Family):
            resolve_transport(name, mpi, facts)  # says that there is none, as `run` does
        if offer is None or not offer.usable:
            why = offer.reason if offer else f"{mpi.family} has no transport of this name"
            skipped.append((f"{mpi.id}/{name}", why))
            continue
        transport = resolve_transport(name, mpi, facts)
        if any(_reaches(transport, layout) for layout in on):
            transports.append(transport)
        else:
            missing = ", ".join(sorted(set().union(*(x.peers for x in on)) - set(transport.peers)))
            skipped.append((f"{mpi.id}/{name}", f"it cannot reach {missing} peers"))
    return transports, skipped


def _families(spec: CampaignSpec, machine: Machine) -> frozenset[Family]:
    """List the families of the MPIs that were named, all if none was, that have one of the
    transports that were named; none where neither was."""
    if not spec.mpi and not spec.transport:
        return frozenset()
    mpis = {m.family for m in select_mpis(spec.mpi, machine.mpis)} if spec.mpi else set(Family)
    named = set(spec.transport)
    return frozenset(f for f in mpis if not named or named & set(transport_names(f)))


def _own_transports(
    spec: CampaignSpec,
    own: Own,
    configurations: Collection[Configuration],
    facts: Facts,
    on: Sequence[Layout],
) -> tuple[list[Transport], list[Skipped]]:
    """For a guest's own MPI: those that were named; else those that the others run over; else the
    first that its family has. Only what it was built with, as far as its bytes say; the probe
    tells the rest."""
    known = {offer.name: offer.reason for offer in transport_offers(own.mpi, facts)}
    others = {c.transport.name for c in configurations if c.transport and c.mpi}
    usable: dict[str, Transport] = {}
    skipped: list[Skipped] = []
    for name, why in known.items():
        try:
            transport = resolve_transport(name, own.mpi, facts)
        except MissingError:
            if name in spec.transport:
                skipped.append((f"{own.name}/{name}", why))
            continue
        if any(_reaches(transport, layout) for layout in on):
            usable[name] = transport
        elif name in spec.transport:
            skipped.append((f"{own.name}/{name}", "it cannot reach the peers of these layouts"))
    if set(spec.transport) & set(known):
        chosen = [name for name in usable if name in spec.transport]
    else:
        chosen = [name for name in usable if name in others] or list(usable)[:1]
    return [usable[name] for name in chosen], skipped


def _refuse_absent_gpu(spec: CampaignSpec, machine: Machine) -> None:
    vendor = {"cuda": "nvidia", "rocm": "amd"}.get(spec.buffers)
    if vendor and not any(gpu.vendor == vendor for gpu in machine.gpus):
        raise MissingError.of("gpu-buffers-none", buffers=spec.buffers, vendor=vendor)


def _refuse_unmet(
    spec: CampaignSpec, configurations: Collection[Configuration], skipped: Collection[Skipped]
) -> None:
    """Raise MissingError for a transport or launcher that was named and that no MPI can use."""
    kinds = {c.launcher.kind if c.launcher else "own" for c in configurations}
    for name in map(launcher_name, spec.launcher):
        refused = [(label, why) for label, why in skipped if label.endswith(f" by {name}")]
        if name not in kinds and refused:  # else it is a transport that is not there
            raise _no_launcher(name, refused)
    met = {c.transport.name for c in configurations if c.transport}
    for name in spec.transport:
        if name in met:
            continue
        reasons = [f"{label}: {why}" for label, why in skipped if label.endswith(f"/{name}")]
        raise MissingError.of(
            "transport-none", name=name, reasons="; ".join(reasons) or "unknown name"
        )


def _no_launcher(name: str, refused: Sequence[Skipped]) -> MissingError:
    """Make the error of a launcher that can start no MPI here: each reason once, with its MPIs."""
    labels: dict[str, list[str]] = {}
    for label, why in refused:
        labels.setdefault(why, []).append(label.removesuffix(f" by {name}"))
    every = len(labels) == 1
    reasons = [
        split_reason(why)[0] + ("" if every else f" ({', '.join(of)})")
        for why, of in labels.items()
    ]
    error = MissingError.of("configuration-none", name=name, reasons="; ".join(reasons))
    return error.amended(fix=split_reason(next(iter(labels)))[1]) if every else error


def make_configuration(
    choice: MpiSelection,
    facts: Facts,
    transport: str = "",
    user: UserChoice = NO_CHOICE,
    launcher: LaunchedBy | None = None,
) -> Configuration:
    """Make the configuration of the transport of that name, or of none, on an MPI and by a launcher
    that were chosen. Raises MissingError as `resolve_transport` does."""
    if not transport:
        return _configuration(choice, None, (), user, launcher)
    row = resolve_transport(transport, choice.mpi, facts)
    own = choice.plan is not None and choice.plan.replace is Replace.NOTHING
    libraries = () if own else library_digests(choice.mpi)
    return _configuration(choice, row, libraries, user, launcher, named=True)


def _configuration(
    choice: MpiSelection,
    transport: Transport | None,
    libraries: tuple[tuple[str, str], ...],
    user: UserChoice,
    launcher: LaunchedBy | None = None,
    *,
    named: bool = False,
) -> Configuration:
    """Make a configuration; `named`: its transport was asked for by name."""
    rows = (EnvRow(name, value, Scope.RANK, "user") for name, value in user.variables)
    return Configuration(
        key=_key(choice, transport, libraries, user, launcher),
        id=_label(choice, transport, user, launcher) if transport else choice.mpi.id,
        mpi=choice.mpi,
        transport=transport,
        buffers=user.buffers,
        variables=user.variables,
        named=named,
        libraries=libraries,
        graft=choice.plan,
        launcher=launcher,
        environment=(*choice.rows, *rows),
    )


def _key(
    choice: MpiSelection,
    transport: Transport | None,
    libraries: tuple[tuple[str, str], ...],
    user: UserChoice,
    launcher: LaunchedBy | None,
) -> str:
    """Make the key, by contents, and by the compiler of an MPI whose prefix names one: its wrappers
    compile programs with it. Where the MPI chooses its transport, nothing is stored under it, and
    reading all libraries would only delay the job."""
    if transport is None:
        return digest({"mpi": choice.mpi.libmpi, "settings": user.variables})
    modules = [row for row in choice.mpi.environment if row.source == "module"]
    compiler = dict(choice.mpi.provenance).get("compiler")
    return digest(
        {
            "libraries": libraries,
            "transport": [transport.row, transport.template],
            "settings": user.variables,
            "buffers": user.buffers,
            "guest": _guest_key(choice.plan),
            **({"launcher": [launcher.kind, launcher.pmi]} if launcher else {}),
            **({"modules": row_content(modules)} if choice.mpi.modules else {}),
            **({"compiler": compiler} if compiler else {}),
        }
    )


def _label(
    choice: MpiSelection, transport: Transport, user: UserChoice, launcher: LaunchedBy | None
) -> str:
    """`openmpi@5.0.11/ob1-sm@app.sif` in a guest; `app.sif:openmpi@4.1.4/ob1-sm` its own;
    `stack+libfabric:openmpi@4.1.4/ofi-tcp` over an injected libfabric or UCX."""
    label, plan = f"{choice.mpi.id}/{transport.name}", choice.plan
    if plan is not None:
        name = plan.guest.name
        below = plan.replace is Replace.LIBFABRIC and plan.guest.kind is GuestKind.STACK
        name += f"+{plan.replace}" if below else ""
        own = below or plan.replace is Replace.NOTHING
        label = f"{name}:{label}" if own else f"{label}@{name}"
    label += f"+{launcher.kind}" if launcher else ""
    label += "".join(f"+{name}={value}" for name, value in user.variables)
    return label if user.buffers == "host" else f"{label}[{user.buffers}]"


def _guest_key(plan: GraftPlan | None) -> list[object] | None:
    """List the guest, the engine and what went in, by content."""
    if plan is None:
        return None
    return [
        plan.guest.digest,
        plan.replace,
        plan.engine,
        sorted((copy.name, copy.digest) for copy in plan.copies),
        *([list(plan.options)] if plan.options else []),
    ]


def choose_baseline(configurations: Sequence[Configuration], name: str) -> Configuration:
    """--baseline (an id or its beginning), else of those outside of guests and without a setting
    Cray MPICH, else the first MPI in PATH, else the first MPI by id; of an MPI, the transport that
    its family lists first. Raises UsageError for a name of none, or of several."""
    plain = [c for c in configurations if c.setting is None]
    if name:
        same = [c for c in configurations if c.id == name]
        hits = same or [c for c in plain if c.id.startswith(name)]
        hits = hits or [c for c in configurations if c.id.startswith(name)]
        if len(hits) == 1:
            return hits[0]
        problem = "begins the names of several configurations" if hits else "is none of them"
        known = ", ".join(c.id for c in hits or configurations)
        near = () if hits else (c.id for c in configurations)
        raise UsageError.unknown("baseline-unknown", name, near, problem=problem, known=known)
    plain = plain or [*configurations]
    here = [c for c in plain if c.graft is None] or plain
    cray = [c for c in here if c.mpi and c.mpi.family is Family.CRAY_MPICH]
    in_path = [c for c in here if c.mpi and c.mpi.source == "path"]
    return (cray or in_path or sorted(here, key=lambda c: c.mpi.id if c.mpi else ""))[0]
