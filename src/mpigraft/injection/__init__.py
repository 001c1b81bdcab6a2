"""Which files of a host MPI go under a guest, and where: the loader is simulated until it fits.

Nothing is looked up in tables of known troubles: the guest's programs are loaded, on paper, over
the guest with the graft laid over it, and what the loader would miss says what else has to go in.
Network and MPI libraries are always the host's. Others stay the guest's as long as they have what
the host's libraries need of them (version nodes and symbols); else the host's go over them where
these have what the guest's programs need; else the host's libraries get private copies under
other names. glibc stays the guest's unless it is too old: then all of the host's goes in, since
its parts share private symbols.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpigraft.abi import binding_of
from mpigraft.injection.growth import Growth, plain
from mpigraft.injection.values import Choice, Collision, Injection, Simulated
from mpigraft.injection.view import Loaded, name_of
from mpigraft.linking import Unbound
from mpigraft.model import Bind, Copy, EnvRow, MpiAbi, Replace, Role, Scope
from mpigraft.resolve import Rule

if TYPE_CHECKING:
    from mpigraft.guest import Guest

__all__ = ["Choice", "Collision", "Injection", "Simulated", "inject"]

MPI_SYMBOL = re.compile(r"P?MPIX?_|p?mpix?_|ompi_|_ZN3MPI")  # C, Fortran, Open MPI's handles, C++
LD_CACHE = "/etc/ld.so.cache"
MAX_STEPS = 1000


def inject(
    guest: Guest,
    abi: MpiAbi,
    *,
    replace: Replace,
    place: str,
    glibc: bool = True,
    binds: bool = True,
    ours: Mapping[str, Path] | None = None,
    opened: Mapping[str, Sequence[str]] | None = None,
) -> Injection:
    """What of `abi` goes under `guest`, whose ranks see the graft folder at `place`.

    `glibc` False leaves the guest's glibc where it is, and what it lacks stays in `unmet`. The
    answer is always a whole one: whether it is good is for `check` to say. `binds` False: nothing
    is laid over the guest's files, for want of an engine that can. `ours` are programs of
    ours that go in too, {name below the graft folder: file}, and are to run as the guest's do.
    `opened` is what the guest's own MPI opens by name, where that stays: {opener: paths inside}.
    Raises ElfError or RootError for a program that cannot be read.
    """
    growth = Growth(guest, abi, replace, place, ours, opened)
    growth.allow_glibc, growth.binds = glibc and binds, binds
    before = tuple(growth.load(path) for path in growth.subjects)
    growth.begin(before)
    after = before
    for _ in range(MAX_STEPS):
        after = growth.load_all()
        if not growth.improve(after):
            break
    programs = tuple(_simulated(growth, b, a) for b, a in zip(before, after, strict=True))
    return Injection(
        replace=replace,
        place=place,
        copies=_copies(growth),
        binds=_binds(growth),
        environment=_environment(growth),
        glibc=growth.libc,
        glibc_lacking=tuple(sorted(growth.lacking, key=_by_number)),
        programs=programs,
        collisions=tuple(_collisions(growth, after)),
        absent=tuple(sorted(growth.absent.items())),
        closed=tuple(sorted(_closed(growth, after).items())),
        libmpi=_libmpi(growth, after),
        inputs=tuple(sorted(_inputs(growth, (*before, *after)))),
    )


def _by_number(node: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", node))


# ------------------------------------------------------------------ what the loader would say


def _simulated(growth: Growth, before: Loaded, after: Loaded) -> Simulated:
    brought = _brought(growth, after)
    known = {(u.by, u.library, u.node) for u in before.unmet}
    unmet = [u for u in after.unmet if (u.by, u.library, u.node) not in known]
    absent = {r.name for r in before.found if r.path is None}
    return Simulated(
        program=before.program,
        main=before.main,
        before=before.found,
        after=after.found,
        unmet=tuple(u for u in unmet if u.by not in brought),
        unbound=tuple(u for u in _unbound(growth, before, after) if u.by not in brought),
        missing=tuple(
            r
            for r in after.found
            if r.path is None
            and str(r.needed_by) not in brought
            and (r.name not in absent or growth.is_mpi(r.name))
        ),
    )


def _brought(growth: Growth, after: Loaded) -> dict[str, str]:
    """{file, by its path and by its name: name of the plugin that it came with}. What dlopen
    brings stands last, each plugin before what it needs; without that the program runs."""
    names = growth.plugin_names
    found: dict[str, str] = {}
    plugin = ""
    for r in after.found:
        plugin = names.get(str(r.path), "") if r.rule is Rule.OPENED else plugin
        if plugin and r.path:
            found |= dict.fromkeys((str(r.path), r.elf.name if r.elf else ""), plugin)
        elif plugin:
            found[str(r.needed_by)] = plugin
    return found


def _unbound(growth: Growth, before: Loaded, after: Loaded) -> Iterator[Unbound]:
    known = set(before.unbound)
    for loose in after.unbound:
        if growth.grafted(loose.by):
            if plain(loose) in growth.homes:  # else nobody has it at home either
                yield loose
        elif loose not in known or MPI_SYMBOL.match(loose.symbol):
            yield loose


def _closed(growth: Growth, after: Sequence[Loaded]) -> dict[str, str]:
    """Plugins that could not be opened, each with the first reason."""
    found: dict[str, str] = {}
    for one in after:
        brought = _brought(growth, one)
        for r in one.found:
            if r.rule is Rule.OPENED and r.problem and str(r.path) in brought:
                found.setdefault(brought[str(r.path)], r.problem)
        for lack in one.unmet:
            if lack.by in brought:
                found.setdefault(brought[lack.by], f"{lack.library} lacks {lack.node}")
    return found


def _collisions(growth: Growth, after: Sequence[Loaded]) -> Iterator[Collision]:
    """Names that both sides bring, and whose the ranks load."""
    seen = dict(growth.guests)
    for one in after:
        for r in one.found:
            if r.path and not growth.grafted(r.path) and str(r.path) not in growth.over:
                seen.setdefault(name_of(r), str(r.path))
    for name, path in sorted(seen.items()):
        library = growth.inside.get(name) or growth.offered.get(name)
        if library is None or library.role is Role.LIBC:
            continue
        choice = growth.choice.get(name)
        if choice is None:
            choice = Choice.HOST if name in growth.inside else Choice.GUEST
        yield Collision(name, path, library.path, choice, _why(choice, library.role))


def _why(choice: Choice, role: Role) -> str:
    if choice is Choice.PRIVATE:
        return "neither has all that the other side needs: the host's gets a name of its own"
    if choice is Choice.GUEST:
        return "it has all that the host's libraries need"
    if role in (Role.MPI, Role.NET):
        return "it is part of the MPI, or knows this machine's network"
    return "the guest's lacks what the host's libraries need"


def _libmpi(growth: Growth, after: Sequence[Loaded]) -> str:
    """The path inside at which ranks map their libmpi; empty when none does. One of the graft
    before the guest's own, which what does not fit would load."""
    paths = []
    for r in (r for one in after for r in one.found):
        binding = binding_of(name_of(r))
        if binding and binding.language == "c" and r.path:
            entry = growth.guest.root.find(str(r.path))
            paths.append(entry.path if entry else str(r.path))
    ours = [path for path in paths if growth.grafted(path) or path in growth.over]
    return next(iter((*ours, *paths)), "")


