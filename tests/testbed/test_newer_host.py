"""A host that is newer than its guests: Debian 13's Open MPI 5.0.7 and glibc under Debian 12.

The host is the trixie image with this project's Python in it, entered by bubblewrap; the guest is
a folder in there. So it is a whole machine that discovers, checks, plans and launches.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.images import Images
from tests.testbed.conftest import two_ranks

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]
PROJECT = Path(__file__).resolve().parents[2]
GUEST = "/guest"
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def trixie(images: Images, tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """Starts a command of mpigraft on a Debian 13 that has the bookworm image in it."""
    if not (engine := shutil.which("bwrap")):
        pytest.skip("bubblewrap is not here")
    root, home = images.folder("trixie"), tmp_path_factory.mktemp("home")
    seen = dict.fromkeys((sys.base_prefix, sys.prefix, str(PROJECT)))
    words = [
        engine, "--tmpfs", "/",
        "--ro-bind", root / "usr", "/usr", "--ro-bind", root / "etc", "/etc",
        *(w for n in ("bin", "lib", "lib64") for w in ("--symlink", f"usr/{n}", f"/{n}")),
        "--proc", "/proc", "--dev-bind", "/dev", "/dev", "--ro-bind", "/sys", "/sys",
        "--tmpfs", "/tmp",
        *(w for path in seen if not path.startswith("/usr") for w in ("--ro-bind", path, path)),
        "--ro-bind", images.folder("bookworm"), GUEST, "--ro-bind", engine, "/opt/bin/bwrap",
        "--bind", home, "/home", "--chdir", "/", "--clearenv", "--setenv", "HOME", "/home",
        "--setenv", "MPIGRAFT_HOME", "/home/mpigraft", "--setenv", "PATH",
        "/opt/bin:/usr/bin:/bin", sys.executable, "-m", "mpigraft.cli.entry",
    ]  # fmt: skip

    def start(*more: str) -> Done:
        argv = [*map(str, words), *more]
        return subprocess.run(argv, capture_output=True, text=True, timeout=180)

    return start


@pytest.mark.parametrize(
    "program", ["/opt/app/hello", pytest.param("/opt/app/hello_f08", marks=pytest.mark.long)]
)
def test_its_mpi_runs_under_an_older_image(trixie, program: str) -> None:  # type: ignore[no-untyped-def]
    """By hand this ends with `GLIBC_2.38' not found: the host's glibc has to go in, and does."""
    done = trixie(
        "run", "--image", GUEST, "--engine", "bwrap", "--mpi", "openmpi@5", "-n", "2", "--", program
    )
    assert done.returncode == 0, done.stderr
    lines = sorted(line.partition(",")[0] for line in done.stdout.splitlines())
    assert lines == two_ranks("Open MPI v5.0.7")


def test_without_its_glibc_it_is_refused_here_and_from_afar(  # type: ignore[no-untyped-def]
    trixie, images: Images, tmp_path: Path
) -> None:
    words = ("--mpi", "openmpi@5", "--program", "/opt/app/hello", "--json")
    there = trixie("check", GUEST, *words, "--no-glibc")
    assert there.returncode == 1
    assert "GLIBC_2.38" in there.stdout
    described = tmp_path / "machine.json"
    described.write_text(trixie("discover", "--abi", "--json").stdout)
    for more, code in (((), 0), (("--no-glibc",), 1)):
        argv = [sys.executable, "-m", "mpigraft.cli.entry", "check", images.folder("bookworm")]
        here = subprocess.run(
            [*map(str, argv), *words, "--machine", described, *more],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert here.returncode == code, here.stderr
        assert json.loads(here.stdout)["schema"] == 2
