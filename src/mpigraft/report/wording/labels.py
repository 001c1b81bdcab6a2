"""Short names, colours' families and line styles of configurations in charts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

VERSION = re.compile(r"@[^/]*")
FAMILIES = ("openmpi", "mpich", "intel", "cray-mpich", "mvapich")


def short(names: Sequence[str]) -> dict[str, str]:
    """Ids without their versions, where that leaves them different: openmpi ob1-sm; without the
    family too where all share it: ucx."""
    bare = {name: VERSION.sub("", name).replace("/", " ") for name in names}
    families = {name.partition(" ")[0] for name in bare.values()}
    if len(families) == 1 and all(" " in name for name in bare.values()):
        bare = {name: label.partition(" ")[2] for name, label in bare.items()}  # as "ofi", "ucx"
    times = Counter(bare.values())
    return {name: label if times[label] == 1 else name for name, label in bare.items()}


def styles(names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """(hue, variant) of each configuration: a hue per family, a variant per transport.

    Names of no known family take a hue each, from the back, so that two imports differ. Two of one
    family and transport, as two versions are, get a variant each.
    """
    transports = sorted({name.partition("/")[2] for name in names})
    used: Counter[int] = Counter()
    styles_of: dict[str, tuple[int, int]] = {}
    for name in sorted(names):
        head, _, transport = name.partition("/")
        family = head.partition("@")[0]
        hue = FAMILIES.index(family) if family in FAMILIES else _free(used)
        variant = transports.index(transport)
        while (hue, variant) in styles_of.values():
            variant += 1
        styles_of[name] = (hue, variant)
        used[hue] += 1
    return styles_of


def _free(used: Counter[int]) -> int:
    return min(range(len(FAMILIES)), key=lambda hue: (used[hue], hue))
