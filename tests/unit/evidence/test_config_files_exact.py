"""Of a configuration exactly these files are read; the rows that say so are checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core import cache
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Bind, Configuration, EnvRow, Family, GuestKind, Scope
from mpigraft.evidence.files import config
from mpigraft.evidence.files.config import Surroundings, built_in
from mpigraft.graft.folder import folders
from mpigraft.knowledge import read_rows
from mpigraft.knowledge.files import config as table
from tests.builders.config_files import asked, in_guest
from tests.builders.plans import label, plan

# ------------------------------------------------------------------ exactly these


def only(monkeypatch: pytest.MonkeyPatch, *files: str) -> None:
    row = {"id": "x", "reads": "X", "sources": ["y"], "files": [*files]}
    rows = read_rows(table.ConfigRow, "config", {"config": [row]}, "config_files.toml")
    monkeypatch.setattr(config, "config_rows", lambda: rows)


def with_rows(one: Configuration, **values: str) -> Configuration:
    rows = tuple(EnvRow(name, value, Scope.RANK, "user") for name, value in values.items())
    return replace(one, environment=rows)


def test_a_template_with_every_value_of_what_it_names(
    monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    templates = ("{prefix}/p", "{home}/h", "{cwd}/c", "{UCX_V}/v", "{UCX_R}/v", "{prefix}/d/*")
    only(monkeypatch, *templates)
    folder = str(place / "lib")
    settings = {"UCX_V": "/v", "UCX_R": "rel", "OMPI_MCA_btl": "self", "OMPI_MCA_tmp": folder}
    one = with_rows(asked("openmpi", place), **settings)
    assert one.mpi is not None
    rows = (EnvRow("OPAL_PREFIX", "/o", Scope.RANK, "plan"),)
    one = replace(one, mpi=replace(one.mpi, environment=rows))
    given = (("HOME", "/u"), ("I_MPI_ROOT", "/i"), ("PRTE_PREFIX", "rel"))
    found = config.mpi_config_files(one, Surroundings(Path("/w"), given))
    assert found.paths == ("/o/p", "/i/p", f"{place}/p", "/u/h", "/w/c", "/v/v", "/v")
    assert found.folders == ("/o/d", "/i/d", f"{place}/d")


def test_of_a_configuration_that_nothing_is_known_of(
    monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    only(monkeypatch, "/etc/x", "{prefix}/p", "{home}/h", "{cwd}/c")
    bare = Configuration("key", "id", None, None)
    assert config.mpi_config_files(bare).paths == ("/etc/x", f"{place}/home/h")

    def homeless(_: Path) -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "expanduser", homeless)
    assert config.mpi_config_files(bare).paths == ("/etc/x",)


def test_the_environment_and_the_folder_of_a_graft_are_prefixes(
    monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    only(monkeypatch, "{prefix}/p")
    row = EnvRow("OPAL_PREFIX", "/other", Scope.RANK, "plan")
    one = in_guest(place, environment=(row,))
    assert one.graft is not None
    folder = folders.graft_folder(one.graft)
    assert {"/other/p", f"{folder}/p"} <= {*config.mpi_config_files(one).paths}


@pytest.mark.usefixtures("place")
def test_where_a_path_of_a_guest_may_lie() -> None:
    binds = (Bind("/mine", "/etc/ucx/"), Bind("/root-of-all", "/"))
    folder, image = plan(label("/img"), "bwrap"), plan(label("/img", GuestKind.SIF), "bwrap")
    graft = folders.graft_folder(folder)
    for path, due in (
        ("/etc/ucx/ucx.conf", {"/mine/ucx.conf", "/root-of-all/etc/ucx/ucx.conf"}),
        ("/etc/ucx", {"/root-of-all/etc/ucx"}),
        ("/etc/ucxx", {"/root-of-all/etc/ucxx"}),
        ("/.mpigraft/etc/a", {f"{graft}/etc/a", "/root-of-all/.mpigraft/etc/a"}),
    ):
        assert {*config._in_guest(path, image, binds)} == {path, *due}
        assert {*config._in_guest(path, folder, binds)} == {path, f"/img{path}", *due}
    assert [*config._in_guest("/img/etc/a", folder, ())] == ["/img/etc/a"]
    file = (Bind("/mine.conf", "/etc/ucx/ucx.conf"),)
    assert "/mine.conf" in config._in_guest("/etc/ucx/ucx.conf", image, file)
    assert [*config._in_guest("/etc/ucx/ucx.conf.old", image, file)] == ["/etc/ucx/ucx.conf.old"]


def test_what_was_kept_of_a_library_is_not_read_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = place / "lib/libucs.so.0"
    library.write_bytes(b"\0/opt/x/etc/ucx\0")
    monkeypatch.setattr(cache, "get", lambda *_: ["/kept/etc"])
    assert built_in(library) == ("/kept/etc",)


def test_only_files_that_are_there_are_present(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a").touch()
    (tmp_path / "in/more").mkdir()
    paths = (str(tmp_path / "none"), str(tmp_path / "in/a"), str(tmp_path / "in"))
    found = config.ConfigFiles(paths, (str(tmp_path / "in"), str(tmp_path / "gone")))
    assert [*found.present] == [str(tmp_path / "in/a")]


def test_an_empty_variable_names_no_file() -> None:
    row = table.ConfigRow("x", "X", ("{UCX_CONFIG_DIR}/ucx.conf",), ("y",))
    assert [*config._filled(row, {}, {"UCX_CONFIG_DIR": ""}, ())] == []
    assert [*config._filled(row, {}, {"UCX_CONFIG_DIR": "/u"}, ())] == ["/u/ucx.conf"]


# ------------------------------------------------------------------ the data


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"files": ["etc/x"]}, "is not a path"),
        ({"files": ["/etc/*/x"]}, r"has a \* before its end"),
        ({"files": ["{nowhere}/x"]}, "unknown fact"),
        ({"files": ["{dir}/x"]}, "without `by`"),
        ({"files": ["/x"], "family": ["mpi"]}, "key family: 'mpi' is unknown"),
        ({"files": ["/x"], "by": "("}, "not a regular expression"),
        ({"files": ["/x"], "more": "x"}, "unknown key"),
    ],
)
def test_a_wrong_row_is_refused(row: dict[str, Any], why: str) -> None:
    whole = {"id": "x", "reads": "X", "sources": ["y"], **row}
    with pytest.raises(UsageError, match=why):
        read_rows(table.ConfigRow, "config", {"config": [whole]}, "config_files.toml")


def test_two_rows_of_one_name_are_refused() -> None:
    row = {"id": "x", "reads": "X", "sources": ["y"], "files": ["/x"]}
    with pytest.raises(UsageError, match="two rows are called x"):
        read_rows(table.ConfigRow, "config", {"config": [row, row]}, "config_files.toml")


def test_every_family_has_files_that_it_reads() -> None:
    for family in Family:
        assert [row for row in table.config_rows() if family in row.families], family


def test_the_table_of_the_docs_has_every_row() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/reference/config-files.md").read_text()
    for row in table.config_rows():
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {row.reads} |")]
        for template in row.files:
            assert template.rpartition("/")[2].strip("{}") in line, (row.id, template)
