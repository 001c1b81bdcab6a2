"""Give the ELF facts that a host library's copy in a graft will have.

The loader is simulated over these facts: a machine's description is enough, its files are not
needed.
"""

from __future__ import annotations

from collections.abc import Mapping

from mpigraft.binary import Elf, Symbol, VersionNeed
from mpigraft.core.model import AbiObject

NARROW = frozenset({"i386", "arm", "ppc", "mips"})  # of 32 bits
BIG = frozenset({"s390x", "ppc", "ppc64", "mips"})


def as_elf(
    library: AbiObject,
    *,
    name: str = "",
    rpath: str | None = None,
    soname: str = "",
    renamed: Mapping[str, str] | None = None,
    symbols: Mapping[str, str] | None = None,
) -> Elf:
    """Give the facts of `library`, as it is or with another name, search path, soname, needed names
    and symbol names. The same words give the same value: grafts of one MPI share most of them."""
    pairs = (tuple((one or {}).items()) for one in (renamed, symbols))
    key = (name, rpath, soname, *pairs)
    _, known = _MADE.setdefault(id(library), (library, {}))
    if key not in known:
        if len(_MADE) > MAX_MADE:
            _MADE.clear()
        known[key] = _as_elf(library, name, rpath, soname, dict(renamed or {}), dict(symbols or {}))
    return known[key]


_MADE: dict[int, tuple[AbiObject, dict[tuple[object, ...], Elf]]] = {}  # by id(), as none is hashed
MAX_MADE = 2048


def _as_elf(
    library: AbiObject,
    name: str,
    rpath: str | None,
    soname: str,
    names: Mapping[str, str],
    others: Mapping[str, str],
) -> Elf:
    nodes = {node: library for library, node, _ in library.needs}
    facts = Elf(
        name=name or library.path,
        machine=library.machine,
        bits=32 if library.machine in NARROW else 64,
        endian="big" if library.machine in BIG else "little",
        type="dyn",
        osabi=0,
        dynamic=True,
        soname=soname or library.soname,
        needed=tuple(names.get(needed, needed) for needed in library.needed),
        rpath=library.rpath or None if rpath is None else rpath,
        runpath=library.runpath or None if rpath is None else None,
        needs=tuple(VersionNeed(names.get(of, of), node, weak) for of, node, weak in library.needs),
        version_defs=library.defines,
    )
    # Both are computed once from the file where there is one: here they are given.
    imported = tuple(_symbol(text, nodes, names, others) for text in library.imported)
    facts.__dict__["imported"] = imported
    facts.__dict__["exported"] = tuple(
        _symbol(text, {}, names, others) for text in library.exported
    )
    return facts


def _symbol(
    text: str, nodes: Mapping[str, str], names: Mapping[str, str], others: Mapping[str, str]
) -> Symbol:
    old, _, version = text.partition("@")
    name = others.get(old, old)
    node = version.removeprefix("@") or None
    of = nodes.get(node or "")
    library = names.get(of, of) if of else None
    # A definition without a version serves every reference, as a default one does.
    return Symbol(name, node, library, not node or version.startswith("@"), "func", False, 0)
