"""What `--pairs` requests."""

from __future__ import annotations

import pytest

from mpigraft.bench import pairing_spec
from mpigraft.core.errors import UsageError
from mpigraft.request.spec import CampaignSpec


def test_one_rank_on_each_node() -> None:
    asked = pairing_spec(CampaignSpec(mpi=("mpich",)), ("n1", "n2", "n3"))
    assert (asked.benchmark, asked.layout, asked.mpi) == (("pairs",), ("3x1",), ("mpich",))
    assert asked.name == "pairs"
    assert pairing_spec(CampaignSpec(name="mine"), ("n1", "n2")).name == "mine"
    with pytest.raises(UsageError, match="needs two nodes"):
        pairing_spec(CampaignSpec(), ("n1",))
    for other in (
        CampaignSpec(benchmark=("latency",)),
        CampaignSpec(layout=("2x2",)),
        CampaignSpec(nodes=(2,)),
    ):
        with pytest.raises(UsageError, match="sets benchmark and layout"):
            pairing_spec(other, ("n1", "n2"))
