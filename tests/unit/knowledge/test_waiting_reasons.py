"""Why jobs wait, in words: each code of Slurm's squeue(1)."""

from __future__ import annotations

import pytest

from mpigraft.knowledge.reasons import waiting_reason


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("Priority", "jobs of higher priority"),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-2]", "drained"),
        ("QOSMaxJobsPerUserLimit", "it starts when one of them ends"),
        ("QOSMaxNodePerUserLimit", "requests more than the QOS permits"),
        ("AssocGrpNodeLimit", "together use as much"),
        ("JobHeldUser", "scontrol release"),
        ("(Resources)", "enough nodes are free"),
    ],
)
def test_a_code_is_put_in_words(code: str, text: str) -> None:
    assert text in waiting_reason(code)


@pytest.mark.parametrize("code", ["", "Not Running: no nodes", "CodeOfNextYear"])
def test_other_words_stay_as_they_are(code: str) -> None:
    assert waiting_reason(code) == ""
