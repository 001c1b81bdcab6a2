"""The values of a program under the simulated loader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from mpigraft.binary import (
    Elf,
    Resolved,
    UnboundSymbol,
    UnmetVersion,
    unbound_symbols,
    unmet_versions,
)

if TYPE_CHECKING:
    from pathlib import PurePath

PRIVATE = "mpigraft-"  # before the name of a private copy, and of its symbols


class Sides(Protocol):
    """What is the host's, of the files that a process maps."""

    @property
    def homes(self) -> Mapping[str, set[str]]:
        """{symbol without version: sonames of the host's libraries that export it}."""

    @property
    def plugin_names(self) -> Mapping[str, str]:
        """{path of a plugin of the host's: its name}."""

    def grafted(self, path: PurePath | str) -> bool:
        """Whether the file at that path is the host's."""

    def is_mpi(self, name: str) -> bool:
        """Whether a library of that name is part of an MPI."""


@dataclass(frozen=True, eq=False)
class Loaded:
    """One program under the loader; `files` are it and its libraries, by the name asked for."""

    program: str
    main: Elf
    objects: tuple[Resolved, ...]

    @cached_property
    def files(self) -> list[tuple[str, Elf]]:
        first = (self.main.soname or self.program, self.main)
        return [first, *((r.name, r.elf) for r in self.objects if r.elf is not None)]

    @cached_property
    def unmet(self) -> tuple[UnmetVersion, ...]:
        names, files = zip(*self.files, strict=True)
        return unmet_versions(files, names)

    @cached_property
    def unbound(self) -> tuple[UnboundSymbol, ...]:
        return unbound_symbols([file for _, file in self.files])


LoadedByLevel = Mapping[str, Loaded]  # of one program; equal levels share one value


def distinct(programs: Iterable[LoadedByLevel]) -> tuple[Loaded, ...]:
    """Give what programs load on any level, each once."""
    return tuple({id(x): x for levels in programs for x in levels.values()}.values())


@dataclass(frozen=True, slots=True)
class SimulatedProgram:
    """One program under the simulated loader, without and with the graft."""

    program: str
    main: Elf = field(repr=False, compare=False)
    before: tuple[Resolved, ...]
    after: tuple[Resolved, ...]  # plugins last
    unmet: tuple[UnmetVersion, ...]  # version nodes missing after and not before
    unbound: tuple[UnboundSymbol, ...]  # symbols; those of MPI also when they were missing before
    missing: tuple[Resolved, ...]  # libraries not found after and not before
    broken: tuple[UnmetVersion, ...] = ()  # version nodes that were missing before too
    levels: tuple[str, ...] = ()  # of CPUs on which it is so; empty: all
