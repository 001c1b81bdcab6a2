"""Room in /dev/shm: what ranks of the real MPIs take of it beside what the table says, and what
`run` says where it is short."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Abi, Family
from mpigraft.knowledge import limit_needs
from tests.builders.messages import matches

pytestmark = [pytest.mark.mpi, pytest.mark.root]

ROOT = Path(__file__).parents[2]
PREBUILT = ROOT / "src/mpigraft/native/prebuilt" / os.uname().machine
MPIGRAFT = str(Path(sys.executable).with_name("mpigraft"))
OWN = "mount -t tmpfs -o size={size} tmpfs /dev/shm; "
# Starts "$@" and prints the most KiB that its /dev/shm had.
PEAK = """
import os, subprocess, sys, time
ran, most = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL), 0
while ran.poll() is None:
    room = os.statvfs("/dev/shm")
    most = max(most, (room.f_blocks - room.f_bfree) * room.f_frsize >> 10)
    time.sleep(0.001)
print(most)
sys.exit(ran.returncode)
"""


def in_own_shm(size: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    if os.geteuid() or not shutil.which("unshare"):
        pytest.skip("only root mounts a file system")
    script = OWN.format(size=size) + 'exec "$@"'
    argv = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", *words]
    return subprocess.run(
        argv, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("ranks", [2, 4, pytest.param(8, marks=pytest.mark.long)])
@pytest.mark.parametrize("family", [Family.OPENMPI, Family.MPICH, Family.INTEL])
def test_ranks_take_what_the_table_says(
    mpis: Mapping[Family, Path], family: Family, ranks: int
) -> None:
    abi = Abi.OMPI if family is Family.OPENMPI else Abi.MPICH
    prefix = mpis[family]
    options = ["--oversubscribe", "--allow-run-as-root"] if family is Family.OPENMPI else []
    launcher = [str(prefix / "bin/mpiexec"), *options, "-n", str(ranks)]
    ran = in_own_shm(
        "1g", sys.executable, "-c", PEAK, *launcher, str(PREBUILT / abi / "mpigraft-probe"),
        LD_LIBRARY_PATH=str(prefix / "lib"), OMPI_MCA_mpi_yield_when_idle="1",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    (need,) = (n for n in limit_needs() if n.limit == "shm" and family in n.families)
    assert 0.75 * need.of(ranks) < int(ran.stdout) / 1024 <= need.of(ranks)


def test_commands_report_a_short_limit_each_time(fresh_home: Path) -> None:
    mini = str(PREBUILT / "ompi/mpigraft-mini")
    job = (MPIGRAFT, "run", "--mpi", "openmpi@5", "-n", "2", "--dry-run", "--", mini)
    for words in (job, job, (MPIGRAFT, "discover"), (MPIGRAFT, "bench", "--quick", "--dry-run")):
        said = in_own_shm("4m", *words).stderr
        assert matches(said, "limit-short", here="4 MiB", ranks="2 ranks")
        assert not matches(in_own_shm("64m", *words).stderr, "limit-short")
