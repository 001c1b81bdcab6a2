"""Short names, colours' families and line styles of configurations in charts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

VERSION = re.compile(r"@[^/]*")
FAMILIES = ("openmpi", "mpich", "intel", "cray-mpich", "mvapich")


def short(names: Sequence[str]) -> dict[str, str]:
    """Ids without their versions, where that leaves them different: openmpi ob1-sm."""
    bare = {name: VERSION.sub("", name).replace("/", " ") for name in names}
    times = Counter(bare.values())
    return {name: label if times[label] == 1 else name for name, label in bare.items()}


def styles(names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """(hue, variant) of each configuration: a hue per family, a variant within it.

    Names of no known family take a hue each, from the back, so that two imports differ.
    """
    used: Counter[int] = Counter()
    found = {}
    for name in sorted(names):
        head = name.partition("@")[0]
        hue = FAMILIES.index(head) if head in FAMILIES else _free(used)
        found[name] = (hue, used[hue])
        used[hue] += 1
    return found


def _free(used: Counter[int]) -> int:
    return min(range(len(FAMILIES)), key=lambda hue: (used[hue], hue))
