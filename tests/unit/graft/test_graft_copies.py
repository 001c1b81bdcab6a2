"""Copies that plans share, and what goes with them."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.binary.elf import reader
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.fingerprint import file_fingerprint
from mpigraft.core.model import GraftPlan
from mpigraft.graft.folder import folders, shared_copies
from mpigraft.run.cached import start
from tests.builders.plans import a_plan

pytestmark = pytest.mark.usefixtures("home")

DAY_S = 86400.0


def many(files: dict[str, Path], number: int) -> list[GraftPlan]:
    """Plans of one MPI for several guests."""
    plan = a_plan(files)
    return [replace(plan, key=f"{n:032x}" * 2) for n in range(number)]


def used_bytes(home: Path) -> int:
    every = [f.lstat() for f in home.rglob("*") if f.is_file() and f.name != folders.PLAN_FILE]
    return sum({f.st_ino: f.st_size for f in every}.values())


def aged(plan: GraftPlan, days: float) -> None:
    then = time.time() - days * DAY_S
    for path in (
        folders.graft_folder(plan) / folders.PLAN_FILE,
        folders.graft_folder(plan) / folders.RANKS_FOLDER,
    ):
        os.utime(path, (then, then))


def test_many_plans_of_one_mpi_take_the_room_of_one(home: Path, files: dict[str, Path]) -> None:
    first, *others = many(files, 20)
    one = folders.materialize(first)
    before = used_bytes(home)
    for plan in others:
        made = folders.materialize(plan)
        for copy in plan.copies:
            shared = copy.name != "share/help.txt"  # what an MPI reads may be edited in one plan
            assert (made / copy.name).samefile(one / copy.name) is shared, copy.name
    assert used_bytes(home) - before == 19 * files["help"].stat().st_size
    assert folders.disk_usage() >= before
    assert reader.read_elf(one / "lib/libmpi.so.40").rpath == plan.copies[0].rpath


def test_another_plan_is_no_change_to_a_kept_job(files: dict[str, Path]) -> None:
    """A link changes a file's ctime, by which the files of a kept job are told."""
    first, second = many(files, 2)
    made = folders.materialize(first)
    shared = [made / c.name for c in first.copies if c.name.startswith(shared_copies.SHARED)]
    own = [made / c.name for c in first.copies if made / c.name not in shared]
    assert shared
    assert own

    def stamps() -> list[list[int]]:
        return [
            *(start.copy_stamp(str(p)) for p in shared),
            *(file_fingerprint(str(p)) for p in own),
        ]

    before = stamps()
    time.sleep(0.02)
    folders.materialize(second)
    assert stamps() == before
    folders.remove_graft(second.key)
    assert stamps() == before
    os.utime(shared[0], (1, 1))
    assert stamps() != before


