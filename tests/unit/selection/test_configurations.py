"""One way to a configuration: `run` and `bench` make it of the same parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.model import EnvRow, LaunchedBy, Scope
from mpigraft.knowledge import Facts
from mpigraft.request import settings_of
from mpigraft.selection import MpiSelection, UserChoice, configurations, make_configuration
from tests.builders.configuration import a_machine, a_transport, an_mpi

SETTINGS = ("FI_LOG_LEVEL=warn", "OMP_STACKSIZE=8M")
MPI = an_mpi("openmpi@5.0.11", libmpi=Path("/opt/lib/libmpi.so.40"))
SEARCH = EnvRow("LD_LIBRARY_PATH", "/opt/lib", Scope.RANK, "mpi, user")
BY_SRUN = LaunchedBy("srun", Path("/usr/bin/srun"), "24.05", "pmix")
FABRIC = a_transport("ofi-tcp")
FACTS, USER = Facts.of(a_machine(MPI)), UserChoice(settings_of(SETTINGS))
STORED = "1c240c5b8979452ff128638f8426e0490b47edde3486cf3c976f420dad19bfb8"  # by older versions
STORED_BY_SRUN = "db8ef69873c2a2470fa40372fea0314b78b35d4692b78e81d16c03b77a876872"


@pytest.fixture(autouse=True)
def facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configurations, "resolve_transport", lambda *_: FABRIC)
    monkeypatch.setattr(configurations, "library_digests", lambda _: (("libmpi.so.40", "aa"),))


def test_a_configuration_has_an_environment_and_its_transport_is_the_row_alone() -> None:
    one = make_configuration(MpiSelection(MPI, rows=(SEARCH,)), FACTS, "ofi-tcp", USER)
    assert one.transport == FABRIC
    user = [
        EnvRow("FI_LOG_LEVEL", "warn", Scope.RANK, "user"),
        EnvRow("OMP_STACKSIZE", "8M", Scope.RANK, "user"),
    ]
    assert one.environment == (SEARCH, *user)
    assert one.rows == (*FABRIC.env, SEARCH, *user)


def test_without_a_transport_the_mpi_chooses_its_own() -> None:
    one = make_configuration(MpiSelection(MPI, rows=(SEARCH,)), FACTS, user=USER)
    assert (one.transport, one.id, one.libraries) == (None, "openmpi@5.0.11", ())
    assert one.rows == one.environment
    assert one.environment[0] == SEARCH


def test_the_key_is_of_contents_and_as_stores_have_it() -> None:
    one = make_configuration(MpiSelection(MPI), FACTS, "ofi-tcp", USER)
    assert one.key == STORED
    assert one.id == "openmpi@5.0.11/ofi-tcp+FI_LOG_LEVEL=warn+OMP_STACKSIZE=8M"
    rows = MpiSelection(MPI, "a reason", (SEARCH,))
    assert make_configuration(rows, FACTS, "ofi-tcp", USER).key == STORED  # paths are not contents
    by = make_configuration(MpiSelection(MPI), FACTS, "ofi-tcp", USER, BY_SRUN)
    assert by.key == STORED_BY_SRUN
    keys = set()
    for compiler in ("gcc 12.2.0", "clang 14.0.6"):
        built = replace(MPI, provenance=(("built", "by EasyBuild"), ("compiler", compiler)))
        keys.add(make_configuration(MpiSelection(built), FACTS, "ofi-tcp", USER).key)
    assert len(keys | {STORED}) == 3  # programs are compiled with it
    assert by.id == "openmpi@5.0.11/ofi-tcp+srun+FI_LOG_LEVEL=warn+OMP_STACKSIZE=8M"
