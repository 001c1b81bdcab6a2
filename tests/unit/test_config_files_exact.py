"""Of a configuration exactly these files are read; the rows that say so are checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft import cache, config_files, grafts
from mpigraft.config_files import Surroundings, built_in
from mpigraft.errors import UsageError
from mpigraft.knowledge import config_rows
from mpigraft.model import (
    Bind,
    Configuration,
    EnvRow,
    Family,
    GuestKind,
    Scope,
)
from tests.unit.config_places import a_place, asked, in_guest
from tests.unit.graft_plans import label, plan
from tests.unit.probes import with_transport

# ------------------------------------------------------------------ exactly these


def only(monkeypatch: pytest.MonkeyPatch, *files: str) -> None:
    row = {"id": "x", "reads": "X", "sources": ["y"], "files": [*files]}
    rows = config_rows.read({"config": [row]})
    monkeypatch.setattr(config_files, "rows", lambda: rows)


def with_rows(one: Configuration, **values: str) -> Configuration:
    rows = tuple(EnvRow(name, value, Scope.RANK, "user") for name, value in values.items())
    return with_transport(one, env=rows)


def test_a_template_with_every_value_of_what_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place(tmp_path, monkeypatch)
    templates = ("{prefix}/p", "{home}/h", "{cwd}/c", "{UCX_V}/v", "{UCX_R}/v", "{prefix}/d/*")
    only(monkeypatch, *templates)
    folder = str(place / "lib")
    settings = {"UCX_V": "/v", "UCX_R": "rel", "OMPI_MCA_btl": "self", "OMPI_MCA_tmp": folder}
    one = with_rows(asked("openmpi", place), **settings)
    assert one.mpi is not None
    rows = (EnvRow("OPAL_PREFIX", "/o", Scope.RANK, "plan"),)
    one = replace(one, mpi=replace(one.mpi, environment=rows))
    given = (("HOME", "/u"), ("I_MPI_ROOT", "/i"), ("PRTE_PREFIX", "rel"))
    found = config_files.config_files(one, Surroundings(Path("/w"), given))
    assert found.paths == ("/o/p", "/i/p", f"{place}/p", "/u/h", "/w/c", "/v/v", "/v")
    assert found.folders == ("/o/d", "/i/d", f"{place}/d")


def test_of_a_configuration_that_nothing_is_known_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place(tmp_path, monkeypatch)
    only(monkeypatch, "/etc/x", "{prefix}/p", "{home}/h", "{cwd}/c")
    bare = Configuration("key", "id", None, None)
    assert config_files.config_files(bare).paths == ("/etc/x", f"{place}/home/h")

    def homeless(_: Path) -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "expanduser", homeless)
    assert config_files.config_files(bare).paths == ("/etc/x",)


def test_the_environment_and_the_folder_of_a_graft_are_prefixes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place(tmp_path, monkeypatch)
    only(monkeypatch, "{prefix}/p")
    row = EnvRow("OPAL_PREFIX", "/other", Scope.RANK, "plan")
    one = in_guest(place, environment=(row,))
    assert one.graft is not None
    folder = grafts.folder(one.graft)
    assert {"/other/p", f"{folder}/p"} <= {*config_files.config_files(one).paths}


def test_where_a_path_of_a_guest_may_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_place(tmp_path, monkeypatch)
    binds = (Bind("/mine", "/etc/ucx/"), Bind("/root-of-all", "/"))
    folder, image = plan(label("/img"), "bwrap"), plan(label("/img", GuestKind.SIF), "bwrap")
    graft = grafts.folder(folder)
    for path, due in (
        ("/etc/ucx/ucx.conf", {"/mine/ucx.conf", "/root-of-all/etc/ucx/ucx.conf"}),
        ("/etc/ucx", {"/root-of-all/etc/ucx"}),
        ("/etc/ucxx", {"/root-of-all/etc/ucxx"}),
        ("/.mpigraft/etc/a", {f"{graft}/etc/a", "/root-of-all/.mpigraft/etc/a"}),
    ):
        assert {*config_files._in_guest(path, image, binds)} == {path, *due}
        assert {*config_files._in_guest(path, folder, binds)} == {path, f"/img{path}", *due}
    assert [*config_files._in_guest("/img/etc/a", folder, ())] == ["/img/etc/a"]
    file = (Bind("/mine.conf", "/etc/ucx/ucx.conf"),)
    assert "/mine.conf" in config_files._in_guest("/etc/ucx/ucx.conf", image, file)
    assert [*config_files._in_guest("/etc/ucx/ucx.conf.old", image, file)] == [
        "/etc/ucx/ucx.conf.old"
    ]


def test_what_was_kept_of_a_library_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = a_place(tmp_path, monkeypatch) / "lib/libucs.so.0"
    library.write_bytes(b"\0/opt/x/etc/ucx\0")
    monkeypatch.setattr(cache, "get", lambda *_: ["/kept/etc"])
    assert built_in(library) == ("/kept/etc",)


def test_only_files_that_are_there_are_present(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a").touch()
    (tmp_path / "in/more").mkdir()
    paths = (str(tmp_path / "none"), str(tmp_path / "in/a"), str(tmp_path / "in"))
    found = config_files.ConfigFiles(paths, (str(tmp_path / "in"), str(tmp_path / "gone")))
    assert [*found.present] == [str(tmp_path / "in/a")]


# ------------------------------------------------------------------ the data


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"files": ["etc/x"]}, "is no path"),
        ({"files": ["/etc/*/x"]}, r"has a \* before its end"),
        ({"files": ["{nowhere}/x"]}, "no fact is called"),
        ({"files": ["{dir}/x"]}, "without `by`"),
        ({"files": ["/x"], "family": ["mpi"]}, "is no family"),
        ({"files": ["/x"], "by": "("}, "not a regular expression"),
        ({"files": ["/x"], "more": "x"}, "nobody knows this key"),
    ],
)
def test_a_wrong_row_is_refused(row: dict[str, Any], why: str) -> None:
    whole = {"id": "x", "reads": "X", "sources": ["y"], **row}
    with pytest.raises(UsageError, match=why):
        config_rows.read({"config": [whole]})


def test_two_rows_of_one_name_are_refused() -> None:
    row = {"id": "x", "reads": "X", "sources": ["y"], "files": ["/x"]}
    with pytest.raises(UsageError, match="another row has it"):
        config_rows.read({"config": [row, row]})


def test_every_family_has_files_that_it_reads() -> None:
    for family in Family:
        assert [row for row in config_rows.rows() if family in row.families], family


def test_the_table_of_the_docs_has_every_row() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/config-files.md").read_text()
    for row in config_rows.rows():
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {row.reads} |")]
        for template in row.files:
            assert template.rpartition("/")[2].strip("{}") in line, (row.id, template)
