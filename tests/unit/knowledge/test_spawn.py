"""What the table says of MPI_Comm_spawn, and what it may not say."""

from __future__ import annotations

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.knowledge import read_rows
from mpigraft.knowledge.spawn import ALONE, Spawn, rows, spawn_facts
from mpigraft.launch.launchers.registry import LAUNCHERS
from tests.builders.messages import shows

ROW = {"launcher": "srun", "family": ["openmpi"], "works": True, "sources": ["seen"]}


def test_rows_are_of_launchers_that_there_are() -> None:
    assert {row.launcher for row in rows()} <= {*LAUNCHERS, ALONE}


@pytest.mark.parametrize(
    ("launcher", "family", "release", "pmi", "works"),
    [
        ("prrte", "openmpi", "5.0.11", "", True),
        ("prrte", "openmpi", "4.1.4", "", None),
        ("orte", "openmpi", "4.1.4", "", True),
        ("srun", "openmpi", "5.0.11", "pmix_v4", False),
        ("srun", "openmpi", "5.0.11", "pmi2", None),
        ("srun", "mpich", "5.0.2", "pmi2", True),
        ("hydra", "mpich", "5.0.2", "", True),
        ("hydra", "mpich", "4.0.2", "", False),
        ("hydra", "intel", "2021.18.1", "", True),
        ("flux", "openmpi", "5.0.11", "", None),
        ("alone", "openmpi", "5.0.11", "", True),
        ("alone", "openmpi", "4.1.4", "", True),
        ("alone", "mpich", "4.0.2", "", False),
        ("alone", "intel", "2021.18.1", "", True),
    ],
)
def test_what_is_known(
    launcher: str, family: str, release: str, pmi: str, works: bool | None
) -> None:
    found = spawn_facts(launcher, family, release, pmi)
    assert (found.works if found else None) is works


def test_what_is_reported() -> None:
    refused = spawn_facts("srun", "openmpi", "5.0.11", "pmix")
    assert refused is not None
    assert shows(refused.summary, "MPI_Comm_spawn", "--mpi=pmix")
    assert refused.summary.endswith("mpirun inside the allocation")


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"family": ["openmp"]}, "family"),
        ({"works": False}, "fix"),
        ({"sources": []}, "sources"),
        ({"when": "5"}, "when"),
        ({"surplus": 1}, "surplus"),
    ],
)
def test_a_wrong_row_is_refused(change: dict[str, object], wrong: str) -> None:
    assert read_rows(Spawn, "spawn", {"spawn": [ROW]}, "spawn.toml")[0].works
    with pytest.raises(UsageError, match=wrong):
        read_rows(Spawn, "spawn", {"spawn": [{**ROW, **change}]}, "spawn.toml")
