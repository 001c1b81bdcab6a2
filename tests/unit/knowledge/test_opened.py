"""The table of what is opened by name."""

from __future__ import annotations

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Family
from mpigraft.knowledge import read_rows
from mpigraft.knowledge.files import opened
from mpigraft.knowledge.files.opened import Opened

GOOD: dict[str, object] = {
    "id": "modules",
    "by": r"libx\.so\.1",
    "folders": ["{dir}/x"],
    "names": r"libx_\w+\.so",
    "place": "x",
    "sources": ["somewhere"],
}


def test_the_tables_own_rows_have_a_place_that_their_environment_names() -> None:
    """A folder that no variable names is found by where the opener lies, or is searched."""
    for row in opened.rows():
        told = " ".join(value for _, value in (*row.env, *row.listed))
        if row.plugins.place not in ("", "mpi"):
            assert f"{{graft}}/lib/{row.plugins.place}" in told, row.id
        for _, value in (*row.env, *row.listed):
            assert value.startswith("{graft}"), row.id
        assert row.sources


def test_only_open_mpi_before_5_starts_a_program_for_a_process_that_starts_alone() -> None:
    (row,) = opened.started_by("libopen-rte.so.40", Family.OPENMPI)
    assert (row.name, row.place, row.env) == (
        "orted",
        "bin",
        (("OPAL_BINDIR", "{graft}/bin"), ("OMPI_MCA_plm_rsh_agent", "ssh : rsh : false")),
    )
    assert not [*opened.started_by("libopen-pal.so.80", Family.OPENMPI)]
    assert not [*opened.started_by("libopen-rte.so.40", Family.MPICH)]


@pytest.mark.parametrize(
    ("soname", "family", "rows"),
    [
        ("libucs.so.0", Family.MPICH, {"ucx-modules"}),
        ("libucs.so.0", None, {"ucx-modules"}),
        ("libfabric.so.1", Family.INTEL, {"libfabric-providers"}),
        ("libmpi.so.12", Family.MPICH, set()),
        ("libmpi.so.12", Family.INTEL,
         {"intel-libfabric", "intel-helpers", "intel-ze-hooks", "intel-numa"}),
        ("libmpi_gnu_123.so.12", Family.CRAY_MPICH, {"cray-gtl"}),
        ("libopen-pal.so.40", Family.OPENMPI, {"openmpi-components"}),
        ("libopen-pal.so.40", None, set()),
        ("libc.so.6", Family.OPENMPI, set()),
    ],
)  # fmt: skip
def test_who_opens_what(soname: str, family: Family | None, rows: set[str]) -> None:
    assert {row.id for row in opened.opened_by(soname, family)} == rows


def test_lists_name_each_plugin() -> None:
    listed = {"DRIVERS": "{graft}/lib/x/{stem}", "NAMES": "{name}"}
    (row,) = read_rows(Opened, "opened", {"opened": [GOOD | {"listed": listed}]}, "opened.toml")
    names = ["libmlx5-rdmav34.so", "libefa-rdmav34.so"]
    assert row.list_of(names) == {
        "DRIVERS": "{graft}/lib/x/libmlx5:{graft}/lib/x/libefa",
        "NAMES": "libmlx5-rdmav34.so:libefa-rdmav34.so",
    }
    assert row.list_of([]) == {}


def test_folders_are_tried_with_each_value() -> None:
    facts = {"dir": ("/a", "/b"), "prefix": ("/p",), "system": (), "etc": ()}
    assert list(opened.expand_folder("{dir}/../x", facts)) == ["/a/../x", "/b/../x"]
    assert list(opened.expand_folder("{system}", facts)) == []
    assert list(opened.expand_folder("/etc/x", facts)) == ["/etc/x"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"by": "("}, "not a regular expression"),
        ({"family": ["lam"]}, "'lam' is unknown"),
        ({"folders": ["{home}/x"]}, "may name only dir, prefix, system, etc, bin"),
        ({"place": "../x"}, "leads out of the graft folder"),
        ({"place": "/x"}, "leads out of the graft folder"),
        ({"env": {"A": "{dir}"}}, "may name only graft"),
        ({"listed": {"A": "{x}"}}, "may name only graft, name, stem"),
        ({"data": [{"folders": ["/etc"], "names": "(", "place": "etc"}]}, "not a regular"),
        ({"data": [{"folders": ["/etc"], "names": "a", "place": "etc", "more": 1}]}, "unknown key"),
        ({"more": 1}, "unknown key"),
    ],
)
def test_a_wrong_row_is_named(change: dict[str, object], said: str) -> None:
    read_rows(Opened, "opened", {"opened": [GOOD]}, "opened.toml")
    with pytest.raises(UsageError, match=r"opened\.toml, row modules") as caught:
        read_rows(Opened, "opened", {"opened": [GOOD | change]}, "opened.toml")
    assert said in str(caught.value)


def test_two_rows_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two rows are called modules"):
        read_rows(Opened, "opened", {"opened": [GOOD, GOOD]}, "opened.toml")
