"""Which submission `status` shows, what is proven of it, and how its jobs are cancelled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.bench.submission import submission_status
from mpigraft.cli import bench
from mpigraft.core.model import EvidenceRecord, Scheduler
from mpigraft.report import submission_lines
from mpigraft.store import Store
from tests.builders.configuration import a_machine
from tests.builders.messages import matches, shows
from tests.builders.records import CAMPAIGN, evidence, launch, measured
from tests.unit.bench.test_submission import RECORD, RUNS, kept, on, said


def test_a_refused_submission_is_not_the_last_one(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, site, "submit", site / "night.toml")
    first = Store(site / "store").submissions()[0].campaign
    (site / "sbatch").write_text("#!/bin/sh\nexit 1\n")
    said(capsys, site, "submit", site / "night.toml", code=4)
    second = Store(site / "store").submissions()[-1].campaign
    for words in ((), ("night",)):
        assert first[:8] in said(capsys, site, "status", *words)
    assert "not submitted" in said(capsys, site, "status", second[:8])


def test_waiting_jobs_are_cancelled_before_those_that_run(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "scancel").write_text(f"#!/bin/sh\necho $* >> {site}/cancelled\n")
    (site / "scancel").chmod(0o755)
    said(capsys, site, "submit", site / "night.toml", "--chain", 3)
    assert shows(said(capsys, site, "status", "--cancel"), "pending", "1 job", 2)
    assert (site / "cancelled").read_text() == "2\n3\n"
    (site / "scancel").write_text("#!/bin/sh\necho Access denied >&2; exit 1\n")
    assert matches(
        said(capsys, site, "status", "--cancel", code=4), "job-not-cancelled",
        output="Access denied",
    )  # fmt: skip


def test_a_login_node_shows_a_plan_and_measures_nothing(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    login = replace(a_machine(), scheduler=Scheduler("slurm", "22.05", in_allocation=False))
    monkeypatch.setattr(bench, "examine_machine", lambda: login)
    assert "[login-node]" in said(capsys, site, "bench", site / "night.toml", code=2)
    for words, nodes in (
        ((), "1 node"),
        (("--layout", "1x2", "--layout", "3x2"), "3 nodes"),
        (("--nodes", 2, "--nodes", 1), "2 nodes"),
    ):
        planned = ("bench", site / "night.toml", *words, "--dry-run")
        shown = said(capsys, site, *planned, code=3)  # without MPIs
        assert shows(shown, nodes)
        assert "[login-node]" not in shown
    lost = ("bench", site / "night.toml", "--hosts", "a", "--layout", "2x1", "--dry-run")
    assert "[layout-needs-more-nodes]" in said(capsys, site, *lost, code=2)


def test_a_job_that_measures_not_yet_says_how_much_it_has_proven(tmp_path: Path) -> None:
    store = kept(tmp_path, on("41", "1/2"))
    plan = replace(CAMPAIGN, plan='{"configurations": [1, 2, 3], "layouts": ["1x2", "2x1"]}')
    for made, words, due in ((4, "proving 5/6", 6), (6, "proving 6/6", 6), (0, "1 launch", 0)):
        with store.writer() as writer:
            for k in range(made):
                writer.add_evidence(
                    EvidenceRecord(CAMPAIGN.id, f"k{k}", "1x2", evidence(""), "a41")
                )
            if not made:
                writer.add_launch(launch(0, allocation="a41"), measured(1.0), {})
        status = submission_status(store, RECORD, {"41": RUNS}, plan)
        assert [x.to_prove for x in status.shares] == [due, 0]
        assert shows(list(submission_lines(status))[1], words)
