"""The test class of mpigraft.reframe under a real ReFrame 4.10, with a real MPI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mpigraft

SETTINGS = """
site_configuration = {"systems": [{"name": "here", "hostnames": [".*"], "partitions": [{
    "name": "node", "scheduler": "local", "launcher": "local", "environs": ["builtin"],
    "processor": {"num_cpus": 2, "num_cpus_per_core": 1}}]}]}
"""
CHECK = """
import reframe as rfm
from mpigraft.reframe import MpigraftCheck

@rfm.simple_test
class Mpi(MpigraftCheck):
    mpi = ["mpich@5"]
    transport = ["ucx", "ofi-tcp"]
    benchmark = ["latency"]
    baseline = "mpich@5.0.2/ucx"
    rounds = 6
    bench_options = ["--max", "64", "--ms-per-size", "1", "--here", "--no-validate"]
    fail_on_slower = FAIL
"""


@pytest.fixture(scope="module")
def program() -> Path:
    path = Path(os.environ["MPIGRAFT_HOME"]).parent / "reframe/bin/reframe"
    if not path.exists():
        pytest.skip(f"no ReFrame in {path.parent.parent}: make ready installs it")
    return path


def start(
    program: Path, folder: Path, *words: str, fail: bool = False, settings: str = SETTINGS
) -> str:
    (folder / "settings.py").write_text(settings)
    (folder / "check.py").write_text(CHECK.replace("FAIL", str(fail)))
    source = Path(mpigraft.__file__).parents[1]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ended = subprocess.run(
        [program, "-C", "settings.py", "-c", "check.py", *words], cwd=folder, text=True,
        capture_output=True, env={**os.environ, "PYTHONPATH": str(source), "PATH": path},
    )  # fmt: skip
    return ended.stdout + ended.stderr


@pytest.mark.mpi
@pytest.mark.long
@pytest.mark.covering
def test_a_campaign_gives_performance_variables(program: Path, tmp_path: Path) -> None:
    text = start(program, tmp_path, "-r", "--tag", "^2_cores$", "--report-file", "report.json")
    assert "Ran 1/1 test case(s) from 1 check(s) (0 failure(s)" in text, text
    (run,) = json.loads((tmp_path / "report.json").read_text())["runs"]
    (case,) = run["testcases"]
    figures = {name.rpartition(":")[2]: row for name, row in case["perfvalues"].items()}
    assert "mpich_5_0_2_ucx_latency_latency_1" in figures
    assert "mpich_5_0_2_ofi_tcp_latency_latency_verdict" in figures


@pytest.mark.mpi
@pytest.mark.long
def test_a_campaign_that_fails_fails_the_test_with_its_message(
    program: Path, tmp_path: Path
) -> None:
    words = ("-r", "--tag", "^2_cores$", "-S", "transport=ucx,no-such")
    assert "mpigraft ended with exit code" in (text := start(program, tmp_path, *words)), text
    assert "no-such" in text
    broken = tmp_path / "mpigraft"
    broken.write_text('#!/bin/sh\nmpigraft "$@"\ncase $3 in bench) exit 5;; esac\n')
    broken.chmod(0o755)
    text = start(program, tmp_path, "-r", "--tag", "^2_cores$", "-S", f"mpigraft={broken}")
    assert "mpigraft ended with exit code 5" in text, text


@pytest.mark.mpi
@pytest.mark.long
def test_scales_and_tags_are_those_of_eessi(program: Path, tmp_path: Path) -> None:
    assert "Found 13 check(s)" in start(program, tmp_path, "-l")
    text = start(program, tmp_path, "-l", "--tag", "CI")
    assert "Found 2 check(s)" in text
    assert "%scale=1_node" in text
    assert "%scale=2_nodes" in text
    skipped = start(program, tmp_path, "-r", "--tag", "^(1_core|4_cores)$")
    assert "2 skipped" in skipped, skipped


@pytest.mark.mpi
@pytest.mark.long
def test_a_check_fails_where_a_curve_is_slower(program: Path, tmp_path: Path) -> None:
    """OFI's TCP is many times slower than UCX's shared memory."""
    text = start(program, tmp_path, "-r", "--tag", "^2_cores$", fail=True)
    assert "slower than the baseline: mpich@5.0.2/ofi-tcp at native:latency" in text, text
    assert "1 failure(s)" in text
