"""What the loader would refuse of a set of objects, and which symbols it would not find.

Versions: glibc elf/dl-version.c. Symbols: elf/dl-lookup.c, do_lookup_x and check_match.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mpigraft.elf import Elf

MAX_KEPT = 1024  # objects whose names are kept as sets
MAX_SETS = 256  # sets of libraries of which is kept what they lack

Reference = tuple[str, str | None]  # name, version


@dataclass(frozen=True, slots=True)
class Unmet:
    """A version node that a library has not: the loader ends before the program starts."""

    by: str  # file that needs it
    library: str  # soname that is to define it
    node: str
    found: str  # file that got that name


@dataclass(frozen=True, slots=True)
class Unbound:
    """A symbol that no object provides: the program ends when it is bound or first called."""

    by: str
    library: str  # that was to define it; empty where the reference does not say
    symbol: str  # name, or name@NODE


def unmet(objects: Sequence[Elf], names: Sequence[str]) -> tuple[Unmet, ...]:
    """Version nodes that are needed and not defined by the object that got that name.

    `names`: the name under which each object was found, which counts beside its soname. Weak
    needs do not count, nor needs of an object without any definitions: the loader warns of both.
    A library that is not there at all is no question of versions.
    """
    named: dict[str, Elf] = {}
    for file, name in zip(objects, names, strict=True):
        named.setdefault(name, file)
        named.setdefault(file.soname or name, file)
    found: dict[Unmet, None] = {}
    for file in objects:
        for need in file.needs:
            other = named.get(need.library)
            if need.weak or other is None or not other.version_defs:
                continue
            # The base definition, left out of `version_defs`, bears the soname.
            if need.node not in other.version_defs and need.node != other.soname:
                found[Unmet(file.name, need.library, need.node, other.name)] = None
    return tuple(found)


def unbound(objects: Sequence[Elf], of: Sequence[Elf] | None = None) -> tuple[Unbound, ...]:
    """Strong undefined symbols that no object provides, in the order of the objects.

    `objects`: one scope, as a program's closure is. `of`: whose references are looked at, when
    not all: those of a plugin, whose own objects stand in the scope too. Raises ElfError for an
    object whose symbols cannot be read.
    """
    if of is not None:
        scope = [_links(file) for file in objects]
        return tuple(loose for file in of for loose in _loose(_links(file), scope))
    if not objects:
        return ()
    first, *rest = objects
    main, libraries = _links(first), _set_of(rest)
    found = list(_loose(main, [main, *libraries.scope]))
    for links in libraries.scope:
        lacking = [r for r in libraries.lacking(links) if not main.provides(r)]
        found.extend(links.describe(lacking))
    return tuple(found)


def _loose(links: _Links, scope: Sequence[_Links]) -> Iterator[Unbound]:
    return links.describe(_lacking(links, scope, sorted(scope, key=_size)))


def _size(links: _Links) -> int:
    """What sorts the largest to the front: most is found there, and the order decides nothing."""
    return -len(links.provided)


def _lacking(links: _Links, scope: Sequence[_Links], largest: Sequence[_Links]) -> list[Reference]:
    left = links.wanted
    for other in largest:
        left -= other.provided
        if not left:
            break
    lacking = [r for r in left if not _met(r, scope)]
    others = [other for other in scope if other is not links] if links.copied else []
    return lacking + [r for r in links.copied if not _met(r, others)]


def _met(reference: Reference, scope: Sequence[_Links]) -> bool:
    return any(other.provides(reference) for other in scope)


class _Set:
    """The libraries of a program, without the program: many programs of an image have the same,
    and what these lack among themselves is the same each time."""

    def __init__(self, scope: Sequence[_Links]) -> None:
        self.scope = tuple(scope)
        self._largest = sorted(scope, key=_size)
        self._lacking: dict[int, list[Reference]] = {}

    def lacking(self, links: _Links) -> list[Reference]:
        """What one of them finds in none of them."""
        if id(links) not in self._lacking:
            self._lacking[id(links)] = _lacking(links, self.scope, self._largest)
        return self._lacking[id(links)]


class _Links:
    """One object's references and definitions, as sets."""

    def __init__(self, file: Elf) -> None:
        self.file = file
        self.wanted: frozenset[Reference] = frozenset(
            (name, version) for name, version, _, _, _, weak, _ in file.imported if not weak
        )
        # Met at the first look: by the same name and version, and without a version by the default
        # one, or by the first node ever, which is what a program means that was linked before the
        # library had versions.
        self.provided: set[Reference] = set()
        # Defined without a version: met is a reference with any version.
        self.plain: set[str] = set()
        # A program's copy of a library's variable is a definition for all, and a reference too.
        self.copied: frozenset[Reference] = frozenset(
            (s.name, s.version) for s in file.copied if not s.weak
        )
        first = next(iter(file.version_defs), None)
        for name, version, _, default, _, _, _ in file.exported:
            self.provided.add((name, version))
            if version is None:
                if default:
                    self.plain.add(name)
            elif default or version == first:
                self.provided.add((name, None))

    def provides(self, reference: Reference) -> bool:
        return reference in self.provided or reference[0] in self.plain

    def describe(self, references: Sequence[Reference]) -> Iterator[Unbound]:
        """In the order of their names."""
        if not references:
            return
        libraries = {
            (s.name, s.version): s.library for s in (*self.file.imported, *self.file.copied)
        }
        for name, version in sorted(references, key=lambda r: (r[0], r[1] or "")):
            text = f"{name}@{version}" if version else name
            yield Unbound(self.file.name, libraries.get((name, version)) or "", text)


_KEPT: OrderedDict[int, _Links] = OrderedDict()  # by id(): hashing an Elf costs more than linking


def _links(file: Elf) -> _Links:
    links = _KEPT.pop(id(file), None)
    if links is None or links.file is not file:
        links = _Links(file)
    _KEPT[id(file)] = links
    if len(_KEPT) > MAX_KEPT:
        _KEPT.popitem(last=False)
    return links


_SETS: OrderedDict[tuple[int, ...], _Set] = OrderedDict()


def _set_of(files: Sequence[Elf]) -> _Set:
    key = tuple(map(id, files))
    known = _SETS.pop(key, None)
    if known is None or any(a.file is not b for a, b in zip(known.scope, files, strict=True)):
        known = _Set([_links(file) for file in files])
    _SETS[key] = known
    if len(_SETS) > MAX_SETS:
        _SETS.popitem(last=False)
    return known
