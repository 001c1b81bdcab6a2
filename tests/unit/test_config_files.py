"""Configuration files that turn one transport into another are known, there or not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mpigraft import cache, config_files, grafts
from mpigraft.config_files import Surroundings, built_in
from mpigraft.errors import UsageError
from mpigraft.kept_evidence import evidence_key
from mpigraft.knowledge import config_rows
from mpigraft.model import (
    Bind,
    Configuration,
    EnvRow,
    Family,
    GuestKind,
    Layout,
    Scope,
    Stamp,
)
from tests.unit.graft_plans import label, plan
from tests.unit.probes import configuration, with_transport

PROGRAMS = cast(Any, SimpleNamespace(digest="d"))
OURS = (
    ("openmpi", "etc/openmpi-mca-params.conf"),
    ("openmpi", "etc/openmpi-mca-params-override.conf"),
    ("openmpi", "etc/prte-mca-params.conf"),
    ("openmpi", "etc/prte-mca-params-override.conf"),
    ("openmpi", "etc/prte-default-hostfile"),
    ("openmpi", "etc/pmix-mca-params.conf"),
    ("openmpi", "etc/pmix-mca-params-override.conf"),
    ("openmpi", "etc/openmpi-default-hostfile"),
    ("openmpi", "share/openmpi/amca-param-sets/mine"),
    ("openmpi", "home/.openmpi/mca-params.conf"),
    ("openmpi", "home/.prte/mca-params.conf"),
    ("openmpi", "home/.pmix/mca-params.conf"),
    ("openmpi", "home/ucx.conf"),
    ("openmpi", "cwd/ucx.conf"),
    ("openmpi", "ucd/ucx.conf"),
    ("openmpi", "lib/etc/ucx/ucx.conf"),
    ("openmpi", "lib/etc/ucx.conf"),
    ("openmpi", "named.conf"),
    ("mpich", "etc/mpiexec.hydra.conf"),
    ("mpich", "home/.mpiexec.hydra.conf"),
    ("mpich", "hydra.conf"),
    ("mpich", "cwd/ucx.conf"),
    ("intel", "etc/mpiexec.conf"),
    ("intel", "intel64/etc/mpiexec.conf"),
    ("intel", "home/.mpiexec.conf"),
    ("intel", "cwd/mpiexec.conf"),
    ("intel", "etc/tuning_mine.dat"),
    ("intel", "opt/mpi/etc/tuning_skx_shm.dat"),
    ("intel", "tuned.bin"),
)
ASKED = {
    "openmpi": ("openmpi@5.0.11", "ob1-sm"),
    "mpich": ("mpich@5.0.2", "ucx"),
    "intel": ("intel@2021.18.1", "shm"),
}


def a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("home", "cwd", "lib/ucx", "etc", "data"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "data"))
    (tmp_path / "lib/ucx/libucs.so.0").touch()
    return tmp_path


def asked(family: str, place: Path) -> Configuration:
    """An MPI with this folder for its prefix, and variables that name files in it."""
    one = configuration(*ASKED[family])
    assert one.mpi is not None
    assert one.transport is not None
    names = {
        "OMPI_MCA_mca_base_param_files": f"/nowhere,{place}/named.conf",
        "HYDRA_CONFIG_FILE": f"{place}/hydra.conf",
        "I_MPI_TUNING_BIN": f"{place}/tuned.bin",
        "UCX_CONFIG_DIR": f"{place}/ucd",
    }
    rows = tuple(EnvRow(name, value, Scope.RANK, "user") for name, value in names.items())
    mpi = replace(one.mpi, prefix=place, libmpi=None, launcher=None, libfabric=None, ucx=None)
    return replace(with_transport(one, env=(*one.transport.env, *rows)), mpi=mpi)


def key(one: Configuration, place: Path, **changes: Any) -> str:
    around = Surroundings(place / "cwd", (("HOME", str(place / "home")),), **changes)
    return evidence_key(one, Layout(), PROGRAMS, around=around)


@pytest.mark.parametrize(("family", "name"), OURS)
def test_a_file_that_appears_changes_or_goes_means_a_new_proof(
    family: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place(tmp_path, monkeypatch)
    seen = (place / "lib/ucx/libucs.so.0",)
    monkeypatch.setattr(config_files, "_seen", lambda _: seen)
    one = asked(family, place)
    file = place / name
    file.parent.mkdir(parents=True, exist_ok=True)
    without = key(one, place)
    assert str(file) in listed(one, place)
    file.write_text("btl = self,sm\n")
    with_file = key(one, place)
    file.write_text("btl = self,tcp\n")
    changed = key(one, place)
    assert len({without, with_file, changed}) == 3
    file.unlink()
    assert key(one, place) == without


def listed(one: Configuration, place: Path) -> set[str]:
    around = Surroundings(place / "cwd", (("HOME", str(place / "home")),))
    found = config_files.config_files(one, around)
    names = ("mine", "tuning_mine.dat", "tuning_skx_shm.dat")
    return {*found.paths, *(f"{folder}/{name}" for folder in found.folders for name in names)}


def test_a_file_of_another_mpi_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place(tmp_path, monkeypatch)
    one = asked("intel", place)
    before = key(one, place)
    (place / "etc/../home/.openmpi").mkdir()
    (place / "home/.openmpi/mca-params.conf").write_text("btl = self,tcp\n")
    (place / "cwd/other.conf").write_text("x\n")
    assert key(one, place) == before


def test_a_folder_of_ours_has_no_files_of_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place(tmp_path, monkeypatch)
    monkeypatch.chdir(place / "cwd")
    one = asked("openmpi", place)
    before = evidence_key(one, Layout(), PROGRAMS)
    (place / "cwd/ucx.conf").write_text("UCX_TLS=tcp\n")
    assert evidence_key(one, Layout(), PROGRAMS) == before


def test_what_a_job_inherits_and_binds_is_part_of_the_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place(tmp_path, monkeypatch)
    one = asked("openmpi", place)
    home = ("HOME", str(place / "home"))
    given: tuple[tuple[tuple[str, str], ...], ...] = (
        (home,),
        (home, ("PRTE_MCA_rmaps_default_mapping_policy", "slot")),
        (home, ("LD_LIBRARY_PATH", "/mine")),
    )
    keys = [
        evidence_key(one, Layout(), PROGRAMS, around=Surroundings(None, rows)) for rows in given
    ]
    bound = Surroundings(None, given[0], (Bind("/mine", "/etc/ucx"),))
    keys.append(evidence_key(one, Layout(), PROGRAMS, around=bound))
    assert len({*keys}) == 4
    other = Surroundings(None, (home, ("EDITOR", "vi")))
    assert evidence_key(one, Layout(), PROGRAMS, around=other) == keys[0]
    assert Surroundings().inherited is None
    assert Surroundings(None, given[1]).inherited == dict(given[1])


def test_paths_that_a_library_was_built_with_are_read_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place(tmp_path, monkeypatch)
    library = place / "lib/libucs.so.0"
    library.write_bytes(
        b"\0/opt/x/etc/ucx\0../etc/ucx/ucx.conf\0/opt/y/etc/libfabric.conf\0no/etc\0/opt/z/share\0"
        b"/bin/sh\0%s/etc/a.conf\0/a b.conf\0/opt/q/etc"
    )
    found = built_in(library)
    assert found == ("/opt/x/etc/ucx", "/opt/y/etc/libfabric.conf", "/opt/z/share")
    assert built_in(library) == found  # from what was kept
    assert built_in(place / "none") == ()


def test_the_files_of_built_in_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = a_place(tmp_path, monkeypatch)
    (place / "lib/libfabric.so.1").write_bytes(b"\0/opt/y/etc/libfabric.conf\0")
    (place / "lib/libucs.so.0").write_bytes(b"\0/opt/x/etc/ucx\0/opt/x/etc/other.conf\0")
    seen = tuple((place / "lib").glob("*.so.*"))
    monkeypatch.setattr(config_files, "_seen", lambda _: seen)
    paths = config_files.config_files(asked("mpich", place)).paths
    assert {"/opt/y/etc/libfabric.conf", "/opt/x/etc/ucx/ucx.conf"} <= {*paths}
    assert "/opt/x/etc/ucx/libfabric.conf" not in paths
    assert not [path for path in paths if "other.conf" in path]


# ------------------------------------------------------------------ guests


def in_guest(place: Path, **changes: Any) -> Configuration:
    one = asked("openmpi", place)
    return replace(one, graft=plan(label(str(place / "image")), "bwrap", **changes))


@pytest.mark.parametrize(
    "name", ["image/etc/ucx/ucx.conf", "image/etc/mpich.conf", "bound/ucx.conf", "bound"]
)
def test_a_guests_own_files_and_bound_ones_count(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place(tmp_path, monkeypatch)
    one = in_guest(place)
    if "mpich" in name:
        mpich = asked("mpich", place)
        one = replace(mpich, graft=one.graft)
    file = place / name
    target = "/etc/ucx" if name.endswith("bound/ucx.conf") else "/etc/ucx/ucx.conf"
    binds = (Bind(str(place / "bound"), target),)
    file.parent.mkdir(parents=True, exist_ok=True)
    before = key(one, place, binds=binds)
    file.write_text("UCX_TLS=tcp\n")
    assert key(one, place, binds=binds) != before


def test_the_grafts_own_folder_is_where_ranks_see_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place(tmp_path, monkeypatch)
    one = in_guest(place)
    assert one.graft is not None
    file = grafts.folder(one.graft) / "etc/openmpi-mca-params-override.conf"
    file.parent.mkdir(parents=True)
    before = key(one, place)
    file.write_text("btl = self,tcp\n")
    assert key(one, place) != before


def test_a_library_of_a_guest_says_what_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place(tmp_path, monkeypatch)
    library = place / "image/usr/lib/libucs.so.0"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"\0/opt/inside/etc/ucx\0")
    one = in_guest(place, inputs=(Stamp(str(library), 1, 2, 3, 4),))
    paths = config_files.config_files(one).paths
    assert f"{place}/image/opt/inside/etc/ucx/ucx.conf" in paths
    assert f"{place}/image/usr/lib/etc/ucx.conf" in paths or (
        f"{place}/image/usr/etc/ucx.conf" in paths
    )


# ------------------------------------------------------------------ what may be to blame


def test_files_of_comments_alone_are_not_to_blame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place(tmp_path, monkeypatch)
    (place / "cwd/ucx.conf").write_text("# UCX_TLS=tcp\n\n")
    (place / "home/ucx.conf").write_text("# mine\nUCX_TLS=tcp # all\n")
    (place / "etc/mpiexec.hydra.conf").write_bytes(b"\xff=1")  # nobody can read it
    found = config_files.config_files(asked("mpich", place), Surroundings(place / "cwd"))
    assert found.with_settings() == (f"{place}/home/ucx.conf",)


# ------------------------------------------------------------------ settings that name files


@pytest.mark.parametrize(
    ("setting", "due"),
    [
        ("OMPI_MCA_coll_tuned_dynamic_rules_filename=/x/rules", ("/x/rules",)),
        ("OMPI_MCA_mca_base_param_files=/x/a,/x/b", ("/x/a", "/x/b")),
        ("PMIX_MCA_mca_base_param_files=/x/a:/x/b", ("/x/a", "/x/b")),
        ("OMPI_MCA_mca_base_param_file_prefix=set", ("{}/cwd/set",)),
        ("OMPI_MCA_mca_base_param_file_prefix=set", ("{}/share/openmpi/amca-param-sets/set",)),
        ("EDITOR=/x/a", ()),
        ("FI_PROVIDER_PATH=/x/a", ()),
        ("OMPI_MCA_btl=self,sm", ()),
    ],
)
def test_files_that_settings_name(
    setting: str, due: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place(tmp_path, monkeypatch)
    name, _, value = setting.partition("=")
    plain = asked("openmpi", place)
    assert plain.transport is not None
    rows = (*plain.transport.env, EnvRow(name, value, Scope.RANK, "module"))
    one = with_transport(plain, env=rows)
    around = Surroundings(place / "cwd")
    new = {*config_files.config_files(one, around).paths}
    new -= {*config_files.config_files(plain, around).paths}
    wanted = {path.format(place) for path in due}
    assert wanted <= new
    assert wanted or not new


def test_of_a_folder_every_file_counts_where_a_setting_means_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = a_place(tmp_path, monkeypatch)
    folder = place / "sets"
    folder.mkdir()

    def found(name: str) -> config_files.ConfigFiles:
        plain = asked("openmpi", place)
        rows = (EnvRow(name, str(folder), Scope.RANK, "user"),)
        return config_files.config_files(with_transport(plain, env=rows))

    (folder / "one").write_text("x\n")
    assert str(folder / "one") in found("OMPI_MCA_mca_base_param_file_path").present
    assert str(folder / "one") not in found("OMPI_MCA_orte_tmpdir_base").present


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
