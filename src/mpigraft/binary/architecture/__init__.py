"""What loaders know of a machine: the usual loader of each architecture, the levels of its CPUs.

Takes the name of an architecture, or the text of /proc/cpuinfo; makes flags and levels. Reads
/proc/cpuinfo.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.binary.architecture.interpreters import INTERPRETERS as INTERPRETERS
    from mpigraft.binary.architecture.levels import ATOMICS as ATOMICS
    from mpigraft.binary.architecture.levels import AVX512_1 as AVX512_1
    from mpigraft.binary.architecture.levels import HASWELL as HASWELL
    from mpigraft.binary.architecture.levels import HERE as HERE
    from mpigraft.binary.architecture.levels import INTEL as INTEL
    from mpigraft.binary.architecture.levels import MASKED as MASKED
    from mpigraft.binary.architecture.levels import X86_LEVELS as X86_LEVELS
    from mpigraft.binary.architecture.levels import XEON_PHI as XEON_PHI
    from mpigraft.binary.architecture.levels import cpu_flags as cpu_flags
    from mpigraft.binary.architecture.levels import levels_of as levels_of
    from mpigraft.binary.architecture.levels import parse_flags as parse_flags
else:
    __getattr__ = exports(__name__)