def test_what_is_edited_otherwise_is_not_shared(files: dict[str, Path]) -> None:
    plan = a_plan(files)
    copies = tuple(replace(c, rpath=f"{c.rpath}/x") if c.edit else c for c in plan.copies)
    other = replace(plan, key="1" * 64, copies=copies)
    one, two = folders.materialize(plan), folders.materialize(other)
    assert (
        reader.read_elf(two / "lib/libmpi.so.40").rpath
        != reader.read_elf(one / "lib/libmpi.so.40").rpath
    )
    edited = {c.name for c in plan.copies if c.edit}
    same = {c.name for c in plan.copies if (one / c.name).samefile(two / c.name)}
    assert same == {c.name for c in plan.copies} - edited - {"share/help.txt"}


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_where_no_link_can_be_made_each_plan_has_its_own(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    real = os.link

    def refuse(source: str, target: Path, **of_no_name: Any) -> None:
        if not of_no_name:
            raise OSError(number, "no link")
        real(source, target, **of_no_name)

    monkeypatch.setattr(os, "link", refuse)
    one, two = (folders.materialize(plan) for plan in many(files, 2))
    assert (one / "lib/libmpi.so.40").read_bytes() == (two / "lib/libmpi.so.40").read_bytes()
    assert not (one / "lib/libmpi.so.40").samefile(two / "lib/libmpi.so.40")
    assert list(shared_copies.home().iterdir()) == []
    plan = a_plan(files)
    alias = replace(plan.copies[0], name="lib/libalias.so.40")
    made = folders.materialize(replace(plan, key="f" * 64, copies=(*plan.copies, alias)))
    assert (made / alias.name).samefile(made / plan.copies[0].name)  # for the loader one file


def test_a_damaged_copy_is_made_anew(files: dict[str, Path]) -> None:
    """A disk that was full when the machine went down."""
    first, second, third = many(files, 3)
    one = folders.materialize(first)
    whole = (one / "lib/libmpi.so.40").read_bytes()
    (one / "lib/libmpi.so.40").write_bytes(whole[:-1] + b"x")  # the store's too
    two = folders.materialize(second)
    assert (two / "lib/libmpi.so.40").read_bytes() == whole
    assert (folders.materialize(third) / "lib/libmpi.so.40").samefile(two / "lib/libmpi.so.40")


def test_a_store_that_may_not_be_written_is_none(
    home: Path, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    (home / "libraries").write_text("")  # for root too, who may write to any folder
    one, two = (folders.materialize(plan) for plan in many(files, 2))
    assert (one / "lib/libmpi.so.40").read_bytes() == (two / "lib/libmpi.so.40").read_bytes()


def test_a_full_disk_leaves_no_half(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = many(files, 2)
    other = replace(
        second, copies=tuple(replace(c, rpath="/x") if c.edit else c for c in second.copies)
    )
    folders.materialize(first)
    before = used_bytes(folders.home().parent)

    real, count = shutil.copyfile, iter(range(100))

    def full(source: Path, target: Path) -> object:
        if next(count) < 2:  # it ends in the midst, with some copies in the store
            return real(source, target)
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfile", full)
        with pytest.raises(MissingError):
            folders.materialize(other)
    assert [one.key for one in folders.graft_folders()] == [first.key[:32]]
    assert used_bytes(folders.home().parent) == before
    assert not list(shared_copies.home().glob(".new-*"))


def test_plans_are_made_while_others_are_pruned(files: dict[str, Path]) -> None:
    plans = many(files, 12)
    troubles: list[BaseException] = []

    def make(some: list[GraftPlan]) -> None:
        try:
            for _ in range(3):
                for plan in some:
                    folders.materialize(plan)
        except BaseException as error:
            troubles.append(error)

    threads = [threading.Thread(target=make, args=(plans[n::3],)) for n in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        folders.prune_grafts(0)
    assert not troubles
    for plan in plans:
        made = folders.materialize(plan)
        assert reader.read_elf(made / "lib/libmpi.so.40").soname == "libmpi.so.40"
        assert all((made / copy.name).is_file() for copy in plan.copies)


# ------------------------------------------------------------------ what is removed


def test_what_is_unused_for_long_is_removed_with_its_copies(
    home: Path, files: dict[str, Path]
) -> None:
    old, young = many(files, 2)
    alone = replace(old, key="a" * 64, copies=tuple(
        replace(c, rpath="/alone") if c.edit else c for c in old.copies))  # fmt: skip
    for plan in (old, young, alone):
        folders.materialize(plan)
    for plan in (old, alone):
        aged(plan, 10)
    shown = folders.prune_grafts(9, dry=True)
    assert {one.key for one in shown.removed} == {old.key[:32], alone.key[:32]}
    assert len(list(folders.graft_folders())) == 3
    done = folders.prune_grafts(9)
    assert {one.key for one in done.removed} == {one.key for one in shown.removed}
    assert done.freed == shown.freed > 0
    assert [one.key for one in folders.graft_folders()] == [young.key[:32]]
    assert all(
        (folders.graft_folder(young) / copy.name).stat().st_nlink == 2
        for copy in young.copies
        if copy.name.startswith(shared_copies.SHARED)
    )  # here and in the store
    assert folders.prune_grafts(11).removed == ()
    folders.prune_grafts(0)
    assert used_bytes(home) == 0
    assert list(shared_copies.home().iterdir()) == []


def test_a_job_is_a_use_and_is_left_alone(files: dict[str, Path]) -> None:
    (plan,) = many(files, 1)
    made = folders.materialize(plan)
    records = made / folders.RANKS_FOLDER / "mpigraft-77-run0"
    records.mkdir()
    aged(plan, 10)
    done = folders.prune_grafts(5)
    assert (done.removed, [one.key for one in done.busy]) == ((), [plan.key[:32]])
    with pytest.raises(UsageError, match="in use"):
        folders.remove_graft(plan.key)
    records.rmdir()  # the job has ended: now it has been used
    (one,) = folders.graft_folders()
    assert time.time() - one.used < DAY_S < time.time() - one.made
    assert folders.prune_grafts(5).removed == ()
    assert len(folders.prune_grafts(0).removed) == 1


def test_records_of_a_killed_job_do_not_keep_a_plan_for_ever(files: dict[str, Path]) -> None:
    (plan,) = many(files, 1)
    records = folders.materialize(plan) / folders.RANKS_FOLDER / "mpigraft-77-run0"
    records.mkdir()
    then = time.time() - 40 * DAY_S
    os.utime(records, (then, then))
    aged(plan, 40)
    assert len(folders.prune_grafts(30).removed) == 1


def test_a_job_that_begins_meanwhile_keeps_its_plan(
    files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (plan,) = many(files, 1)
    made = folders.materialize(plan)
    (looked,) = folders.graft_folders()
    (made / folders.RANKS_FOLDER / "mpigraft-77-run0").mkdir()
    monkeypatch.setattr(folders, "graft_folders", lambda: iter([looked]))
    assert folders.prune_grafts(0).removed == ()
    assert (made / folders.RANKS_FOLDER / "mpigraft-77-run0").is_dir()
    assert all((made / copy.name).is_file() for copy in plan.copies)


def test_folders_of_another_version_are_pruned_too(home: Path, files: dict[str, Path]) -> None:
    """As a version before the store made them: copies of their own, a plan that is not read."""
    folder = home / "grafts" / ("b" * 32)
    (folder / "lib").mkdir(parents=True)
    (folder / folders.RANKS_FOLDER).mkdir()
    (folder / "lib/libmpi.so.40").write_bytes(files["libmpi"].read_bytes())
    (folder / folders.PLAN_FILE).write_text('{"plan": {"form": 0}}')
    (one,) = folders.graft_folders()
    assert one.plan is None
    assert folders.prune_grafts(1).removed == ()
    done = folders.prune_grafts(0)
    assert [one.key for one in done.removed] == ["b" * 32]
    assert done.freed >= files["libmpi"].stat().st_size
