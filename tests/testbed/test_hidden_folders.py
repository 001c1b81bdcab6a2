"""Folders of this machine over those of an image: check and run say the same, and it is true."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.images import Images

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]
MPI = ("--mpi", "openmpi@4.1.8")
HELLO = "/opt/app/hello"


def test_check_and_run_say_the_same_of_what_this_machine_covers(
    outside: Mapping[str, str], images: Images
) -> None:
    """From /opt, where the image has its programs; a program of this machine starts from a folder
    that only a bind shows, to which a link leads."""
    image = images.folder("bookworm")

    def do(cwd: Path, *words: object) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "mpigraft.cli.entry", *map(str, words)]
        environ = {**outside, "PWD": str(cwd)}
        return subprocess.run(
            argv, capture_output=True, text=True, timeout=300, env=environ, cwd=cwd
        )

    run = ("run", "--image", image, "--engine", "bwrap", *MPI, "-n", "1", "--")
    for words in (("check", image, *MPI, "--program", HELLO), (*run, HELLO)):
        done = do(Path("/opt"), *words)
        assert done.returncode == 1, done.stderr
        assert f"has {HELLO}, but ranks would see this machine's /opt there" in done.stderr
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        (Path(name) / "real").mkdir()
        link = Path(name) / "link"
        link.symlink_to("real")
        shutil.copy2(image / HELLO[1:], link)
        own = do(link, *run, f"{link}/hello")
        assert "RANK 0 of SIZE 1" in own.stdout, own.stderr
