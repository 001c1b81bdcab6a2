"""A rank that prints a million lines: `mpigraft run` hands them on, and holds none of them."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from tests.native.native_world import compile_c

pytestmark = pytest.mark.mpi

LINES = 1_000_000
ENTRY = (sys.executable, "-m", "mpigraft.cli.entry", "run")


def peak_kib(pid: int) -> int:
    """The most memory that a process has held so far; 0: it has ended."""
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) if found else 0
    return 0


def printed(program: Path, lines: int, *words: str) -> int:
    """KiB at most of the process that was asked, while all lines came, in their order."""
    argv = [*ENTRY, *words, "-n", "2", "--", str(program), str(lines)]
    peak = due = 0
    with subprocess.Popen(argv, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout
        rest = b""
        while block := process.stdout.read(1 << 16):
            *whole, rest = (rest + block).split(b"\n")
            assert whole == [b"%d" % n for n in range(due, due + len(whole))]
            due += len(whole)
            peak = max(peak, peak_kib(process.pid))
    assert (process.returncode, due, rest) == (0, lines, b"")
    return peak


@pytest.mark.parametrize(
    "family", [pytest.param(Family.OPENMPI, marks=pytest.mark.long), Family.MPICH]
)
def test_a_rank_that_prints_a_million_lines(
    mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path, family: Family
) -> None:
    prefix = mpis[family]
    library = next(p for p in (prefix / "lib").glob("libmpi.so.*") if p.name.count(".") == 2)
    source = Path(__file__).with_name("loud.c")
    program = compile_c(source, tmp_path / "loud", "-isystem", prefix / "include", library)
    words = ("--mpi", f"{family.value}@5")
    peaks = {}
    for lines in (10, LINES):
        for _ in range(2):  # the first plans, which takes memory of its own
            peaks[lines] = printed(program, lines, *words)
    assert 0 < peaks[LINES] < peaks[10] + 2048, peaks
