"""The study of applications on two nodes: its campaign file, its table, and one of a round."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mpigraft.request import read_spec
from testbed import cluster, rootfs, science
from testbed.science import Job
from testbed.study import STUDIES, campaign_of, first_lines, rows

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", STUDIES)
def test_the_campaign_has_the_application_and_its_replay(name: str, tmp_path: Path) -> None:
    job = Job(("/a b/app",), tmp_path, {"LD_LIBRARY_PATH": "/a b/lib"}, ("--env=DATA=/a b",))
    file = tmp_path / "campaign.toml"
    record = tmp_path / "a b.record"
    file.write_text(campaign_of(name, STUDIES[name], job, job.argv, record))
    spec = read_spec(file)
    assert spec.benchmark == (f"app:{name}", f"app:{record}")
    assert spec.layout == ("2x1",)
    (app,) = spec.app
    assert app.command == job.argv
    assert {"DATA=/a b", "LD_LIBRARY_PATH=/a b/lib"} <= set(app.env)


def test_the_page_says_whether_both_agree() -> None:
    record = Path("/s/a.record")
    names = {"program": "app:a", "replay": f"app:{record},record=0"}

    def page(**curves: str) -> str:
        compared = {"baseline": "mpi@1/a", "comparisons": [
            {"benchmark": names[what], "configuration": "mpi@1/b", "curve": curve, "pooled": 1.1,
             "pooled_low": None, "pooled_high": None} for what, curve in curves.items()
        ]}  # fmt: skip
        return "\n".join(rows(compared, record))

    assert "replay (slower) agree." in page(program="slower", replay="slower")
    assert "do not agree" in page(program="slower", replay="faster")
    assert "decide nothing" in page(program="inconclusive", replay="inconclusive")
    assert "only the replay has values" in page(replay="faster")


def test_a_study_goes_on_without_a_profile(tmp_path: Path) -> None:
    assert list(first_lines(tmp_path / "none.json")) == ["no profile was written"]


@pytest.mark.long
@pytest.mark.testbed
@pytest.mark.mpi
@pytest.mark.root
@pytest.mark.skipif(bool(cluster.why_not()), reason=cluster.why_not() or "nodes are here")
@pytest.mark.skipif(rootfs.own_suite() != science.SUITE, reason=f"needs Debian {science.SUITE}")
@pytest.mark.usefixtures("mpis")
def test_one_command_studies_an_application(tmp_path: Path) -> None:
    folder = tmp_path / "the study"
    argv = [sys.executable, "-m", "testbed.study", str(folder), "fft", "--rounds", "1"]
    done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    page = (folder / "study.md").read_text()
    assert "| program |" in page
    assert "| replay |" in page
    assert "time in Alltoallv" in page
    assert {"profile.html", "report.html", "fft.record"} <= {
        one.name for one in (folder / "fft").iterdir()
    }
