"""Whether the C programs of the wheel start on this machine, by starting each of them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from mpigraft.core.model import Abi
from mpigraft.core.process import clean, run_command
from mpigraft.native.programs import GUARD, PREBUILT, Program, programs

USAGE = re.compile(r"usage:|is called as")  # of a static program
REFUSED = re.compile(r"not found \(required by|cannot be preloaded")
LONGEST = 200  # characters of a reason
LIMIT_S = 10.0


def failing_programs(architecture: str) -> tuple[int, dict[Path, str]]:
    """Start every prebuilt program of an architecture: their number, and why some do not start.

    The loader lists what it would load and ends there (ld.so(8), LD_TRACE_LOADED_OBJECTS), so no
    MPI is needed; a static program prints its usage.
    """
    folder = PREBUILT / architecture
    every = [
        (folder / place / program.name, program)
        for program in programs().values()
        for place in ([""] if program.links == "none" else list(Abi))
    ]
    reasons = {path: _reason(path, program, folder / GUARD) for path, program in every}
    return len(every), {path: reason for path, reason in reasons.items() if reason}


def _reason(path: Path, program: Program, guard: Path) -> str:
    if not path.exists():
        return "no such file"
    argv, environ = path, {**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"}
    if program.kind:  # a library: named from its folder, since a blank would end its name
        argv, environ = guard, {**environ, "LD_PRELOAD": f"./{path.name}"}
    done = run_command([argv], env=environ, cwd=path.parent, limit_s=LIMIT_S)
    text = clean(done.stdout + done.stderr).strip()
    for line in text.splitlines():  # the loader goes on behind them
        if REFUSED.search(line) and path.name in line:
            return line.strip()
    if done.ok or USAGE.search(text):
        return ""
    return text[-LONGEST:] or f"it ends with {done.code}"
