"""What `submit --dry-run` says of its jobs before they start."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.cli.main import run_command
from mpigraft.core.model import LauncherInfo
from mpigraft.core.serialize import document
from mpigraft.launch import SCHEDULERS
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
        text = forecast(capsys, site, "--nodes", 8, *words)
        assert shows(text, "layout 1x2 leaves 7 of 8 nodes idle", "layout 2x2 leaves 6 of 8")
        assert not shows(text, "layout 8x1")
    (site / "night.toml").write_text("ranks_per_node = [2]\nnodes = [4]\n")
    assert shows(forecast(capsys, site, "--nodes", 8, "--dry-run"), "nodes = 4", "4 of 8")
    (site / "night.toml").write_text("ranks_per_node = [2]\n")
    assert not shows(forecast(capsys, site, "--nodes", 8, "--dry-run"), "idle")


def test_launches_are_forecast_for_nodes_that_were_described(
    site: Path, capsys: pytest.CaptureFixture[str], fresh_home: Path
) -> None:
    dry = ("--dry-run", "--partition", "std")
    assert shows(forecast(capsys, site, *dry), "on its nodes", "discover --partition std")
    wish = 'rounds = 6\nlayout = ["1x2"]\ntransport = ["ob1-sm", "ofi-tcp"]\n'
    (site / "night.toml").write_text(wish)
    keep_document("std", document(**machine_document(MACHINE)))
    for words in (dry, ("--dry-run", "--", "-A", "x", "-p", "std", "--partition=std")):
        text = forecast(capsys, site, *words)
        assert shows(text, "nodes of std as described", "18 launches at most", "2 configurations")
        assert shows(text, "of 60 min", "left out")
        assert shows(text, "mpich@5.0.2/ob1-sm", "mpich has no transport of this name")
    other = forecast(capsys, site, "--dry-run", "--", "-pstd", "-p", "gpu")
    assert shows(other, "discover --partition gpu")
    over = forecast(capsys, site, *dry, "--", "--partition", "gpu")
    assert shows(over, "discover --partition gpu")
    several = forecast(capsys, site, "--dry-run", "--partition", "std,gpu")
    assert shows(several, "name one of std,gpu")
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
    text = forecast(capsys, site, *dry, code=3)
    assert shows(text, "no plan for nodes of std as described")
    assert shows(text, "openmpi@5.0.11/ofi-cxi", "no /dev/cxi")
    assert shows(text, "#SBATCH")
    assert shows(text, "transport-none")
    kept_document("std").write_text("{}")
    again = "write it again: mpigraft discover --partition std"
    assert shows(forecast(capsys, site, *dry), "std.json", again)


def test_what_only_files_of_the_nodes_can_show_is_not_refused(
    site: Path, capsys: pytest.CaptureFixture[str], fresh_home: Path
) -> None:
    """A login node need not have the MPIs of the nodes, which a program is compared with."""
    keep_document("std", document(**machine_document(MACHINE)))
    (site / "night.toml").write_text('benchmark = ["mini:halo"]\nlayout = ["1x2"]\n')
    text = forecast(capsys, site, "--dry-run", "--partition", "std")
    first = "the first job to start plans the launches on its nodes"
    assert shows(
        text, first, "not all MPIs of nodes of std", "on this host: mini:halo runs on none"
    )


def test_jobs_have_the_launcher_of_their_scheduler(
    site: Path, capsys: pytest.CaptureFixture[str], fresh_home: Path
) -> None:
    """However their nodes were described: by a login over SSH, which is no job."""
    srun = LauncherInfo("srun", Path("/usr/bin/srun"), "23.11", pmi_offered=("pmix", "pmi2"))
    keep_document("std", document(**machine_document(replace(MACHINE, launchers=(srun,)))))
    (site / "night.toml").write_text('launcher = "srun"\nlayout = ["1x2"]\n')
    text = forecast(capsys, site, "--dry-run", "--partition", "std")
    assert shows(text, "on nodes of std as described", "launches at most")


def test_nodes_of_pbs_are_described_in_a_job(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = forecast(capsys, site, "--dry-run", "--scheduler", "pbs", "--", "-q", "work")
    assert shows(text, f"discover --json --abi > {kept_document('work')}, in a job there")


@pytest.mark.parametrize(
    ("scheduler", "words", "partition"),
    [
        ("slurm", "-p a", "a"), ("slurm", "-pa --partition=b", "b"),
        ("slurm", "--partition b -A p", "b"), ("slurm", "--comment=-p|a", ""),
        ("slurm", "-p", ""), ("slurm", "--qos=q -q|x", ""), ("slurm", "", ""),
        ("pbs", "-q work@pbs1 -P x", "work"), ("pbs", "-qwork", "work"), ("pbs", "-p 5", ""),
        ("flux", "--queue=a -q b", "b"), ("flux", "--queue b", "b"), ("flux", "-p a", ""),
    ],
)  # fmt: skip
def test_the_partition_that_words_for_a_scheduler_name(
    scheduler: str, words: str, partition: str
) -> None:
    extra = [word.replace("|", " ") for word in words.split()]
    assert SCHEDULERS[scheduler].partition_of(extra) == partition
