"""Short names, colours' families and line styles of configurations in charts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

# openmpi@5.0.11/ofi-lnx, with @GUEST where it is injected; GUEST:openmpi@4.1.6/ob1-sm is its own.
ID = re.compile(
    r"(?:(?P<own>.+):)?(?P<family>[\w-]+)(?:@[^/]*)?/(?P<transport>[^@+\[]*)(?:@(?P<into>[^+\[]*))?"
)
VERSION = re.compile(r"@[^/@]*(?=/)")
DASHES = (  # of lines, by variant
    *("", "7 3", "2 3", "8 3 2 3", "14 4", "14 3 2 3 2 3", "4 5", "1 5", "5 2 1 2", "20 3 2 3"),
)
NO_ROLES: Mapping[str, str] = {}
FAMILIES = ("openmpi", "mpich", "intel", "cray-mpich", "mvapich")


def short(names: Sequence[str], roles: Mapping[str, str] = NO_ROLES) -> dict[str, str]:
    """Ids without their versions, where that leaves them different: openmpi ob1-sm; without the
    family too where all share it: ucx. Of a guest with a role in its place: ucx own, ucx
    injected; without the transport too where all share it: own, injected."""
    known = roles if all(name in roles for name in names) else NO_ROLES
    ids = {name: _outside(name) if known else name for name in names}
    bare = {name: VERSION.sub("", one, count=1).replace("/", " ") for name, one in ids.items()}
    families = {label.partition(" ")[0].rpartition(":")[2] for label in bare.values()}
    if len(families) == 1 and all(" " in label for label in bare.values()):
        family = f"{families.pop()} "
        bare = {name: label.replace(family, "", 1) for name, label in bare.items()}
    if known:
        alike = len(set(bare.values())) == 1
        bare = {n: known[n] if alike else f"{label} {known[n]}" for n, label in bare.items()}
    times = Counter(bare.values())
    return {name: label if times[label] == 1 else name for name, label in bare.items()}


def _outside(name: str) -> str:
    """Return an id without its guest."""
    if (found := ID.match(name)) is None:
        return name
    (_, own), (start, end) = found.span("own"), found.span("into")
    kept = name[: start - 1] + name[end:] if start > 0 else name
    return kept[own + 1 :] if own > 0 else kept


def styles(names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """(hue, variant) of each configuration: a hue per family outside of guests, injected into one,
    and of a guest's own; a variant per transport.

    Names of no known family take a hue each, from the back, so that two imports differ. Two of one
    hue and transport, as two versions are, get a variant each.
    """
    parts = {name: found.groupdict() if (found := ID.match(name)) else {} for name in names}
    transports = sorted({part.get("transport", name) for name, part in parts.items()})
    used: Counter[int] = Counter()
    hues: dict[tuple[str | None, ...], int] = {}
    styles_of: dict[str, tuple[int, int]] = {}
    for name in sorted(names, key=lambda name: (bool(_guest(parts[name])), name)):
        family, guest = parts[name].get("family", ""), _guest(parts[name])
        own = (family, guest, parts[name].get("into")) if family else (name,)
        if own not in hues:
            known = family in FAMILIES and not guest
            hues[own] = FAMILIES.index(family) if known else _free(used)
        hue, variant = hues[own], transports.index(parts[name].get("transport", name))
        while (hue, variant) in styles_of.values():
            variant += 1
        styles_of[name] = (hue, variant)
        used[hue] += 1
    return styles_of


def dash(variant: int) -> str:
    """Return the dashes of a line, empty for a solid one."""
    return DASHES[variant % len(DASHES)]


def looks(named: Mapping[str, str]) -> dict[str, dict[str, object]]:
    """Return the label, hue and dashes of each configuration, as charts take them."""
    return {
        name: {"label": named[name], "hue": hue, "dash": dash(variant)}
        for name, (hue, variant) in styles(sorted(named)).items()
    }


def _guest(part: Mapping[str, str | None]) -> str | None:
    return part.get("own") or part.get("into")


def _free(used: Counter[int]) -> int:
    return min(range(len(FAMILIES)), key=lambda hue: (used[hue], hue))
