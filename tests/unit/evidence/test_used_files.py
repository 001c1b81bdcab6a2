"""What a launch uses, and whether it is what it was."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.bench import files
from mpigraft.bench.files import launch_files, refuse_changed_files, refuse_other_files
from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    Configuration,
    Copy,
    EnvRow,
    GuestKind,
    LaunchedBy,
    NetLibrary,
    Scope,
    Stamp,
)
from mpigraft.evidence.files import used
from mpigraft.evidence.files.used import changed_files, digest_of, fingerprint_files
from mpigraft.graft.folder import folders
from mpigraft.native.programs import Natives
from mpigraft.run.cached.world import listed
from tests.builders.messages import matches
from tests.builders.plans import label, plan
from tests.builders.probes import configuration


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prefix with a launcher, libraries and our programs, and a home beside it."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "data"))
    for name in (
        "bin/mpirun", "bin/prted", "bin/other", "lib/libmpi.so.40", "lib/libfabric.so.1",
        "lib/ucx/libuct_ib.so.0", "lib/libtcp-fi.so", "n/bench", "n/mpigraft-probe", "n/witness.so",
        "n/guard", "slurm/srun", "slurm/prted", "engine/bwrap",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(0o755)
    return tmp_path


def natives(place: Path) -> Natives:
    return Natives(place / "n/bench", place / "n/witness.so", place / "n/guard", "digest")


def asked(place: Path, **changes: Any) -> Configuration:
    one = configuration("openmpi@5.0.11", "ob1-sm")
    assert one.mpi is not None
    values: dict[str, Any] = {
        "prefix": place,
        "libmpi": place / "lib/libmpi.so.40",
        "launcher": place / "bin/mpirun",
        "libfabric": NetLibrary("libfabric", "2.5", place / "lib/libfabric.so.1"),
        "ucx": None,
    }
    return replace(one, mpi=replace(one.mpi, **{**values, **changes}))


def names(place: Path, one: Configuration) -> set[str]:
    found = used.used_files(one, natives(place))
    assert len({*found}) == len(found)
    return {str(path.relative_to(place)) for path in found if path.is_relative_to(place)}


LAUNCHER = {"bin/mpirun", "bin/prted"}
OURS = {"n/bench", "n/mpigraft-probe", "n/witness.so", "n/guard"}
MPI = {"lib/libmpi.so.40", "lib/libfabric.so.1", "lib/ucx/libuct_ib.so.0", "lib/libtcp-fi.so"}


def test_programs_libraries_plugins_and_daemons(place: Path) -> None:
    assert names(place, asked(place)) == LAUNCHER | OURS | MPI
    assert names(place, asked(place, launcher=None)) == OURS | MPI
    assert names(place, asked(place, libmpi=None)) == LAUNCHER | OURS
    (less,) = MPI - names(place, asked(place, libfabric=NetLibrary("libfabric", "2.5", None)))
    assert Path(less).stem == "libfabric.so"
    (place / "n/mpigraft-gpu-select").touch()
    assert "n/mpigraft-gpu-select" in names(place, asked(place))


@pytest.mark.parametrize(
    "name", ["libnew-fi.so", "libfabric/libnew-fi.so", "mca_pml_new.so", "openmpi/mca_pml_new.so",
             "ucx/libuct_new.so.0"],
)  # fmt: skip
def test_a_plugin_that_appears_is_noticed(place: Path, name: str) -> None:
    mpi = asked(place).mpi
    assert mpi is not None
    (place / "lib/openmpi").mkdir()
    rows = used.plugin_folders(mpi)
    before = [listed(*row) for row in rows]
    (place / "lib/libother.so").touch()
    assert [listed(*row) for row in rows] == before
    file = place / "lib" / name
    file.parent.mkdir(exist_ok=True)
    file.touch()
    assert [listed(*row) for row in rows] != before


def test_plugins_lie_beside_each_network_library_that_is_there(place: Path) -> None:
    for name in ("net/libucp.so.0", "net/libnew-fi.so", "gone/libnew-fi.so", "lib/openmpi-doc"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).touch()
    (place / "lib/mca_folder.so").mkdir()
    ucx = NetLibrary("ucx", "1.18", place / "net/libucp.so.0")
    here = {"net/libucp.so.0", "net/libnew-fi.so"}
    assert names(place, asked(place, ucx=ucx)) == LAUNCHER | OURS | MPI | here
    gone = replace(ucx, path=place / "gone/libucp.so.0")
    one = asked(place, ucx=gone)
    assert names(place, one) == LAUNCHER | OURS | MPI
    assert one.mpi is not None
    folders = {Path(folder).name for folder, *_ in used.plugin_folders(one.mpi)}
    assert folders == {"lib", "libfabric", "ucx"}
    assert used.plugin_folders(replace(one.mpi, libmpi=None)) == used.plugin_folders(one.mpi)


def test_a_schedulers_launcher_starts_nothing_from_its_folder(place: Path) -> None:
    one = replace(asked(place), launcher=LaunchedBy("srun", place / "slurm/srun", "22", "pmix"))
    assert names(place, one) == {"slurm/srun"} | OURS | MPI


def grafted(place: Path, **changes: Any) -> Configuration:
    one = asked(place)
    inputs = (Stamp(str(place / "image/app"), 1, 2, 3, 4),)
    copies = (Copy("/h", "bin/mpigraft-bench", "d"), Copy("/h", "lib/libmpi.so.40", "d"))
    made = plan(label(str(place / "image")), "bwrap", copies=copies, inputs=inputs, **changes)
    return replace(one, graft=made)


def test_of_a_graft_its_copies_the_guest_and_the_engine(
    monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    monkeypatch.setattr(used, "find_engine", lambda *_: (str(place / "engine/bwrap"), "1"))
    one = grafted(place)
    assert one.graft is not None
    folder = folders.graft_folder(one.graft).relative_to(place)
    inside = {f"{folder}/bin/mpigraft-bench", f"{folder}/lib/libmpi.so.40", "image/app"}
    due = inside | {"engine/bwrap", "n/guard"} | MPI | LAUNCHER
    assert names(place, one) == due
    monkeypatch.setattr(used, "find_engine", lambda *_: ("", ""))
    assert names(place, one) == due - {"engine/bwrap"}
    assert one.mpi is not None
    own = replace(one, mpi=replace(one.mpi, source="guest"))
    assert names(place, own) == inside | {"n/guard"}
    assert names(place, replace(own, mpi=None)) == inside | {"n/guard"}


def test_the_lists_of_images_are_podmans_alone(place: Path) -> None:
    folder = grafted(place).graft
    assert folder is not None
    assert used.image_lists(None) == used.image_lists(folder) == ()
    image = plan(label("app", GuestKind.PODMAN), "podman")
    found = [str(path) for path in used.image_lists(image)]
    mine = f"{place}/user/.local/share/containers/storage/overlay-images/images.json"
    assert mine in found
    assert "/var/lib/containers/storage/vfs-images/images.json" in found
    assert len(found) == 4


def test_libraries_of_launchers_are_those_that_its_environment_leads_to(
    monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:

    def mapped(file: Path, environment: tuple[tuple[str, str], ...]) -> tuple[Path, ...]:
        return (Path(dict(environment).get("MINE", "/none"), file.name),)

    monkeypatch.setattr(used, "_mapped", mapped)
    row = EnvRow("MINE", "/mine", Scope.LAUNCHER, "module")
    found = used.launcher_files(asked(place, environment=(row,)))
    assert {Path("/mine/mpirun"), Path("/mine/prted"), place / "bin/mpirun"} <= {*found}
    by = LaunchedBy("srun", place / "slurm/srun", "22", "pmix")
    bare = replace(asked(place), mpi=None, launcher=by)
    assert used.launcher_files(bare) == (by.path, Path("/none/srun"))


# ------------------------------------------------------------------ whether they changed


def test_contents_decide_where_a_stamp_moved(place: Path) -> None:
    file, gone, new = place / "n/bench", place / "n/guard", place / "n/new"
    before = fingerprint_files([file, gone, new, place / "lib"])
    assert changed_files(before) == ()
    os.utime(file)
    copy = place / "n/copy"
    copy.write_bytes(file.read_bytes())
    copy.replace(file)
    assert changed_files(before) == ()
    file.write_text("other")
    assert changed_files(before) == (str(file),)
    gone.unlink()
    new.write_text("x")
    assert set(changed_files(before)) == {str(file), str(gone), str(new)}
    assert digest_of(str(place / "lib")) == digest_of(str(gone)) == ""
    assert len(digest_of(str(file))) == 64


def test_what_was_not_touched_is_not_read(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    read: list[str] = []

    def digest(path: str) -> str:
        read.append(path)
        return "another"

    before = fingerprint_files([place / "n/bench", place / "n/guard"])
    (place / "n/guard").write_text("other")
    monkeypatch.setattr(used, "digest_of", digest)
    assert changed_files(before) == (f"{place}/n/guard",)
    assert read == [f"{place}/n/guard"]


def test_digests_are_reported_by_file_names(place: Path) -> None:
    rows = fingerprint_files(
        [place / "n/bench", place / "n/none", place / "bin/prted", place / "n/bench"]
    ).named
    assert [name for name, _ in rows] == ["bench", "prted"]
    assert rows[0][1] == digest_of(str(place / "n/bench"))


# ------------------------------------------------------------------ campaigns


def test_a_campaign_whose_files_change_is_refused_with_their_names(place: Path) -> None:
    one = asked(place)
    suite = place / "engine/bwrap"
    before = launch_files(one, natives(place), [suite])
    assert suite.name in dict(before.named)
    refuse_changed_files(one, before)
    (place / "user").mkdir()
    config = place / "user/ucx.conf"
    config.write_text("UCX_TLS=tcp\n")
    with pytest.raises(UsageError, match="configuration files of") as caught:
        refuse_changed_files(one, before)
    assert matches(caught.value, "settings-changed", files=config)
    (place / "n/bench").write_text("other")
    with pytest.raises(UsageError, match="was replaced during the campaign") as caught:
        refuse_changed_files(one, before)
    assert caught.value.message.endswith(f": {place}/n/bench")
    assert matches(caught.value, "program-changed")


def test_a_campaign_goes_on_with_the_same_files_alone(place: Path) -> None:
    one = asked(place)
    (place / "user").mkdir()
    (place / "user/ucx.conf").write_text("UCX_TLS=sm\n")
    before = launch_files(one, natives(place))
    rows = [*before.named]
    assert rows == sorted(rows)
    assert {"bench", "guard", "libmpi.so.40", "mpirun", "prted", "ucx.conf"} <= {r[0] for r in rows}
    refuse_other_files("x", rows, before)
    refuse_other_files("x", None, before)  # an older version stored none
    (place / "n/bench").write_text("other")
    (place / "user/ucx.conf").unlink()
    with pytest.raises(
        UsageError, match="cannot resume: x was measured with other files"
    ) as caught:
        refuse_other_files("x", rows, launch_files(one, natives(place)))
    assert matches(caught.value, "resume-other-files", files="bench, ucx.conf")


def test_of_many_files_a_few_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = fingerprint_files([])
    rows = [[f"file{number}", "0"] for number in range(6)]
    for count, tail in ((4, "file3"), (5, "file3 and 1 more"), (6, "file3 and 2 more")):
        with pytest.raises(UsageError) as caught:
            refuse_other_files("x", rows[:count], now)
        assert matches(caught.value, "resume-other-files", files=f"file0, file1, file2, {tail}")
    assert files.FEW == 4
