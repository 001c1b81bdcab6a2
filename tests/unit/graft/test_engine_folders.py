"""Folders of this machine that ranks in a guest see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Bind, BindKind, GuestKind
from mpigraft.graft.engines.mounts import mounts
from mpigraft.graft.engines.registry import engine_words, visible_folders
from tests.builders.messages import matches
from tests.builders.plans import Image, label, plan, seat


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image.at(tmp_path / "image")


def test_a_working_folder_is_bound_where_a_link_leads_to_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpigraft.graft.engines.mounts.GUEST_TMP", "/no/tmp")
    made = plan(label("/image"), "bwrap", binds=())
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to("real")
    for came, due in ((str(link), True), ("/usr", False), ("link", False), ("", False)):
        where = seat(cwd=str(tmp_path / "real"), environment=(("PWD", came),))
        bound = {bind.target: bind.source for bind in mounts(made, where)}
        assert (bound.get(came) == where.cwd) is due, came


def test_a_link_in_a_folder_that_is_bound_leads_to_the_working_folder_by_itself(
    tmp_path: Path,
) -> None:
    """bwrap refuses to mount on a link: a scratch folder may be one below /tmp or a bind."""
    (real := tmp_path / "real").mkdir()
    (links := tmp_path / "links").mkdir()
    (link := links / "scratch").symlink_to(real)
    made = plan(label("/image"), "bwrap", binds=())
    for target, due in ((str(links), False), ("/elsewhere", True)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mpigraft.graft.engines.mounts.GUEST_TMP", "/no/tmp")
            bind = Bind(str(links), target, BindKind.FOLDER)
            where = seat(cwd=str(real), environment=(("PWD", str(link)),), extra=(bind,))
            assert (str(link) in {b.target for b in mounts(made, where)}) is due


def test_folders_that_ranks_see_are_known_before_a_plan(tmp_path: Path) -> None:
    (tmp_path / "apptainer").write_text("")
    (tmp_path / "apptainer").chmod(0o755)
    environ = {"PATH": str(tmp_path), "TMPDIR": "/job", "APPTAINER_BIND": "/scratch:/data"}
    extra = (Bind("/x", "/y", BindKind.FOLDER),)
    found = visible_folders(GuestKind.SIF, environ, "/home/u", extra=extra)
    mine = {"/tmp": "/tmp", "/job": "/job", "/home/u": "/home/u", "/y": "/x"}
    assert mine.items() <= {target: str(path) for target, path in found.items()}.items()
    assert found["/data"] == Path("/scratch")
    assert found["/var/tmp"] == Path("/var/tmp")
    without = visible_folders(GuestKind.SIF, {"PATH": ""}, "/home/u")
    assert without.keys() == {"/tmp", "/home/u"}
    unfit = visible_folders(GuestKind.SIF, environ, "/home/u", "bwrap")  # which starts no SIF
    assert unfit.keys() == {*without, "/job"}
    assert visible_folders(GuestKind.PROGRAM, environ, "/home/u") == {}


def test_a_program_of_this_machine_starts_from_its_own_folder(image: Image, tmp_path: Path) -> None:
    """With the libraries that it brings, over which the graft goes."""
    own, library = tmp_path / "solver", tmp_path / "lib/libmpi.so.40"
    library.parent.mkdir()
    library.write_text("")
    of_host = replace(image.label, programs=(str(own),), of_host=(str(own),))
    made = plan(of_host, "bwrap", binds=(Bind("{graft}/lib/libmpi.so.40", str(library)),))
    assert str(library) in {b.target for b in mounts(made, seat(cwd=str(tmp_path)))}
    away = replace(of_host, programs=("/away/solver",), of_host=("/away/solver",))
    assert "/away" in {b.target for b in mounts(plan(away, "bwrap"), seat(cwd="/away"))}
    with pytest.raises(UsageError, match="would hide"):
        mounts(plan(replace(away, of_host=()), "bwrap"), seat(cwd="/away"))


def test_a_tmpdir_that_charliecloud_cannot_bind_is_named(image: Image) -> None:
    """The refusal named a folder, and not the variable that asks for it."""
    made = plan(image.label, "charliecloud", place="/mnt")
    where = seat(cwd="/tmp", environment=(("TMPDIR", "/local/job/"),))
    with pytest.raises(UsageError, match="no /local/job, which TMPDIR names") as refused:
        engine_words(made, where)
    assert matches(refused.value, "charliecloud-no-target", fix="TMPDIR=/tmp")
