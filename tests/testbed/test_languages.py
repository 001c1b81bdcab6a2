"""The same calls of MPI in C and in each Fortran binding, on MPIs that have them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from testbed import languages, rootfs, science
from testbed.images import Images
from testbed.languages import BOUND

pytestmark = [pytest.mark.testbed, pytest.mark.mpi]

LIMIT_S = 60.0
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# By hand, of two ranks: (calls, bytes of data).
BY_HAND = {
    "Sendrecv": (16, 2 * (4 * 32 + 16 + 12 + 8 + 8)),
    "Wait": (46, 0),
    "Waitall": (12, 0),
    "Startall": (6, 192),  # of its sends
    "Alltoall": (4, 256),
    "Alltoallw": (2, 32),
    "Put": (4, 128),
    "Mrecv": (1, 32),
    "Bsend": (1, 32),
    "Send": (5, 64),  # two go nowhere
    "Allreduce": (8, 200),
    "Type_commit": (12, 0),
    "Fetch_and_op": (4, 16),
    "Neighbor_alltoall": (2, 256),
    "Testsome": (2, 0),
}
DAILY = {"c", "use mpi_f08"}
PAIRS = [
    pytest.param(mpi, binding, marks=[] if binding in DAILY else [pytest.mark.long])
    for mpi, bound in BOUND.items()
    for binding in bound.bindings
]


@pytest.fixture(scope="module", autouse=True)
def bookworm() -> None:
    if rootfs.own_suite() != science.SUITE:
        pytest.skip(f"these MPIs are of Debian {science.SUITE}")


def start(command: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Start a command of mpigraft to its end."""
    return subprocess.run(
        [sys.executable, "-m", "mpigraft.cli.main", command, *map(str, words)],
        env={**os.environ, **ROOT}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=LIMIT_S, check=False,
    )  # fmt: skip


Counts = dict[str, tuple[int, int, list[tuple[int, int, int]]]]


def counted(mpi: str, program: Path, to: Path) -> Counts:
    """Calls, bytes and sizes of each routine of a program that `mpigraft profile` ran."""
    done = start("profile", "--mpi", mpi, "-n", "2", "-o", to, "--", program)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
    routines = json.loads(to.read_text(encoding="utf-8"))["profile"]["routines"]
    return {
        row["name"]: (
            row["calls"],
            row["bytes"],
            [(size["least"], size["calls"], size["bytes"]) for size in row["sizes"]],
        )
        for row in routines
    }


@pytest.fixture(scope="module")
def of_c() -> dict[str, Counts]:
    """What is counted of the program in C on each MPI, once it ran."""
    return {}


@pytest.mark.parametrize(("mpi", "binding"), PAIRS)
@pytest.mark.usefixtures("fresh_home")
def test_a_profile_counts_each_call_once_in_every_language(
    mpi: str, binding: str, of_c: dict[str, Counts], cache_folder: Path, tmp_path: Path,
    mpis: Mapping[Family, Path],
) -> None:  # fmt: skip
    programs = languages.programs(cache_folder, mpi, mpis)
    if mpi not in of_c:
        of_c[mpi] = counted(mpi, programs["c"], tmp_path / "c.json")
    due = of_c[mpi]
    assert len(due) > 120
    assert {name: due[name][:2] for name in BY_HAND} == BY_HAND
    found = due if binding == "c" else counted(mpi, programs[binding], tmp_path / "it.json")
    assert found == due


@pytest.mark.root
@pytest.mark.parametrize("binding", [
    pytest.param("mpif.h", marks=pytest.mark.long), pytest.param("use mpi", marks=pytest.mark.long),
    "use mpi_f08",
])  # fmt: skip
def test_every_fortran_binding_of_mpich_4_runs_on_mpich_5(
    binding: str, images: Images, need: Callable[..., None], outside: Mapping[str, str],
    cache_folder: Path, mpis: Mapping[Family, Path],
) -> None:  # fmt: skip
    """The image's own bindings stay over a libmpi that lacks three functions of theirs; the program
    tests all values that it receives."""
    need("bwrap")
    program = languages.programs(cache_folder, "mpich@4.0.2", mpis)[binding]
    done = subprocess.run(
        [sys.executable, "-m", "mpigraft.cli.main", "run", "--image",
         images.folder("bookworm-mpich"), "--engine", "bwrap", "--mpi", "mpich@5", "-n", "2", "--",
         f"./{program.name}"],
        cwd=program.parent, env={**os.environ, **outside}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
