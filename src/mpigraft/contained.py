"""Where a configuration runs: on this machine, in a guest with this MPI, or on the guest's own."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from mpigraft import graft
from mpigraft.errors import AnswerIsNo, MissingError
from mpigraft.graft import Wanted
from mpigraft.guest import Guest, examine
from mpigraft.model import Family, GraftPlan, Machine, MpiInstall
from mpigraft.wish import WHERE, Wish

Skipped = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Own:
    """A guest's own MPI, its plan, and its name for a person: app.sif:openmpi@4.1.4."""

    mpi: MpiInstall
    plan: GraftPlan
    name: str


class Places:
    """The places that a wish names. The guest is looked at once, when it is first needed."""

    def __init__(self, wish: Wish, machine: Machine) -> None:
        self.wish, self.machine = wish, machine
        self.where = wish.guest or (WHERE if wish.image else ("native",))
        self.wanted = Wanted(engine=wish.engine, native_build=wish.native_build)

    @cached_property
    def guest(self) -> Guest:
        return examine(self.wish.image)

    @cached_property
    def bare(self) -> Guest:
        """The guest without its programs: what is measured in it is ours."""
        label = replace(self.guest.label, programs=())
        return replace(self.guest, label=label, libraries=())

    def of(self, mpi: MpiInstall, skipped: Skipped) -> Iterator[GraftPlan | None]:
        """None for this machine itself, and the plan for the guest. A pair that does not fit is
        left out, as is all that cannot run here."""
        if "native" in self.where:
            yield None
        if "grafted" in self.where:
            try:
                yield graft.planned(self.bare, mpi, self.machine, self.wanted)
            except (AnswerIsNo, MissingError) as error:
                skipped.append((f"{mpi.id} in {self.guest.label.name}", error.seen))

    def own(self, families: Collection[Family], skipped: Skipped) -> Own | None:
        """The guest's own MPI, one of `families` before others, where it was asked for and there
        is one. Under a transport that was named only an MPI of `families` is, unless `own` was
        named too: nobody asked for another one."""
        if "own" not in self.where:
            return None
        try:
            mpi, plan = graft.own(self.guest, self.wanted, families)
        except MissingError as error:
            skipped.append((f"{self.guest.label.name}'s own MPI", error.seen))
            return None
        name = f"{self.guest.label.name}:{mpi.id}"
        if self.wish.transport and not self.own_named and mpi.family not in families:
            why = "it is not of the MPI and transport that were named; --guest own asks for it"
            skipped.append((name, why))
            return None
        return Own(mpi, plan, name)

    @property
    def own_named(self) -> bool:
        """Whether the guest's own MPI was asked for by name, and is not there by default."""
        return "own" in self.wish.guest
