"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.write import follow_links, make_folder, write_whole, writing_whole


def test_a_link_is_followed_and_rights_stay(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_rights_are_those_that_are_named(tmp_path: Path) -> None:
    write_whole(tmp_path / "script", b"#!/bin/sh\n", 0o755)
    assert (tmp_path / "script").stat().st_mode & 0o777 == 0o755


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "page"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["page"]


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, b"the document")
        assert os.read(reader, 100) == b"the document"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert [*tmp_path.iterdir()] == [pipe]


def test_nothing_is_left_of_a_writer_that_is_killed(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with writing_whole(tmp_path / "page") as file:
            file.write(b"half")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert [*tmp_path.iterdir()] == []


@pytest.fixture(params=["nameless", "named"])
def nameless(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the file system has files without a name."""
    real = os.open

    def refusing(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return real(path, flags, mode)

    if request.param == "named":
        monkeypatch.setattr(os, "open", refusing)
    return bool(request.param == "nameless")


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.usefixtures("nameless")
def test_a_file_is_replaced_or_stays(tmp_path: Path, there: bool, first: bool) -> None:
    if there:
        (tmp_path / "page").write_bytes(b"old")
    write_whole(tmp_path / "page", b"whole", 0o640, first=first)
    kept = there and first
    assert (tmp_path / "page").read_bytes() == (b"old" if kept else b"whole")
    assert kept or (tmp_path / "page").stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["page"]


def test_a_new_file_has_no_other_name_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed between two names leaves the first."""
    names = []
    real = os.link

    def link(source: str, target: Path, **places: Any) -> None:
        names.append(target.name)
        real(source, target, **places)

    monkeypatch.setattr(os, "link", link)
    write_whole(tmp_path / "page", b"whole", first=True)
    assert names == ["page"]


def test_what_killed_writers_left_is_removed_after_a_day(tmp_path: Path, nameless: bool) -> None:
    old, new, foreign = (tmp_path / f".mpigraft-{n}-x" for n in (1, 2, 3))
    for path in (old, new, foreign):
        path.touch()
    os.utime(old, (1, 1))
    os.utime(foreign, (1, 1))
    if os.geteuid() == 0:
        os.chown(foreign, 12345, 12345)
    write_whole(tmp_path / "page", b"whole")
    assert old.exists() == nameless
    assert new.exists()
    assert foreign.exists() or os.geteuid()


def test_a_link_whose_answer_was_lost_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool
) -> None:
    """NFS: the server made the link, the answer was lost, the client asked again."""
    real = Path.hardlink_to

    def twice(self: Path, target: Path) -> None:
        real(self, target)
        real(self, target)

    monkeypatch.setattr(Path, "hardlink_to", twice)
    write_whole(tmp_path / "x", b"mine", first=True)
    assert (tmp_path / "x").read_text() == "mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"], nameless


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder as /tmp is, which root owns."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.mark.root
@pytest.mark.parametrize("inner", ["page", "folder/page"])
def test_a_link_of_another_user_in_a_shared_folder_is_refused(shared: Path, inner: str) -> None:
    victim = shared.parent / "victim"
    victim.mkdir()
    victim.joinpath("page").write_bytes(b"precious")
    link = shared / inner.split("/", maxsplit=1)[0]
    link.symlink_to(victim if "/" in inner else victim / "page")
    os.chown(link, 12345, 12345, follow_symlinks=False)
    with pytest.raises(PermissionError, match="another user's"):
        write_whole(shared / inner, b"new")
    assert victim.joinpath("page").read_bytes() == b"precious"


@pytest.mark.root
@pytest.mark.parametrize(("folder_mode", "owner"), [(0o1777, 0), (0o1755, 12345), (0o777, 12345)])
def test_other_links_are_followed(shared: Path, folder_mode: int, owner: int) -> None:
    target, link = shared.parent / "target", shared / "link"
    link.symlink_to(target)
    os.chown(link, owner, owner, follow_symlinks=False)
    shared.chmod(folder_mode)
    write_whole(link, b"new")
    assert target.read_bytes() == b"new"


@pytest.mark.root
def test_a_pipe_of_another_user_in_a_shared_folder_is_refused(shared: Path) -> None:
    pipe = shared / "page"
    os.mkfifo(pipe)
    os.chown(pipe, 12345, 12345)
    with pytest.raises(PermissionError, match="another user's"):
        write_whole(pipe, b"secret")


@pytest.mark.root
def test_the_rights_of_another_users_file_are_not_taken(shared: Path) -> None:
    page = shared / "page"
    page.write_bytes(b"theirs")
    page.chmod(0o666)
    os.chown(page, 12345, 12345)
    write_whole(page, b"ours")
    assert page.stat().st_uid == 0
    assert not page.stat().st_mode & 0o022


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_no_umask_lets_all_users_write(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        make_folder(tmp_path / "a/b")
        write_whole(tmp_path / "a/b/page", b"x")
    finally:
        os.umask(before)
    for path in (tmp_path / "a", tmp_path / "a/b", tmp_path / "a/b/page"):
        assert not path.stat().st_mode & 0o002
        assert path.stat().st_mode & mask == 0


def test_links_are_followed_as_the_kernel_does(tmp_path: Path) -> None:
    tmp_path.joinpath("folder/inner").mkdir(parents=True)
    tmp_path.joinpath("to").symlink_to("folder/inner")
    tmp_path.joinpath("up").symlink_to("to/../page")
    assert follow_links(tmp_path / "up") == tmp_path / "folder/page"
    assert follow_links(tmp_path / "to" / "x" / "y") == tmp_path / "folder/inner/x/y"
    tmp_path.joinpath("round").symlink_to("round")
    with pytest.raises(OSError, match="symbolic links"):
        follow_links(tmp_path / "round")
