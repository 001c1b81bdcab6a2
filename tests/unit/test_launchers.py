"""The words of each launcher, and what each sets in its own environment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.errors import UsageError
from mpigraft.launchers import LAUNCHERS
from mpigraft.launchers.hardware import in_order, ranges
from mpigraft.launchers.parts import hexadecimal, listed
from mpigraft.model import Allocation, Command, Group, Layout, Order, Scope
from tests.unit.probes import install

RUN = Path("/opt/mpi/bin/run")
MPI = {
    "prrte": install("openmpi@5.0.11"),
    "orte": install("openmpi@4.1.8"),
    "hydra": install("mpich@5.0.2"),
    "intel": install("intel@2021.18.1"),
    "srun": install("openmpi@5.0.11"),
}
HERE = Allocation(("n1",), "this host", here=True)
NAMED = Allocation(("n1", "n2", "n3"), "--hosts")
SLURM = Allocation(("n1", "n2", "n3"), "Slurm job 7", "slurm", "7")
PROGRAM = (Group(2, ("prog", "-x", "a b")),)
PAIR, FREE, WIDE, NODES = Layout(), Layout(bind="none"), Layout(threads=4), Layout(2, 3)
MASKS = ((0, 1), (2, 3, 8))


def order(kind: str, layout: Layout = PAIR, **changes: Any) -> Order:
    """An order with one program, on this host if it holds the layout."""
    values: dict[str, Any] = {
        "allocation": HERE if layout.nodes == 1 else NAMED,
        "groups": (Group(layout.ranks_per_node, ("prog",)),),
        "folder": Path("/f"),
    }
    return Order(RUN, MPI[kind], layout, **{**values, **changes})


def command(kind: str, *arguments: Any, **changes: Any) -> Command:
    name = "srun" if kind == "srun" else MPI[kind].launcher_kind
    return LAUNCHERS[name].command(order(kind, *arguments, **changes))


def words(kind: str, *arguments: Any, **changes: Any) -> str:
    """The command line without the launcher and without the programs."""
    found = command(kind, *arguments, **changes)
    assert found.words[0] == str(RUN)
    return " ".join(word for word in found.words[1:] if word != "prog")


def settings(kind: str, *arguments: Any, **changes: Any) -> dict[str, str | None]:
    name = "srun" if kind == "srun" else MPI[kind].launcher_kind
    found = LAUNCHERS[name].rows(order(kind, *arguments, **changes))
    assert {row.scope for row in found} <= {Scope.LAUNCHER, Scope.RANK}
    return {row.name: row.value for row in found}


# ------------------------------------------------------------------ without masks


@pytest.mark.parametrize(
    ("kind", "layout", "crowded", "due"),
    [
        ("prrte", PAIR, False, "-n 2 --map-by ppr:2:node --bind-to core"),
        ("prrte", FREE, False, "-n 2 --map-by ppr:2:node --bind-to none"),
        ("prrte", WIDE, False, "-n 2 --map-by ppr:2:node:PE=4 --bind-to core"),
        ("prrte", PAIR, True, "-n 2 --map-by ppr:2:node:OVERSUBSCRIBE --bind-to none"),
        ("prrte", WIDE, True, "-n 2 --map-by ppr:2:node:OVERSUBSCRIBE --bind-to none"),
        ("prrte", NODES, False, "--host n1:3,n2:3 -n 6 --map-by ppr:3:node --bind-to core"),
        ("orte", PAIR, False, "-n 2 --map-by ppr:2:node --bind-to core"),
        ("orte", FREE, False, "-n 2 --map-by ppr:2:node --bind-to none"),
        ("orte", WIDE, False, "-n 2 --map-by ppr:2:node:PE=4 --bind-to core"),
        ("orte", PAIR, True, "-n 2 --map-by ppr:2:node --bind-to none --oversubscribe"),
        ("hydra", PAIR, False, "-ppn 2 -bind-to core -n 2"),
        ("hydra", FREE, False, "-ppn 2 -bind-to none -n 2"),
        ("hydra", WIDE, False, "-ppn 2 -bind-to core:4 -n 2"),
        ("hydra", PAIR, True, "-ppn 2 -bind-to none -n 2"),
        ("hydra", NODES, False, "-hosts n1,n2 -ppn 3 -bind-to core -n 6"),
        ("intel", PAIR, False, "-ppn 2 -n 2"),
        ("intel", PAIR, True, "-ppn 2 -n 2"),
    ],
)
def test_words(kind: str, layout: Layout, crowded: bool, due: str) -> None:
    assert words(kind, layout, crowded=crowded) == due


def test_srun_names_the_pmi_the_nodes_and_the_binding() -> None:
    step = "--distribution=block --kill-on-bad-exit=1"
    assert words("srun", NODES, allocation=SLURM, pmi="pmix", version="22.05.8") == (
        f"--mpi=pmix --nodes=2 --ntasks=6 --ntasks-per-node=3 {step} --nodelist=n1,n2 --overlap "
        "--cpu-bind=cores"
    )
    assert words("srun", FREE).startswith("--mpi=none --nodes=1 ")
    assert words("srun", FREE).endswith(f"{step} --cpu-bind=none")
    assert "--overcommit" in words("srun", PAIR, crowded=True)
    assert "--overlap" not in words("srun", PAIR, version="20.02.3")


def test_a_step_of_one_node_over_slingshot_asks_for_a_vni() -> None:
    vni = "--network=single_node_vni"
    assert vni in words("srun", PAIR, slingshot=True)
    assert vni not in words("srun", PAIR)
    assert vni not in words("srun", NODES, slingshot=True)
