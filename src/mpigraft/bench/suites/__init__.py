"""Benchmark suites: how each is started and how its output is read.

Takes a benchmark; makes argument lists and measurements. Computes alone. One module for each suite.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.bench.suites.base import Parsed as Parsed
    from mpigraft.bench.suites.base import Place as Place
    from mpigraft.bench.suites.base import damaged as damaged
    from mpigraft.bench.suites.base import number as number
    from mpigraft.bench.suites.base import printed_step as printed_step
    from mpigraft.bench.suites.base import text_lines as text_lines
    from mpigraft.bench.suites.programs import Tool as Tool
    from mpigraft.bench.suites.rank_files import RankFiles as RankFiles
    from mpigraft.bench.suites.registry import NATIVE as NATIVE
    from mpigraft.bench.suites.registry import PROGRAM_SUITES as PROGRAM_SUITES
    from mpigraft.bench.suites.registry import SUITES as SUITES
    from mpigraft.bench.suites.worlds import read_worlds as read_worlds
else:
    __getattr__ = exports(__name__)
