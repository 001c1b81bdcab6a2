"""Compare what a program loads and binds without the host's files and with them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from mpigraft.binary import Rule, UnboundSymbol
from mpigraft.graft.loading.values import PRIVATE, Loaded, LoadedByLevel, Sides, SimulatedProgram

MPI_SYMBOL = re.compile(r"P?MPIX?_|p?mpix?_|ompi_|_ZN3MPI")  # C, Fortran, Open MPI's handles, C++


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
            and (r.name not in absent or sides.is_mpi(r.name))
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
            if plain(loose) in sides.homes:  # else the host has no such symbol either
                yield loose
        elif loose not in known or MPI_SYMBOL.match(loose.symbol):
            yield loose


def plain(loose: UnboundSymbol) -> str:
    """Give the symbol without its version, as the host's library names it."""
    return loose.symbol.partition("@")[0].removeprefix(PRIVATE)
