"""What each release wrote stays readable: a store of a real campaign, a plan of a real image."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from mpigraft import __version__
from mpigraft.core.model import LaunchState, ProofStatus
from mpigraft.core.serialize import document
from mpigraft.graft.folder.folders import PLAN_FILE, read_plan
from mpigraft.store import Store
from tests.builders.commands import run_on_store

PROJECT = Path(__file__).resolve().parents[3]
RELEASES = sorted((PROJECT / "tests/data/releases").iterdir())
LANES = {  # of each configuration, what its proof names
    "openmpi@5.0.11/ob1-sm": "sm",
    "openmpi@5.0.11/ucx": "ucx",
    "mpich@5.0.2/ucx": "ucx",
}
BASELINE = [*LANES][-1]


@pytest.fixture(params=RELEASES, ids=lambda folder: folder.name)
def release(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.param
    return folder


@pytest.fixture
def store(release: Path, tmp_path: Path) -> Store:
    (tmp_path / "store").mkdir()
    shutil.copy(release / "store.sqlite", tmp_path / "store")
    return Store(tmp_path / "store")


def test_each_version_of_the_changelog_has_its_files() -> None:
    text = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (\d+\.\d+\.\d+)", text, re.MULTILINE)
    assert {folder.name for folder in RELEASES} == {*versions}
    assert __version__ in versions


def test_the_store_of_a_release_is_read_whole(store: Store, release: Path) -> None:
    (record,) = store.campaigns()
    assert store.findings == ()
    assert (record.name, record.tool) == ("first", release.name)
    ids = {one.key: one.id for one in store.configurations(record.id)}
    assert {*ids.values()} == {*LANES}
    launches = store.launches(record.id)
    assert len(launches) == record.rounds * (len(LANES) + 1)  # the baseline twice
    assert {launch.state for launch in launches} == {LaunchState.OK}
    for row in store.evidence(record.id):
        proven = [one for one in row.evidence.proof if one.standing is ProofStatus.PROVEN]
        assert any(LANES[ids[row.configuration]] in proof.lane for proof in proven)


def test_the_store_of_a_release_is_compared_reported_and_exported(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_on_store(store.folder, "compare", "first", "--json") == 0
    compared = json.loads(capsys.readouterr().out)
    assert compared["baseline"] == BASELINE
    assert {row["configuration"] for row in compared["comparisons"]} == {*LANES} - {BASELINE}
    page = tmp_path / "report.html"
    assert run_on_store(store.folder, "report", "first", "-o", page) == 0
    assert all(name in page.read_text() for name in LANES)
    for words in (["results", "list"], ["results", "show"], ["history"], ["export"]):
        assert run_on_store(store.folder, *words) == 0, words
        assert capsys.readouterr().out


def test_the_plan_of_a_release_is_read(release: Path, tmp_path: Path) -> None:
    kept = json.loads((release / "plan.json").read_text())
    shutil.copy(release / "plan.json", tmp_path / PLAN_FILE)
    plan = read_plan(tmp_path / PLAN_FILE)
    assert plan is not None
    assert plan.mpi in {name.partition("/")[0] for name in LANES}
    again = json.loads(document(plan=plan))
    assert {key: again["plan"][key] for key in kept["plan"]} == kept["plan"]  # keys may be added