# ------------------------------------------------------------------ what goes in


def _copies(growth: Growth) -> tuple[Copy, ...]:
    """Every file of the graft's `lib`, and of glibc where it goes in."""
    found = {}
    for name, library in growth.inside.items():
        found[f"lib/{growth.file_name(name)}"] = library
    for plugin in growth.plugins:
        found[growth.name_of(plugin)] = plugin
    for library in growth.over.values():
        found.setdefault(growth.name_of(library), library)
    return tuple(
        Copy(
            source=library.path,
            name=name,
            digest=library.digest,
            edit=library.role is not Role.LIBC,
            rpath="" if library.role is Role.LIBC else growth.lib,
            soname=growth.soname(library) if growth.private(library.soname) else "",
            renamed=growth.renamed(library),
            symbols=() if library.role is Role.LIBC else growth.symbols(library),
        )
        for name, library in sorted(found.items())
    )


def _binds(growth: Growth) -> tuple[Bind, ...]:
    return tuple(
        Bind(
            source=f"{{graft}}/{growth.name_of(library)}",
            target=path,
            why=f"the guest's loader takes {library.soname} from here",
        )
        for path, library in sorted(growth.over.items())
    )


def _environment(growth: Growth) -> tuple[EnvRow, ...]:
    if not growth.search:
        return ()
    value = growth.environment()["LD_LIBRARY_PATH"]
    return (EnvRow("LD_LIBRARY_PATH", value, Scope.RANK, "plan"),)


def _inputs(growth: Growth, loaded: Sequence[Loaded]) -> Iterator[str]:
    for library in growth.abi.objects:
        yield library.path
    cache = growth.guest.root.find(LD_CACHE)  # a library that is installed changes it
    if cache and cache.source:
        yield str(cache.source)
    for one in loaded:
        paths = (one.program, *(str(r.path) for r in one.found if r.path))
        for path in paths:
            entry = growth.guest.root.find(path)
            if entry and entry.source:
                yield str(entry.source)
