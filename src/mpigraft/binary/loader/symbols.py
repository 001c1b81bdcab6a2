"""Find what the loader would refuse of a set of objects, and the symbols that it would miss.

Versions: glibc elf/dl-version.c. Symbols: elf/dl-lookup.c, do_lookup_x and check_match.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from mpigraft.binary.elf.reader import Elf, ElfError, Symbol

MAX_KEPT = 1024  # objects whose names are kept as sets
MAX_SETS = 256  # sets of libraries whose missing symbols are cached
MAX_UNBOUND = 1 << 15  # of one scope; a program that lacks a library misses hundreds
MAX_SYMBOLS = 1 << 21  # of all of them; each takes a hundred bytes or two
MAX_SCOPE = 1 << 20  # of one scope: all libraries of a desktop have a third of a million

Reference = str | tuple[str, str]  # a name, or (name, version); the former takes half the memory


@dataclass(frozen=True, slots=True)
class UnmetVersion:
    """A version node that a library lacks: the loader fails before the program starts."""

    by: str  # file that needs it
    library: str  # soname that is to define it
    node: str
    provider: str  # file that has that name


@dataclass(frozen=True, slots=True)
class UnboundSymbol:
    """A symbol that no object provides: the program fails when it is bound or first called."""

    by: str
    library: str  # that should define it; empty where the reference names none
    symbol: str  # name, or name@NODE


def unmet_versions(objects: Sequence[Elf], names: Sequence[str]) -> tuple[UnmetVersion, ...]:
    """List version nodes that are needed and not defined by the object of that name.

    `names`: the name under which each object was found, which counts besides its soname. Weak
    needs do not count, nor needs of an object without any definitions: the loader warns of both.
    Needs of a missing library do not count either.
    """
    named: dict[str, Elf] = {}
    for file, name in zip(objects, names, strict=True):
        named.setdefault(name, file)
        named.setdefault(file.soname or name, file)
    unmet: dict[UnmetVersion, None] = {}
    for file in objects:
        for need in file.needs:
            other = named.get(need.library)
            if need.weak or other is None or not other.version_defs:
                continue
            # The base definition, left out of `version_defs`, bears the soname.
            if need.node not in other.version_defs and need.node != other.soname:
                unmet[UnmetVersion(file.name, need.library, need.node, other.name)] = None
    return tuple(unmet)


def unbound_symbols(
    objects: Sequence[Elf], of: Sequence[Elf] | None = None
) -> tuple[UnboundSymbol, ...]:
    """List strong undefined symbols that no object provides, in the order of the objects.

    `objects`: one scope, such as a program's closure. `of`: the objects whose references count,
    when not all: those of a plugin, whose own objects are in the scope too. Raises ElfError for an
    object whose symbols cannot be read, for more than MAX_SCOPE symbols, and where more than
    MAX_UNBOUND are missing.
    """
    _bound_scope(objects)
    if of is not None:
        scope = [_links(file) for file in objects]
        largest = sorted(scope, key=_size)
        return tuple(_described((file, _lacking(file, scope, largest)) for file in map(_links, of)))
    if not objects:
        return ()
    first, *rest = objects
    main, libraries = _links(first), _set_of(rest)
    every = [main, *libraries.scope]
    of_libraries = (
        (links, [r for r in libraries.lacking(links) if not main.provides(r)])
        for links in libraries.scope
    )
    of_main = _lacking(main, every, sorted(every, key=_size))
    return tuple(_described(chain([(main, of_main)], of_libraries)))


def _bound_scope(objects: Sequence[Elf]) -> None:
    total = 0
    for file in objects:
        total += file.symbols
        if total > MAX_SCOPE:
            what = f"with it, a program and its libraries have more than {MAX_SCOPE:,} symbols"
            raise ElfError(f"{file.name}: {what}")


def _described(lacking: Iterable[tuple[_Links, list[Reference]]]) -> Iterator[UnboundSymbol]:
    total = 0
    for links, references in lacking:
        total += len(references)
        if total > MAX_UNBOUND:
            what = f"with it, a program and its libraries miss more than {MAX_UNBOUND:,} symbols"
            raise ElfError(f"{links.file.name}: {what}")
        yield from links.describe(references)


def _size(links: _Links) -> int:
    """Sort the largest first: it has most symbols, and the order does not change the result."""
    return -len(links.provided)


def _lacking(links: _Links, scope: Sequence[_Links], largest: Sequence[_Links]) -> list[Reference]:
    unmet = links.wanted
    for other in largest:
        unmet -= other.provided
        if not unmet:
            break
    lacking = [r for r in unmet if not _met(r, scope)]
    others = [other for other in scope if other is not links] if links.copied else []
    return lacking + [r for r in links.copied if not _met(r, others)]


def _met(reference: Reference, scope: Sequence[_Links]) -> bool:
    return any(other.provides(reference) for other in scope)


class _Set:
    """The libraries of a program, without it. Many programs of an image share them, and what they
    lack among themselves is computed once."""

    def __init__(self, scope: Sequence[_Links]) -> None:
        self.scope = tuple(scope)
        self._largest = sorted(scope, key=_size)
        self._lacking: dict[int, list[Reference]] = {}

    def lacking(self, links: _Links) -> list[Reference]:
        """List what one of them finds in none of them."""
        if id(links) not in self._lacking:
            self._lacking[id(links)] = _lacking(links, self.scope, self._largest)
        return self._lacking[id(links)]


def _reference(symbol: Symbol) -> Reference:
    return (symbol.name, symbol.version) if symbol.version else symbol.name


def _name(reference: Reference) -> str:
    return reference if isinstance(reference, str) else reference[0]


class _Links:
    """One object's references and definitions, as sets."""

    def __init__(self, file: Elf) -> None:
        self.file = file
        self.wanted = frozenset(_reference(s) for s in file.imported if not s.weak)
        # Definitions that serve a reference: by name and version; without a version by the default
        # one, or by the first node ever, which is what a program means that was linked before the
        # library had versions.
        self.provided: set[Reference] = set()
        # A program's copy of a library's variable is a definition for all, and a reference too.
        self.copied = frozenset(_reference(s) for s in file.copied if not s.weak)
        # Defined without a version: it serves a reference with any version. In a file without
        # versions these are all, and one set serves for both.
        self.plain: set[Reference] = set() if file.has_versions else self.provided
        first = next(iter(file.version_defs), None)
        for name, version, _, default, _, _, _ in file.each_exported():
            if version is None:
                self.provided.add(name)
                if default:
                    self.plain.add(name)
                continue
            self.provided.add((name, version))
            if default or version == first:
                self.provided.add(name)

    def provides(self, reference: Reference) -> bool:
        return reference in self.provided or _name(reference) in self.plain

    def describe(self, references: Sequence[Reference]) -> Iterator[UnboundSymbol]:
        """Describe references, in the order of their names."""
        if not references:
            return
        libraries = {_reference(s): s.library for s in (*self.file.imported, *self.file.copied)}
        for name, version in sorted((r, "") if isinstance(r, str) else r for r in references):
            text = f"{name}@{version}" if version else name
            library = libraries.get((name, version) if version else name)
            yield UnboundSymbol(self.file.name, library or "", text)


