"""Our C programs, and the choice of the build that fits an MPI.

Takes an MPI and an architecture; makes `Natives`: paths of programs, ready to start. May start the
site's compiler wrapper, and write its result to the cache.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.native.loading import failing_programs as failing_programs
    from mpigraft.native.programs import ALONE as ALONE
    from mpigraft.native.programs import BENCHMARK_OPTIONS as BENCHMARK_OPTIONS
    from mpigraft.native.programs import NOW as NOW
    from mpigraft.native.programs import PREBUILT as PREBUILT
    from mpigraft.native.programs import STARTUP as STARTUP
    from mpigraft.native.programs import VARS as VARS
    from mpigraft.native.programs import Natives as Natives
    from mpigraft.native.programs import benchmarks as benchmarks
    from mpigraft.native.programs import choose_natives as choose_natives
    from mpigraft.native.programs import choose_tool as choose_tool
    from mpigraft.native.programs import own_benchmarks as own_benchmarks
    from mpigraft.native.programs import settings_library as settings_library
    from mpigraft.native.programs import sources as sources
else:
    __getattr__ = exports(__name__)
