"""The words of each launcher, and what each sets in its own environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.launchers import LAUNCHERS
from mpigraft.model import Layout, Scope
from tests.unit.probes import install

RUN = Path("/opt/mpi/bin/run")
MPI = {
    "prrte": install("openmpi@5.0.11"),
    "orte": install("openmpi@4.1.8"),
    "hydra": install("mpich@5.0.2"),
    "intel": install("intel@2021.18.1"),
}


def words(kind: str, layout: Layout, *, crowded: bool = False) -> str:
    mpi = MPI[kind]
    return " ".join(LAUNCHERS[mpi.launcher_kind].words(RUN, mpi, layout, crowded=crowded)[1:])


def settings(
    kind: str, layout: Layout, *, crowded: bool = False, root: bool = False
) -> dict[str, str | None]:
    mpi = MPI[kind]
    found = LAUNCHERS[mpi.launcher_kind].rows(mpi, layout, crowded=crowded, root=root)
    assert {row.scope for row in found} <= {Scope.LAUNCHER}
    return {row.name: row.value for row in found}


PAIR, FREE, WIDE, NODES = Layout(), Layout(bind="none"), Layout(threads=4), Layout(2, 3)


@pytest.mark.parametrize(
    ("kind", "layout", "crowded", "due"),
    [
        ("prrte", PAIR, False, "-n 2 --map-by ppr:2:node --bind-to core"),
        ("prrte", FREE, False, "-n 2 --map-by ppr:2:node --bind-to none"),
        ("prrte", WIDE, False, "-n 2 --map-by ppr:2:node:PE=4 --bind-to core"),
        ("prrte", PAIR, True, "-n 2 --map-by ppr:2:node:OVERSUBSCRIBE --bind-to none"),
        ("prrte", WIDE, True, "-n 2 --map-by ppr:2:node:OVERSUBSCRIBE --bind-to none"),
        ("prrte", NODES, False, "-n 6 --map-by ppr:3:node --bind-to core"),
        ("orte", PAIR, False, "-n 2 --map-by ppr:2:node --bind-to core"),
        ("orte", FREE, False, "-n 2 --map-by ppr:2:node --bind-to none"),
        ("orte", WIDE, False, "-n 2 --map-by ppr:2:node:PE=4 --bind-to core"),
        ("orte", PAIR, True, "-n 2 --map-by ppr:2:node --bind-to none --oversubscribe"),
        ("hydra", PAIR, False, "-n 2 -ppn 2 -bind-to core"),
        ("hydra", FREE, False, "-n 2 -ppn 2 -bind-to none"),
        ("hydra", WIDE, False, "-n 2 -ppn 2 -bind-to core:4"),
        ("hydra", PAIR, True, "-n 2 -ppn 2 -bind-to none"),
        ("hydra", NODES, False, "-n 6 -ppn 3 -bind-to core"),
        ("intel", PAIR, False, "-n 2 -ppn 2"),
        ("intel", PAIR, True, "-n 2 -ppn 2"),
    ],
)
def test_words(kind: str, layout: Layout, crowded: bool, due: str) -> None:
    assert words(kind, layout, crowded=crowded) == due


def test_the_launcher_is_the_first_word() -> None:
    for mpi in MPI.values():
        kind = LAUNCHERS[mpi.launcher_kind]
        assert kind.words(RUN, mpi, PAIR, crowded=False)[0] == str(RUN)


@pytest.mark.parametrize("kind", ["prrte", "orte"])
def test_open_mpi_is_let_run_as_root_by_root_only(kind: str) -> None:
    assert settings(kind, PAIR) == {}
    assert settings(kind, PAIR, root=True) == {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def test_mpich_sets_nothing_and_intel_pins_by_environment() -> None:
    assert settings("hydra", PAIR, root=True) == {}
    pin = settings("intel", PAIR)
    assert pin == {"I_MPI_PIN": "on", "I_MPI_PIN_CELL": "core", "I_MPI_PIN_DOMAIN": "core"}
    assert settings("intel", WIDE)["I_MPI_PIN_DOMAIN"] == "4:compact"
    assert settings("intel", FREE) == {"I_MPI_PIN": "off"}
    assert settings("intel", PAIR, crowded=True) == {"I_MPI_PIN": "off"}
