"""A job array: jobs that start at once and share one home, cache and kept proof."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.images import Images

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root, pytest.mark.long]

ENTRY = (sys.executable, "-m", "mpigraft.cli.entry", "run")
JOBS = 8


def array(of: list[str], cwd: Path, environ: Mapping[str, str], name: str) -> None:
    """Start them all; each is right, and each has written what only it writes."""
    pipe = subprocess.PIPE
    jobs = [
        subprocess.Popen(of, cwd=cwd, env={**environ, "TASK": str(number)}, stdout=pipe,
                         stderr=pipe, text=True)
        for number in range(JOBS)
    ]  # fmt: skip
    try:
        for number, job in enumerate(jobs):
            out, told = job.communicate(timeout=300)
            assert job.returncode == 0, f"{name} {number}: {told}"
            assert told == "", f"{name} {number}"
            assert sorted(line[:16] for line in out.splitlines()) == [
                "RANK 0 of SIZE 2", "RANK 1 of SIZE 2",
            ], out  # fmt: skip
    finally:
        for job in jobs:
            if job.poll() is None:
                job.kill()
                job.communicate()


@pytest.mark.covering
def test_they_make_one_graft_and_one_proof(
    outside: Mapping[str, str], images: Images, tmp_path: Path
) -> None:
    home, cwd, scratch = (tmp_path / name for name in ("home", "work", "scratch"))
    for folder in (home, cwd, scratch):
        folder.mkdir()
    (home / "mpi").symlink_to(Path(outside["MPIGRAFT_HOME"], "mpi"))
    environ = {**outside, "MPIGRAFT_HOME": str(home), "TMPDIR": str(scratch)}
    # Open MPI 4 removes this folder if it is empty, under the feet of jobs that start (LCH-12).
    held = scratch / f"ompi.{platform.node().partition('.')[0]}.{os.geteuid()}" / "held"
    held.mkdir(parents=True)
    of = [
        *ENTRY, "--image", str(images.folder("bookworm")), "--engine", "bwrap",
        "--mpi", "openmpi@4.1.8", "--transport", "ob1-sm", "-n", "2", "--", "/opt/app/hello",
    ]  # fmt: skip
    made = []
    for name in ("cold", "warm"):
        array(of, cwd, environ, name)
        kept = {kind: [*(home / "cache" / kind).iterdir()] for kind in ("evidence", "run", "job")}
        assert {kind: len(files) for kind, files in kept.items()} == dict.fromkeys(kept, 1)
        (graft,) = (home / "grafts").iterdir()
        assert [*(graft / "ranks").iterdir()] == []
        assert [*(home / "libraries").glob(".*")] == []
        assert [*scratch.rglob("*")] == [held.parent, held]
        made.append({f: f.stat().st_ino for files in kept.values() for f in files})
    assert made[0] == made[1], "the second array rested on what the first had kept"
