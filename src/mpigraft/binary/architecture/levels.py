"""The kinds of CPU that loaders distinguish, by the flags of /proc/cpuinfo.

glibc searches folders for some CPUs before the folder itself: glibc-hwcaps/x86-64-v3, and until
2.36 haswell/avx512_1 and the like. So one program may map other files on another CPU.

Sources: glibc sysdeps/x86_64/dl-hwcaps_subdirs.c, sysdeps/x86/cpu-features.c, elf/dl-hwcaps.c.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

# Folder, and the flags that it asks for beside those of the one before.
X86_LEVELS = (
    ("x86-64-v2", frozenset(["cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"])),
    ("x86-64-v3", frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"])),
    ("x86-64-v4", frozenset(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])),
)
INTEL = "GenuineIntel"
HASWELL = frozenset(["avx2", "bmi1", "bmi2", "abm", "movbe", "popcnt", "fma"])
AVX512_1 = frozenset([INTEL, "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"])
XEON_PHI = frozenset(["avx512f", "avx512cd", "avx512er", "avx512pf"])
ATOMICS = "atomics"
MASKED = (
    "masked"  # no flag of a CPU: glibc.cpu.hwcap_mask and LD_HWCAP_MASK can hide the older ones
)

HERE = "this CPU"
V2, V3, V4 = (
    frozenset().union(*(flags for _, flags in X86_LEVELS[: number + 1])) for number in range(3)
)
LEVELS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "x86_64": {
        "x86-64-v4": V4,
        "x86-64-v4 of Intel": V4 | {INTEL},
        "x86-64-v3": V3,
        "x86-64-v3 of Intel": V3 | {INTEL},
        "Xeon Phi": V3 | XEON_PHI | {INTEL},
        "x86-64-v2": V2,
        "x86-64-v1": frozenset(),
        "x86-64-v4 of Intel masked": V4 | {INTEL, MASKED},
        "x86-64-v1 masked": frozenset([MASKED]),
    },
    "aarch64": {
        "aarch64 with atomics": frozenset([ATOMICS]),
        "aarch64": frozenset(),
        "aarch64 masked": frozenset([MASKED]),
    },
}
DECIDING = frozenset().union(*(flags for rows in LEVELS.values() for flags in rows.values()))


def parse_flags(cpuinfo: str) -> frozenset[str]:
    """Give the flags of the first CPU of /proc/cpuinfo that decide what a loader searches."""
    first = cpuinfo.partition("\n\n")[0]
    rows = re.findall(r"^(?:flags|Features|vendor_id)\s*:(.*)$", first, re.MULTILINE)
    return DECIDING.intersection(word for row in rows for word in row.split()) - {MASKED}


@lru_cache(maxsize=4)
def cpu_flags(machine: str) -> frozenset[str]:
    """Give the deciding flags of this machine's CPU; none for another architecture."""
    if platform.machine() != machine:
        return frozenset()
    try:
        return parse_flags(Path("/proc/cpuinfo").read_text(errors="replace"))
    except OSError:
        return frozenset()


def levels_of(machine: str, flags: frozenset[str] | None) -> dict[str, frozenset[str]]:
    """Give {level: flags} of the CPUs that an architecture has, and as the first one, `HERE`, the
    CPU with these flags; None where they are not known."""
    known = LEVELS.get(machine, {"any": frozenset()})
    return {**({} if flags is None else {HERE: flags}), **known}
