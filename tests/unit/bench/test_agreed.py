"""What jobs of one campaign agree on, on one folder and at the same time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mpigraft.core.errors import MissingError
from mpigraft.store import Store, agree_on_plan, agreed_plan
from tests.builders.records import CAMPAIGN

OFFER = """
import sys
from dataclasses import replace
from pathlib import Path
from mpigraft.store import Store, agree_on_plan
from tests.builders.records import CAMPAIGN, launch, measured
store, own = Store(Path(sys.argv[1])), sys.argv[2]
sys.stdin.read()  # until all are there
plan = '{"of":' + own + ', "fill":"' + "x" * 50000 + '"}'
print(agree_on_plan(store.folder, replace(CAMPAIGN, plan=plan)).plan)
with store.writer() as writer:
    for number in range(5):
        writer.add_launch(launch(number, allocation=own), measured(1.0), {"stdout": b"same"})
"""


def test_of_jobs_that_plan_at_once_all_get_one_plan_and_nothing_is_lost(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", OFFER, str(tmp_path), str(number)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root,
        )
        for number in range(6)
    ]  # fmt: skip
    answers = {child.communicate(b"", timeout=120)[0] for child in children}
    assert [child.returncode for child in children] == [0] * 6
    assert len(answers) == 1
    plan = answers.pop().decode().strip()
    assert len(plan) > 50000
    store = Store(tmp_path)
    settled = agreed_plan(store.folder, CAMPAIGN.id)
    assert settled is not None
    assert settled.plan == plan
    assert len(store.launches(CAMPAIGN.id)) == 30
    assert store.findings == ()
    assert not list(tmp_path.glob(".*")), "a file of the race was left"


def test_a_damaged_agreement_is_named_and_never_replaced(tmp_path: Path) -> None:
    (tmp_path / f"{CAMPAIGN.id}.campaign").write_text("{")
    store = Store(tmp_path)
    with pytest.raises(MissingError, match="agreed on, cannot be read"):
        agreed_plan(store.folder, CAMPAIGN.id)
    with pytest.raises(MissingError, match="agreed on, cannot be read"):
        agree_on_plan(store.folder, CAMPAIGN)
    assert (tmp_path / f"{CAMPAIGN.id}.campaign").read_text() == "{"
