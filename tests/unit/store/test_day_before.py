"""What users wrote the day before stays valid: keys, stores, plans, profiles, ReFrame scripts.

The files are made by `python tests/data/kept/make.py`. A key that differs from the kept one parts
a user's results, proofs and grafts from those that exist: mend the code, not the file.
"""

from __future__ import annotations

import ast
import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from mpigraft.bench.schedule.campaign import resume_campaign, schedule_launches
from mpigraft.bench.shards import Made, pending_steps
from mpigraft.core.model import Shard
from mpigraft.core.serialize import document
from mpigraft.graft.folder.folders import read_plan
from mpigraft.graft.stack.generations.reading import PLAN, read_record
from mpigraft.store import Store
from tests.builders.commands import run_on_store
from tests.builders.two_mpis import MACHINE, contents, make_up_transports
from tests.data.kept import make

REFRAME = (
    "scale", "mpi", "transport", "benchmark", "baseline", "rounds", "bench_options", "ci_scales",
    "fail_on_slower", "mpigraft",
)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    folder = tmp_path / "store"
    folder.mkdir()
    for file in make.HERE.glob("store*.sqlite"):
        shutil.copy(file, folder)
    return Store(folder)


@pytest.mark.usefixtures("home")
def test_keys_are_those_of_the_day_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = json.loads((make.HERE / "keys.json").read_text())
    now = json.loads(json.dumps(make.keys(monkeypatch, tmp_path)))
    for what, value in kept.items():
        if isinstance(value, dict):  # keys may be added
            now[what] = {name: now[what].get(name) for name in value}
        assert now[what] == value, what


def test_a_campaign_of_the_day_before_goes_on(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    make_up_transports(monkeypatch)
    record = store.campaign("kept")
    campaign = resume_campaign(record.plan, MACHINE, contents)
    stored = [(c.key, c.id) for c in store.configurations(record.id)]
    assert sorted((c.key, c.id) for c in campaign.configurations) == sorted(stored)
    steps = schedule_launches(campaign)
    made, proven = store.launches(record.id), store.evidence(record.id)
    left = pending_steps(steps, Shard(), Made(made, proven, store.allocations(record.id)), "n1")
    assert left == tuple(step for step in steps if step.round >= make.MADE)
    assert len(made) + len(left) == len(steps)


@pytest.mark.parametrize("name", ["kept", "guests"])
def test_a_store_of_the_day_before_is_compared_and_reported(
    name: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_on_store(store.folder, "compare", name, "--json") == 0
    compared = json.loads(capsys.readouterr().out)
    record = store.campaign(name)
    names = {c.id for c in store.configurations(record.id)}
    (baseline,) = names - {row["configuration"] for row in compared["comparisons"]}
    assert compared["baseline"] == baseline
    for row in compared["comparisons"]:
        arm = row["configuration"]
        slower = "ofi-tcp" in arm.partition("@5")[2]
        assert row["curve"] == ("slower" if slower else "equivalent"), arm
        assert row["pooled"] == pytest.approx(1.5 if slower else 1.0, rel=0.01), arm
    page = tmp_path / "report.html"
    assert run_on_store(store.folder, "report", name, "-o", page) == 0
    assert all(one in page.read_text() for one in names)


def test_plans_of_the_day_before_are_read(tmp_path: Path) -> None:
    kept = make.HERE / "graft.json"
    plan = read_plan(kept)
    assert plan is not None
    assert json.loads(document(plan=plan)) == json.loads(kept.read_text())
    shutil.copy(make.HERE / "generation.json", tmp_path / PLAN)
    assert read_record(tmp_path) == make.GENERATION


def test_scripts_of_sites_name_what_is_there() -> None:
    """ReFrame is not installed here: the class is read, not imported."""
    spec = find_spec("mpigraft.reframe.checks")
    assert spec is not None
    assert spec.origin
    tree = ast.parse(Path(spec.origin).read_text())
    (check,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "MpigraftCheck")
    assigned = [t for n in check.body if isinstance(n, ast.Assign) for t in n.targets]
    assert {t.id for t in assigned if isinstance(t, ast.Name)} >= set(REFRAME)
    for module in ("mpigraft.__main__", "mpigraft.cli.main", "mpigraft.cli.entry"):
        assert find_spec(module)
