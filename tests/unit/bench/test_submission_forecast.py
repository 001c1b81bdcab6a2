"""What `submit --dry-run` foretells of its jobs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mpigraft.cli.main import run_command
from mpigraft.core.serialize import document
from mpigraft.launch.hosts.partitions import keep_document, kept_document
from mpigraft.report import machine_document
from tests.builders.messages import shows
from tests.builders.two_mpis import MACHINE, make_up_transports


@pytest.fixture(autouse=True)
def knowledge(monkeypatch: pytest.MonkeyPatch) -> None:
    make_up_transports(monkeypatch)


def forecast(capsys: pytest.CaptureFixture[str], site: Path, *words: object, code: int = 0) -> str:
    """Return what a dry run of night.toml says, with folded comments in one line."""
    got = run_command(
        ["--store", str(site / "store"), "submit", str(site / "night.toml"), *map(str, words)]
    )
    out, err = capsys.readouterr()
    assert got == code, out + err
    return re.sub(r"\n(# )?", " ", out) + err


def test_layouts_that_leave_nodes_of_a_job_idle_are_named(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "night.toml").write_text('layout = ["1x2", "8x1", "2x2"]\n')
    for words in (("--dry-run",), ()):
        told = forecast(capsys, site, "--nodes", 8, *words)
        assert shows(told, "layout 1x2 leaves 7 of 8 nodes idle", "layout 2x2 leaves 6 of 8")
        assert not shows(told, "layout 8x1")
    (site / "night.toml").write_text("ranks_per_node = [2]\nnodes = [4]\n")
    assert shows(forecast(capsys, site, "--nodes", 8, "--dry-run"), "nodes = 4", "4 of 8")
    (site / "night.toml").write_text("ranks_per_node = [2]\n")
    assert not shows(forecast(capsys, site, "--nodes", 8, "--dry-run"), "idle")


def test_launches_are_foretold_for_nodes_that_were_described(
    site: Path, capsys: pytest.CaptureFixture[str], fresh_home: Path
) -> None:
    dry = ("--dry-run", "--partition", "std")
    assert shows(forecast(capsys, site, *dry), "on its nodes", "discover --partition std")
    wish = 'rounds = 6\nlayout = ["1x2"]\ntransport = ["ob1-sm", "ofi-tcp"]\n'
    (site / "night.toml").write_text(wish)
    keep_document("std", document(**machine_document(MACHINE)))
    for words in (dry, ("--dry-run", "--", "-A", "x", "-p", "std", "--partition=std")):
        told = forecast(capsys, site, *words)
        assert shows(told, "nodes of std as described", "18 launches at most", "2 configurations")
        assert shows(told, "of 60 min", "left out")
        assert shows(told, "mpich@5.0.2/ob1-sm", "mpich has no transport of this name")
    other = forecast(capsys, site, "--dry-run", "--", "-pstd", "-p", "gpu")
    assert shows(other, "discover --partition gpu")
    spare = forecast(capsys, site, *dry, "--time", "1m")
    enough = re.search(r"more than 60 s: use --chain (\d+);", spare)
    assert enough is not None
    chained = forecast(capsys, site, *dry, "--time", "1m", "--chain", enough[1])
    assert not shows(chained, "more than")
    fewer = forecast(capsys, site, *dry, "--time", "1m", "--chain", int(enough[1]) - 1)
    assert shows(fewer, f"use --chain {enough[1]}")


def test_what_described_nodes_cannot_run_is_refused_with_the_reason(
    site: Path, capsys: pytest.CaptureFixture[str], fresh_home: Path
) -> None:
    dry = ("--dry-run", "--partition", "std")
    keep_document("std", document(**machine_document(MACHINE)))
    (site / "night.toml").write_text('transport = ["ofi-cxi"]\n')
    told = forecast(capsys, site, *dry, code=3)
    assert shows(told, "no plan for nodes of std as described")
    assert shows(told, "openmpi@5.0.11/ofi-cxi", "no /dev/cxi")
    assert shows(told, "#SBATCH")
    assert shows(told, "transport-none")
    kept_document("std").write_text("{}")
    again = "write it again: mpigraft discover --partition std"
    assert shows(forecast(capsys, site, *dry), "std.json", again)
