"""The same calls of MPI in C and in each Fortran binding, on MPIs that have them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from tests.testbed import languages, rootfs, science
from tests.testbed.languages import BOUND

pytestmark = [pytest.mark.testbed, pytest.mark.mpi]

LIMIT_S = 60.0
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
DAILY = ("c", "use mpi_f08")  # which are furthest apart
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


@pytest.mark.parametrize(("mpi", "binding"), PAIRS)
@pytest.mark.usefixtures("fresh_home")
def test_each_call_of_each_binding_does_what_it_says(
    mpi: str, binding: str, cache_folder: Path, mpis: Mapping[Family, Path]
) -> None:
    program = languages.programs(cache_folder, mpi, mpis)[binding]
    done = start("run", "--mpi", mpi, "-n", "2", "--", program)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
