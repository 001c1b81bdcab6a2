"""What of a user's environment a job is given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import EnvRow, Scope
from mpigraft.request.environment import filter_environment

NAMES = st.sampled_from(
    ["HOME", "MY_DATA", "FI_PROVIDER", "FI_LOG_LEVEL", "OMPI_MCA_pml", "OMPI_MCA_coll_tuned_x",
     "PMI_RANK", "PMIX_MCA_gds", "PMIX_RANK", "UCX_TLS", "UCX_RNDV_THRESH", "LD_PRELOAD",
     "LD_LIBRARY_PATH", "OPAL_PREFIX", "I_MPI_ADJUST_BCAST", "I_MPI_ROOT", "MPIR_CVAR_X"]
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("PMI_RANK", "another launch"),
        ("PMIX_NAMESPACE", "another launch"),
        ("OMPI_COMM_WORLD_RANK", "another launch"),
        ("HYDI_CONTROL_FD", "another launch"),
        ("MPIGRAFT_WITNESS", "another launch"),
        ("MPIGRAFT_SPAWN_PARENT", "another launch"),
        ("OPAL_PREFIX", "points to another MPI"),
        ("I_MPI_ROOT", "points to another MPI"),
        ("FI_PROVIDER_PATH", "points to another MPI"),
        ("FI_PROVIDER", "selects a transport"),
        ("OMPI_MCA_pml", "selects a transport"),
        ("UCX_TLS", "selects a transport"),
        ("I_MPI_FABRICS", "selects a transport"),
        ("MPIR_CVAR_CH4_NETMOD", "selects a transport"),
        ("FI_LNX_PROV_LINKS", "selects a transport"),
        ("PRTE_MCA_ras_base_launch_orted_on_hn", "selects a transport"),
        ("UCX_NET_DEVICES", "selects a transport"),
        ("I_MPI_DEVICE", "selects a transport"),
    ],
)
def test_what_steers_wrongly_is_dropped_and_named(name: str, why: str) -> None:
    found = filter_environment({name: "x", "HOME": "/h"})
    assert found.environment == (("HOME", "/h"),)
    assert found.settings == ()
    ((dropped, reason),) = found.dropped
    assert dropped == name
    assert why in reason


@pytest.mark.parametrize(
    "name", ["OMPI_MCA_coll_tuned_x", "FI_LOG_LEVEL", "UCX_RNDV_THRESH", "PMIX_MCA_gds"]
)
def test_what_tunes_is_a_setting_so_that_it_is_proved_too(name: str) -> None:
    found = filter_environment({name: "1"})
    assert found.settings == (f"{name}=1",)
    assert found.dropped == ()


def test_search_path_and_preloads_are_for_ranks_alone() -> None:
    found = filter_environment({"LD_LIBRARY_PATH": "/a", "LD_PRELOAD": "/b.so"})
    assert found.environment == ()
    assert found.rows == (
        EnvRow("LD_LIBRARY_PATH", "/a", Scope.RANK, "user"),
        EnvRow("LD_PRELOAD", "/b.so", Scope.RANK, "user"),
    )
    guest = found.for_guest()
    assert guest.rows == ()
    assert {name for name, _ in guest.dropped} == {"LD_LIBRARY_PATH", "LD_PRELOAD"}


def test_a_secret_is_passed_but_never_a_setting() -> None:
    found = filter_environment({"UCX_AUTH_TOKEN": "s", "MY_TOKEN": "t"})
    assert dict(found.environment) == {"UCX_AUTH_TOKEN": "s", "MY_TOKEN": "t"}
    assert found.settings == ()


def test_a_name_that_no_flag_takes_is_no_setting() -> None:
    found = filter_environment({"OMPI_MCA_a.b": "1"})
    assert dict(found.environment) == {"OMPI_MCA_a.b": "1"}
    assert found.settings == ()


@given(st.dictionaries(NAMES, st.text(max_size=5)))
def test_each_variable_passes_or_is_named(environ: dict[str, str]) -> None:
    found = filter_environment(environ)
    passed = {name for name, _ in found.environment} | {row.name for row in found.rows}
    dropped = {name for name, _ in found.dropped}
    assert not passed & dropped
    empty = {n for n in ("LD_LIBRARY_PATH", "LD_PRELOAD") if not environ.get(n, "x")}
    assert passed | dropped | empty == set(environ)
