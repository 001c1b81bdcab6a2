"""Where a configuration runs: on this machine, in a guest with this MPI, or on the guest's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from mpigraft import graft
from mpigraft.errors import AnswerIsNo, MissingError
from mpigraft.graft import Wanted
from mpigraft.guest import Guest, examine
from mpigraft.model import GraftPlan, Machine, MpiInstall
from mpigraft.wish import WHERE, Wish

Skipped = list[tuple[str, str]]


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

    def own(self, skipped: Skipped) -> tuple[MpiInstall, GraftPlan] | None:
        """The guest's own MPI, where it was asked for and there is one."""
        if "own" not in self.where:
            return None
        try:
            return graft.own(self.guest, self.wanted)
        except MissingError as error:
            skipped.append((f"{self.guest.label.name}'s own MPI", error.seen))
            return None
