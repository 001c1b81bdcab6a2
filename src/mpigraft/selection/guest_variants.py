"""Where a configuration runs: on this machine, in a guest with this MPI, or on the guest's own."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from mpigraft.core.errors import CheckFailed, MissingError
from mpigraft.core.model import Family, GraftPlan, Machine, MpiInstall, Replace
from mpigraft.graft import (
    GraftOptions,
    Guest,
    StackGuest,
    examine_guest,
    examine_stack,
    plan_graft,
    plan_own_mpi,
    plan_stack,
    stack_install,
)
from mpigraft.knowledge import network_library_of
from mpigraft.request import CampaignSpec

OF_NETWORK = {"libfabric": "ofi", "ucx": "ucx"}  # in names of transports

Skipped = tuple[str, str]  # what is left out, and why


@dataclass(frozen=True, slots=True)
class Own:
    """A guest's own MPI, its plan, and its readable name: app.sif:openmpi@4.1.4."""

    mpi: MpiInstall
    plan: GraftPlan
    name: str
    over: tuple[str, ...] = ()  # libfabric, ucx: what was injected alone, below it

    def runs_over(self, transport: str) -> bool:
        """Return whether a transport uses what was injected: without it the same would be
        measured."""
        return not self.over or any(OF_NETWORK[library] in transport for library in self.over)


class GuestVariants:
    """The variants that a request names. The guest is examined once, when it is first needed."""

    def __init__(self, spec: CampaignSpec, machine: Machine) -> None:
        self.spec, self.machine = spec, machine
        self.where = spec.variants
        self.wanted = GraftOptions(
            engine=spec.engine,
            native_build=spec.native_build,
            engine_options=spec.engine_options,
        )

    @cached_property
    def stack(self) -> StackGuest | None:
        """The stack, if the guest is one."""
        return examine_stack(self.spec.stack) if self.spec.stack else None

    @property
    def name(self) -> str:
        return self.stack.name if self.stack else self.guest.label.name

    @cached_property
    def guest(self) -> Guest:
        return examine_guest(self.spec.image)

    @cached_property
    def bare(self) -> Guest:
        """The guest without its programs: what is measured in it is ours."""
        label = replace(self.guest.label, programs=())
        return replace(self.guest, label=label, libraries=())

    def of(self, mpi: MpiInstall) -> Iterator[GraftPlan | Skipped | None]:
        """Yield None for this machine itself, and the plan for the guest. A pair that does not fit
        is left out, as is all that cannot run here."""
        if "native" in self.where:
            yield None
        if "grafted" in self.where:
            try:
                if self.stack:
                    yield plan_stack(self.stack, mpi, self.wanted, self.machine)
                else:
                    yield plan_graft(self.bare, mpi, self.machine, self.wanted)
            except (CheckFailed, MissingError) as error:
                way = f"; {error.fix}" if self.stack and error.fix else ""
                yield f"{mpi.id} in {self.name}", f"{error.message}{way}"

    def own(self, families: Collection[Family]) -> Iterator[Own | Skipped]:
        """Find the guest's own MPI, one of `families` before others, where it was requested and
        there is one; of a stack also over a libfabric or UCX that was injected alone. Under a
        transport that was named only an MPI of `families` is, unless `own` was named too: nobody
        asked for another one."""
        below = self.stack is not None and bool(self.stack.network)
        for replaced in (Replace.NOTHING, *([Replace.LIBFABRIC] if below else [])):
            if "own" in self.where:
                yield self._own(replaced, families)

    def _own(self, replaced: Replace, families: Collection[Family]) -> Own | Skipped:
        over = {network_library_of(name) for name in self.stack.network} if self.stack else set()
        over = over if replaced is Replace.LIBFABRIC else set()
        name = f"{self.name}+{replaced}" if over else self.name
        try:
            mpi, plan = self._planned(replaced, families)
        except (CheckFailed, MissingError) as error:
            if not over and isinstance(error, CheckFailed):
                raise
            return f"{name}'s own MPI", error.message
        name = f"{name}:{mpi.id}"
        if self.spec.transport and not self.own_named and mpi.family not in families:
            why = "it is not of the MPI and transport that were named"
            return name, f"{why}; --guest own requests it"
        return Own(mpi, plan, name, tuple(sorted(over)))

    def _planned(
        self, replaced: Replace, families: Collection[Family]
    ) -> tuple[MpiInstall, GraftPlan]:
        if self.stack is None:
            return plan_own_mpi(self.guest, self.wanted, families)
        mpi = stack_install(self.stack, replaced)
        wanted = replace(self.wanted, replace=replaced)
        return mpi, plan_stack(self.stack, mpi, wanted, self.machine)

    @property
    def own_named(self) -> bool:
        """Whether the guest's own MPI was asked for by name, and is not there by default."""
        return "own" in self.spec.guest
