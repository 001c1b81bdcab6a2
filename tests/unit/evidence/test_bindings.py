"""Ranks on CPUs that the command that started them may not use."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.fingerprint import boot_id
from mpigraft.core.model import LaunchedBy, Layout, Placement
from mpigraft.evidence.world import bindings
from mpigraft.evidence.world.mapped import file_contents
from mpigraft.evidence.world.witness import check_witness
from tests.builders.messages import matches
from tests.builders.probes import LOGS, configuration, records

ASKED = configuration("openmpi@5.0.11", "ob1-sm")


def test_a_rank_outside_of_the_mask_of_the_command_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of this node, by its records; a scheduler's launcher knows no such mask."""
    last, alone = max(os.sched_getaffinity(0)), Layout(ranks_per_node=1)
    ours = {"host": os.uname().nodename, "boot": boot_id(), "cores": (last + 1,)}
    rank = replace(records(1)[0], **ours)  # type: ignore[arg-type]
    content = file_contents(str(LOGS / "README.md"))[0]  # the libmpi of ASKED
    known = tuple(replace(one, content=content) for one in rank.libraries)
    by_srun = replace(ASKED, launcher=LaunchedBy("srun", Path("/usr/bin/srun"), "22.05"))
    monkeypatch.setattr(bindings, "is_confined", lambda: True)
    (found,) = check_witness(ASKED, alone, (rank,))
    assert matches(
        found, "binding",
        ranks=f"may run on {last + 1}, outside of the CPUs that this command may use:",
    )  # fmt: skip
    for fine in (
        replace(rank, cores=(last,)), replace(rank, boot="another", libraries=known),
        replace(rank, host="another"),
    ):  # fmt: skip
        assert not check_witness(ASKED, alone, (fine,))
    assert not check_witness(by_srun, alone, (rank,))
    assert not check_witness(ASKED, replace(alone, bind="none"), (rank,))
    assert not check_witness(ASKED, alone, (rank,), Placement(((last + 1,),)))
    monkeypatch.setattr(bindings, "is_confined", lambda: False)
    assert not check_witness(ASKED, alone, (rank,))
