"""The configuration files that real libraries look for are those that a proof is kept under."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family, Layout, Machine
from mpigraft.evidence.files.config import Surroundings, mpi_config_files
from mpigraft.launch import LaunchRequest, prepare_launch
from mpigraft.native.programs import choose_natives
from tests.mpi.campaigns import short
from tests.mpi.test_run import OPENMPI, kept, ompi, programs, run

__all__ = ["ompi", "programs"]

pytestmark = pytest.mark.mpi

OPENED = re.compile(
    r'^\S* ?(?:open|openat|access|faccessat2?|newfstatat|stat)\([^"]*"([^"]+)"', re.M
)
CONFIG = re.compile(r".*(\.conf|-hostfile|\.dat|/amca-param-sets/[^/]+)")
SYSTEM = re.compile(
    r"/(proc|sys|dev|run)/|.*/(ld\.so|nsswitch|resolv|host|gai)\b[^/]*\.conf|.*/libnl/"
)


@pytest.mark.parametrize(
    ("mpi", "transport"),
    [
        ("openmpi", "ob1-sm"), ("openmpi", "ucx"), ("openmpi", "ofi-tcp"), ("mpich", "ofi-tcp"),
        ("mpich", "ucx"), ("intel", "shm-ofi-tcp"),
    ],
)  # fmt: skip
def test_every_file_that_a_real_launch_looks_for_is_known(
    mpi: str, transport: str, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, ucx = tmp_path / "user", tmp_path / "ucx"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    spec = {"mpi": (mpi,), "transport": (transport,), "env": (f"UCX_CONFIG_DIR={ucx}",)}
    one = short(machine, **spec).configurations[0]
    assert one.mpi is not None
    programs = choose_natives(one.mpi, machine.cpu.architecture)
    words = (str(programs.bench), "--benchmark", "latency", "--max", "8", "--budget", "1")
    made = prepare_launch(
        LaunchRequest(
            one, Layout(), words, natives=programs, witness=tmp_path, limit_s=60, cwd=home
        )
    )
    argv = made.argv[made.argv.index("--") + 1 :]
    trace = ["strace", "-ff", "-qq", "-e", "trace=%file", "-s", "400", "-o", f"{tmp_path}/trace"]
    ended = subprocess.run(
        [*trace, *argv], cwd=home, env=dict(made.env), capture_output=True, timeout=100
    )
    assert ended.returncode == 0, ended.stderr
    text = "".join(p.read_text(errors="replace") for p in tmp_path.glob("trace.*"))
    looked = {os.path.normpath(home / path) for path in OPENED.findall(text)}
    looked = {path for path in looked if CONFIG.fullmatch(path) and not SYSTEM.match(path)}
    known = mpi_config_files(one, Surroundings(home, (("HOME", str(home)),)))
    assert any(Path(path).name == "ucx.conf" for path in looked)
    paths, folders = (
        {os.path.realpath(path) for path in of} for of in (known.paths, known.folders)
    )
    looked = {os.path.realpath(path) for path in looked}  # MPIs are there by links
    unknown = {path for path in looked - paths if str(Path(path).parent) not in folders}
    assert not unknown


@pytest.fixture
def own(ompi: Path, fresh_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An Open MPI of this test's own, and a working folder."""
    mine = next((fresh_home / "mpi").glob("openmpi-5*"))
    copy = tmp_path / "mpi" / mine.name
    shutil.copytree(mine, copy, symlinks=True)
    (tmp_path / "cwd").mkdir()
    (tmp_path / "user").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    data = tmp_path / "data"
    data.mkdir()
    (data / "mpi").symlink_to(tmp_path / "mpi")
    monkeypatch.setenv("MPIGRAFT_HOME", str(data))
    return copy


def proofs(tmp_path: Path) -> int:
    return len(list((tmp_path / "data/cache/evidence").glob("*.json")))


def test_a_kept_job_over_another_transport_than_was_proved_ends_with_5(
    own: Path, ompi: Path, tmp_path: Path
) -> None:
    """As it was found: the file is there when the job is proved, and is edited in place."""
    words = (*OPENMPI, "--transport", "ob1-sm", "--", ompi)
    file = own / "etc/openmpi-mca-params-override.conf"
    file.write_text("btl = self,sm\n")
    assert [run(*words).returncode for _ in range(2)] == [0, 0]
    assert (len(kept(tmp_path / "data")), proofs(tmp_path)) == (1, 1)
    file.write_text("btl = self,tcp\n")
    ended = run(*words)
    assert ended.returncode == 5, ended.stderr
    assert "requested ob1-sm, ran tcp" in ended.stderr
    file.unlink()
    assert run(*words).returncode == 0
    appeared = tmp_path / "user/.openmpi/mca-params.conf"
    appeared.parent.mkdir()
    appeared.write_text("btl_sm_eager_limit = 8192\n")
    before = proofs(tmp_path)
    assert run(*words).returncode == 0
    assert proofs(tmp_path) == before + 1


@pytest.mark.parametrize("family", [Family.OPENMPI, Family.MPICH])
def test_ucx_by_tcp_on_a_node_is_not_the_ucx_that_was_asked_for(
    family: Family,
    programs: Mapping[Family, Path],
    fresh_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it was found: two ranks of one node by TCP, with exit code 0, for a file in the working
    folder alone."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    mpi = {Family.OPENMPI: "openmpi@5", Family.MPICH: "mpich@5"}[family]
    words = ("--mpi", mpi, "-n", 2, "--transport", "ucx", "--", programs[family])
    file = tmp_path / "cwd/ucx.conf"
    assert run(*words).returncode == 0
    file.write_text("UCX_TLS=tcp,self\n")
    ended = run(*words)
    assert ended.returncode == 5, ended.stderr
    assert "requested ucx, ran tcp/" in ended.stderr
    assert str(file) in ended.stderr