_KEPT: OrderedDict[int, _Links] = OrderedDict()  # by id(): hashing an Elf costs more than linking


def _links(file: Elf) -> _Links:
    links = _KEPT.pop(id(file), None)
    if links is None or links.file is not file:
        links = _Links(file)
        _count_symbols(len(links.wanted) + len(links.provided))
    _KEPT[id(file)] = links
    if len(_KEPT) > MAX_KEPT:
        _KEPT.popitem(last=False)
    return links


_SETS: OrderedDict[tuple[int, ...], _Set] = OrderedDict()
_made = 0  # symbols of all links that were made since the last time that none were kept


def _count_symbols(number: int) -> None:
    """Start anew with a full cache: the files of many large programs would fill the memory."""
    global _made  # noqa: PLW0603
    _made += number
    if _made > MAX_SYMBOLS:
        _made = 0
        _KEPT.clear()
        _SETS.clear()


def _set_of(files: Sequence[Elf]) -> _Set:
    key = tuple(map(id, files))
    known = _SETS.pop(key, None)
    if known is None or any(a.file is not b for a, b in zip(known.scope, files, strict=True)):
        known = _Set([_links(file) for file in files])
    _SETS[key] = known
    if len(_SETS) > MAX_SETS:
        _SETS.popitem(last=False)
    return known
