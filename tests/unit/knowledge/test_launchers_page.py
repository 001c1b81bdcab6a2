"""docs/reference/launchers.md says what the launchers' code and data say."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from mpigraft.core.model import Allocation, Group, Layout, Order, Scope
from mpigraft.knowledge import rank_variables
from mpigraft.knowledge.fit import rows as fit
from mpigraft.launch.launchers.registry import LAUNCHERS
from tests.builders.configuration import an_mpi

PAGE = Path(__file__).parents[3] / "docs/reference/launchers.md"
HOSTS = Allocation(("n1", "n2"), "--hosts")
MASKS = ((1,), (2, 3, 8))
MPI = {
    "prrte": an_mpi("openmpi@5.0.11"), "orte": an_mpi("openmpi@4.1.8"),
    "hydra": an_mpi("mpich@5.0.2"), "hydra of Intel": an_mpi("intel@2021.18.1"),
}  # fmt: skip
PMI = {"srun": "pmix", "flux": "pmix", "pals": "pmix"}


def table(head: str, rows: Sequence[tuple[str, ...]]) -> str:
    columns = head.count("|") + 1
    lines = [f"| {head} |", "|" + " --- |" * columns]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def worlds() -> str:
    rows = []
    for row in fit.fit_facts().worlds:
        releases = f" {row.when}" if row.when else ""
        ends = "each rank is 0 of 1" if row.alone else "one world"
        offers = f"{row.pmi or '-'}{f', not {row.unless}' if row.unless else ''}"
        rows.append((row.launcher, f"{', '.join(row.families)}{releases}", offers,
                     ", ".join(row.supports) or "any", ends))  # fmt: skip
    return table("launcher | MPI | it offers | the library supports | ranks", rows)


def words() -> str:
    rows = []
    for name in ("prrte", "orte", "hydra", "hydra of Intel", "srun", "flux", "pals", "aprun"):
        kind = LAUNCHERS[name.partition(" ")[0]]
        told = []
        for masks in ((), MASKS):
            order = Order(Path("/bin/RUN"), MPI.get(name, MPI["prrte"]), Layout(2, 2), HOSTS,
                          (Group(2, ("PROGRAM",)),), masks, pmi=PMI.get(name, ""),
                          version="22.05", folder=Path("/f"))  # fmt: skip
            line = " ".join(kind.command(order).words[1:-1])
            pins = [f"{r.name}={r.value}" for r in kind.rows(order) if r.name.startswith("I_MPI")]
            assert all(r.scope is not Scope.DAEMON for r in kind.rows(order))
            told.append(f"`{' '.join([*pins, line])}`")
        rows.append((name, *told))
    return table("launcher | without masks | with masks", rows)


def local() -> str:
    return table("launcher | variable", [
        (name, ", ".join(f"`{one}`" for one in rank_variables(name).node) or "none")
        for name in LAUNCHERS
    ])  # fmt: skip


def test_the_page_says_what_the_code_says() -> None:
    text = PAGE.read_text()
    due = text
    for name, made in (("worlds", worlds()), ("words", words()), ("local", local())):
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end -->)"
        assert re.search(pattern, due, re.DOTALL)
        due = re.sub(pattern, lambda m, made=made: f"{m[1]}{made}\n{m[2]}", due, flags=re.DOTALL)  # type: ignore[misc]
    if "MPIGRAFT_WRITE_DOCS" in os.environ:
        PAGE.write_text(due)
        return
    assert text == due, "the page is out of date: MPIGRAFT_WRITE_DOCS=1 rewrites it"
