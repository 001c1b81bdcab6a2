"""A store that older versions began: a campaign is added to it while others read."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mpigraft.store import Store
from tests.mpi.campaigns import SHORT, mpigraft

pytestmark = pytest.mark.mpi

KEPT = Path(__file__).parents[1] / "data" / "store"
OLD = ("version1", "version2")
BENCH = ("--mpi", "openmpi@5", "--transport", "ob1-sm", "--rounds", "1", "--name", "new")


@pytest.mark.parametrize("version", OLD)
def test_bench_adds_to_it_while_results_are_read(
    version: str, fresh_home: Path, store_folder: Path
) -> None:
    store_folder.mkdir()
    file = Path(shutil.copy(KEPT / f"{version}.sqlite", store_folder))
    before = file.read_bytes()
    of = ("--store", store_folder)
    alone = mpigraft(*of, "results", "show", "kept", "--json")
    assert alone.returncode == 0, alone.stderr
    argv = [sys.executable, "-m", "mpigraft.cli.main", *map(str, of), "bench", *BENCH, *SHORT]
    reads = []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as bench:
        while bench.poll() is None:
            reads.append(mpigraft(*of, "results", "show", "kept", "--json"))
        _, told = bench.communicate(timeout=200)
    assert bench.returncode == 0, told
    assert reads, "it was read meanwhile"
    for read in (*reads, mpigraft(*of, "results", "show", "kept", "--json")):
        assert (read.returncode, read.stderr) == (0, alone.stderr)
        assert json.loads(read.stdout) == json.loads(alone.stdout)
    assert file.read_bytes() == before
    store = Store(store_folder)
    assert sorted(c.name for c in store.campaigns()) == ["kept", "new"]
    assert store.findings == ()
    newest = mpigraft(*of, "results", "show", "new")
    assert newest.returncode == 0, newest.stderr
    assert "ob1-sm" in newest.stdout
