"""Configuration files that turn one transport into another are known, there or not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.model import Bind, Configuration, EnvRow, Layout, Scope, Stamp
from mpigraft.evidence.files import config
from mpigraft.evidence.files.config import Surroundings, built_in
from mpigraft.evidence.keys import evidence_key
from mpigraft.graft.folder import folders
from tests.builders.config_files import PROGRAMS, asked, in_guest, key

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


@pytest.mark.parametrize(("family", "name"), OURS)
def test_a_file_that_appears_changes_or_goes_means_a_new_proof(
    family: str, name: str, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    seen = (place / "lib/ucx/libucs.so.0",)
    monkeypatch.setattr(config, "_inspected_files", lambda _: seen)
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
    found = config.mpi_config_files(one, around)
    names = ("mine", "tuning_mine.dat", "tuning_skx_shm.dat")
    return {*found.paths, *(f"{folder}/{name}" for folder in found.folders for name in names)}


def test_a_file_of_another_mpi_changes_nothing(place: Path) -> None:
    one = asked("intel", place)
    before = key(one, place)
    (place / "etc/../home/.openmpi").mkdir()
    (place / "home/.openmpi/mca-params.conf").write_text("btl = self,tcp\n")
    (place / "cwd/other.conf").write_text("x\n")
    assert key(one, place) == before


def test_a_folder_of_ours_has_no_files_of_the_users(
    monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    monkeypatch.chdir(place / "cwd")
    one = asked("openmpi", place)
    before = evidence_key(one, Layout(), PROGRAMS)
    (place / "cwd/ucx.conf").write_text("UCX_TLS=tcp\n")
    assert evidence_key(one, Layout(), PROGRAMS) == before


def test_what_a_job_inherits_and_binds_is_part_of_the_proof(place: Path) -> None:
    one = asked("openmpi", place)
    home = ("HOME", str(place / "home"))
    given: tuple[tuple[tuple[str, str], ...], ...] = (
        (home,),
        (home, ("PRTE_MCA_rmaps_default_mapping_policy", "slot")),
        (home, ("LD_LIBRARY_PATH", "/mine")),
    )
    keys = [
        evidence_key(one, Layout(), PROGRAMS, surroundings=Surroundings(None, rows))
        for rows in given
    ]
    bound = Surroundings(None, given[0], (Bind("/mine", "/etc/ucx"),))
    keys.append(evidence_key(one, Layout(), PROGRAMS, surroundings=bound))
    assert len({*keys}) == 4
    other = Surroundings(None, (home, ("EDITOR", "vi")))
    assert evidence_key(one, Layout(), PROGRAMS, surroundings=other) == keys[0]
    assert Surroundings().inherited is None
    assert Surroundings(None, given[1]).inherited == dict(given[1])


def test_paths_that_a_library_was_built_with_are_read_from_it(place: Path) -> None:
    library = place / "lib/libucs.so.0"
    due = ("/opt/x/etc/ucx", "/opt/y/etc/libfabric.conf", "/opt/z/share")
    others = ("../etc/ucx/ucx.conf", "no/etc", "/bin/sh", "%s/etc/a.conf", "/a b.conf")
    texts = ("", due[0], others[0], due[1], others[1], due[2], *others[2:], "/opt/q/etc")
    library.write_bytes("\0".join(texts).encode())
    found = built_in(library)
    assert found == due
    assert built_in(library) == found  # from what was kept
    assert built_in(place / "none") == ()


def test_the_files_of_built_in_folders(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    file, folder = "/opt/y/etc/libfabric.conf", "/opt/x/etc/ucx"
    (place / "lib/libfabric.so.1").write_bytes(f"\0{file}\0".encode())
    (place / "lib/libucs.so.0").write_bytes(f"\0{folder}\0/opt/x/etc/other.conf\0".encode())
    seen = tuple((place / "lib").glob("*.so.*"))
    monkeypatch.setattr(config, "_inspected_files", lambda _: seen)
    paths = config.mpi_config_files(asked("mpich", place)).paths
    assert {file, f"{folder}/ucx.conf"} <= {*paths}
    assert f"{folder}/{Path(file).name}" not in paths
    assert not [path for path in paths if "other.conf" in path]


# ------------------------------------------------------------------ guests


@pytest.mark.parametrize(
    "name", ["image/etc/ucx/ucx.conf", "image/etc/mpich.conf", "bound/ucx.conf", "bound"]
)
def test_a_guests_own_files_and_bound_ones_count(name: str, place: Path) -> None:
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


def test_the_grafts_own_folder_is_where_ranks_see_it(place: Path) -> None:
    one = in_guest(place)
    assert one.graft is not None
    file = folders.graft_folder(one.graft) / "etc/openmpi-mca-params-override.conf"
    file.parent.mkdir(parents=True)
    before = key(one, place)
    file.write_text("btl = self,tcp\n")
    assert key(one, place) != before


def test_a_library_of_a_guest_says_what_it_reads(place: Path) -> None:
    library = place / "image/usr/lib/libucs.so.0"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"\0/opt/inside/etc/ucx\0")
    one = in_guest(place, inputs=(Stamp(str(library), 1, 2, 3, 4),))
    paths = config.mpi_config_files(one).paths
    own = {path.removeprefix(f"{place}/image") for path in paths}
    assert "/opt/inside/etc/ucx/ucx.conf" in own
    assert own & {"/usr/lib/etc/ucx.conf", "/usr/etc/ucx.conf"}


# ------------------------------------------------------------------ what may be to blame


def test_files_of_comments_alone_are_not_to_blame(place: Path) -> None:
    (place / "cwd/ucx.conf").write_text("# UCX_TLS=tcp\n\n")
    mine = place / "home/ucx.conf"
    mine.write_text("# mine\nUCX_TLS=tcp # all\n")
    (place / "etc/mpiexec.hydra.conf").write_bytes(b"\xff=1")  # nobody can read it
    found = config.mpi_config_files(asked("mpich", place), Surroundings(place / "cwd"))
    assert found.with_settings() == (str(mine),)


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
def test_files_that_settings_name(setting: str, due: tuple[str, ...], place: Path) -> None:
    name, _, value = setting.partition("=")
    plain = asked("openmpi", place)
    rows = (*plain.environment, EnvRow(name, value, Scope.RANK, "module"))
    one = replace(plain, environment=rows)
    around = Surroundings(place / "cwd")
    new = {*config.mpi_config_files(one, around).paths}
    new -= {*config.mpi_config_files(plain, around).paths}
    wanted = {path.format(place) for path in due}
    assert wanted <= new
    assert wanted or not new


def test_of_a_folder_every_file_counts_where_a_setting_means_files(place: Path) -> None:
    folder = place / "sets"
    folder.mkdir()

    def found(name: str) -> config.ConfigFiles:
        plain = asked("openmpi", place)
        rows = (EnvRow(name, str(folder), Scope.RANK, "user"),)
        return config.mpi_config_files(replace(plain, environment=rows))

    (folder / "one").write_text("x\n")
    assert str(folder / "one") in found("OMPI_MCA_mca_base_param_file_path").present
    assert str(folder / "one") not in found("OMPI_MCA_orte_tmpdir_base").present
