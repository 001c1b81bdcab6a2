"""Benchmark suites by name: readers of their output, and those whose programs are started.

A new suite is one new file with a `parse` and one line here; if its programs can be started, one
more with the functions of `ProgramSuite`.
"""

from __future__ import annotations

from mpigraft.bench.suites import app, imb, imb_programs, mini, native, osu, osu_programs
from mpigraft.bench.suites.base import Parsed, Suite
from mpigraft.bench.suites.programs import ProgramSuite

NATIVE = "native"  # our own, which measures all its benchmarks in one launch
SUITES: dict[str, Suite] = {
    NATIVE: native,
    "osu": osu,
    "imb": imb,
}
PROGRAM_SUITES: dict[str, ProgramSuite] = {
    "osu": osu_programs,
    "imb": imb_programs,
    "app": app,
    "mini": mini,
}

__all__ = ["NATIVE", "PROGRAM_SUITES", "SUITES", "Parsed", "ProgramSuite", "Suite"]
