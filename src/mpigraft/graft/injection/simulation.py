"""Simulate one program under the loader: what it loads and binds without the host's files and with
them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol

from mpigraft.binary import (
    Elf,
    Resolved,
    Rule,
    UnboundSymbol,
    UnmetVersion,
    unbound_symbols,
    unmet_versions,
)

if TYPE_CHECKING:
    from pathlib import PurePath

    from mpigraft.graft.injection.private_names import PrivateNames

MPI_SYMBOL = re.compile(r"P?MPIX?_|p?mpix?_|ompi_|_ZN3MPI")  # C, Fortran, Open MPI's handles, C++
PRIVATE = "mpigraft-"  # before the name of a private copy, and of its symbols


class Sides(Protocol):
    """What is the host's, of the files that a process maps."""

    @property
    def names(self) -> PrivateNames:
        """The names of the host's libraries."""

    @property
    def plugin_names(self) -> Mapping[str, str]:
        """{path of a plugin of the host's: its name}."""

    def grafted(self, path: PurePath | str) -> bool:
        """Return whether the file at that path is the host's."""


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


def compare_levels(
    before: LoadedByLevel, after: LoadedByLevel, sides: Sides
) -> Iterator[SimulatedProgram]:
    """Compare a program without and with the host's files, once for all levels of CPU that load
    the same files in both cases."""
    pairs: dict[tuple[int, int], list[str]] = {}
    for level in before:
        pairs.setdefault((id(before[level]), id(after[level])), []).append(level)
    for levels in pairs.values():
        own = levels if len(pairs) > 1 else ()
        yield compare_loading(before[levels[0]], after[levels[0]], sides, own)


def compare_loading(
    before: Loaded, after: Loaded, sides: Sides, levels: Sequence[str] = ()
) -> SimulatedProgram:
    """Compare a program without and with the host's files: what it would miss only with them."""
    brought = brought_by(sides, after)
    known = {(u.by, u.library, u.node) for u in before.unmet} if after.unmet else set()
    unmet = [u for u in after.unmet if (u.by, u.library, u.node) not in known]
    refused = [u for u in after.unmet if u not in unmet]
    started = takewhile(lambda r: r.rule is not Rule.OPENED, after.objects)
    of_start = {after.main.name, *(r.elf.name for r in started if r.elf)}
    absent = {r.name for r in before.objects if r.path is None}
    return SimulatedProgram(
        program=before.program,
        main=before.main,
        before=before.objects,
        after=after.objects,
        unmet=tuple(u for u in unmet if u.by not in brought),
        broken=tuple(u for u in refused if u.by in of_start),
        unbound=tuple(u for u in _unbound(sides, before, after) if u.by not in brought),
        missing=tuple(
            r
            for r in after.objects
            if r.path is None
            and str(r.needed_by) not in brought
            and (r.name not in absent or sides.names.is_mpi(r.name))
        ),
        levels=tuple(levels),
    )


def brought_by(sides: Sides, after: Loaded) -> dict[str, str]:
    """Give {file, by path and by name: plugin that brought it}. What dlopen adds comes last, each
    plugin before its needs; the program starts without them."""
    names = sides.plugin_names
    origins: dict[str, str] = {}
    plugin = ""
    for r in after.objects:
        plugin = names.get(str(r.path), "") if r.rule is Rule.OPENED else plugin
        if plugin and r.path:
            origins |= dict.fromkeys((str(r.path), r.elf.name if r.elf else ""), plugin)
        elif plugin:
            origins[str(r.needed_by)] = plugin
    return origins


def _unbound(sides: Sides, before: Loaded, after: Loaded) -> Iterator[UnboundSymbol]:
    known = set(before.unbound) if after.unbound else set()
    for loose in after.unbound:
        if sides.grafted(loose.by):
            if plain(loose) in sides.names.homes:  # else the host has no such symbol either
                yield loose
        elif loose not in known or MPI_SYMBOL.match(loose.symbol):
            yield loose


def plain(loose: UnboundSymbol) -> str:
    """Give the symbol without its version, as the host's library names it."""
    return loose.symbol.partition("@")[0].removeprefix(PRIVATE)
