"""The tracing library: its tables, the folding of what it records, and the node's file."""

from __future__ import annotations

import ctypes
import os
import re
import runpy
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.native.programs import SOURCES, TRACE
from tests.native.native_world import World, abi_of, compile_c

TOOLS = Path(__file__).parents[2] / "tools"


def test_the_tables_are_those_of_the_header(mpis: Mapping[Family, Path]) -> None:
    tables = runpy.run_path(str(TOOLS / "write_calls.py"))["tables"]
    made = tables(*(mpis[family] / "include" for family in (Family.MPICH, Family.OPENMPI)))
    assert {name: (SOURCES / "calls" / name).read_text("ascii") for name in made} == made
    names = set(re.findall(r"^CALL\((\w+),", made["calls.h"], re.MULTILINE))
    assert {"Send", "Alltoallv", "Ineighbor_alltoallw", "Win_fence", "Mprobe"} <= names
    assert len(names) > 300


@pytest.fixture(scope="module")
def fold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c("fold.c", tmp_path_factory.mktemp("fold") / "fold", "-I", SOURCES)


def folded(fold: Path, calls: str) -> str:
    return subprocess.run([fold, calls], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize(
    ("calls", "loops"),
    [
        ("", ""),
        ("a", "a1"),
        ("aaaa", "4( a4 )"),
        ("abcd", "a1 b1 c1 d1"),
        ("abababc", "3( a3 b3 ) c1"),
        ("ababcababcababc", "3( 2( a6 b6 ) c3 )"),
        ("xabxabxab", "3( x3 a3 b3 )"),
        ("aabaaab", "2( a2 ) b1 3( a3 ) b1"),  # steps that differ stay apart
    ],
)
def test_repeats_become_loops(fold: Path, calls: str, loops: str) -> None:
    assert folded(fold, calls) == loops


def test_a_thousand_steps_take_as_many_nodes_as_ten(fold: Path) -> None:
    step = "abbcddddde" * 3 + "f"
    ten, thousand = (re.sub(r"\d+", "", folded(fold, "s" + step * n)) for n in (10, 1000))
    assert ten == thousand


def test_what_is_folded_unfolds_to_the_same(fold: Path) -> None:
    assert subprocess.run([fold], check=False).returncode == 0


IN_OPEN = 0x20


@pytest.mark.mpi
@pytest.mark.parametrize("how", ["fine", "abort"])
def test_a_file_is_opened_and_closed_after_the_last_count(
    world: World, tmp_path: Path, how: str
) -> None:
    """So that a client of NFS sends what was written through a map; other nodes read it."""
    prefix, folder = world.mpis[Family.MPICH], tmp_path / "records"
    library = next(p for p in (prefix / "lib").glob("libmpi.so.*") if p.name.count(".") == 2)
    program = compile_c("last.c", tmp_path / "last", "-isystem", prefix / "include", library)
    folder.mkdir()
    environ = {
        **world.environment(Family.MPICH),
        "LD_PRELOAD": str(world.programs / abi_of(Family.MPICH) / TRACE),
        "MPIGRAFT_TRACE": str(folder),
    }
    libc, pipe = ctypes.CDLL(None), subprocess.PIPE
    with subprocess.Popen([program, how], env=environ, stdin=pipe, stdout=pipe, text=True) as rank:
        assert rank.stdout is not None
        assert rank.stdout.readline() == "in\n"
        # the end of a map is an event of closing too, but sends nothing
        watch = libc.inotify_init1(os.O_NONBLOCK)
        libc.inotify_add_watch(watch, os.fsencode(folder), IN_OPEN)
        rank.communicate("go on\n", timeout=60)
    opened = os.read(watch, 4096)
    os.close(watch)
    assert b".trace\0" in opened
