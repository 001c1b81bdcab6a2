"""Numbered generations of an override: switched by one rename, whatever ends the process."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pytest

from mpigraft.binary import read_elf
from mpigraft.core.errors import CheckFailed, LaunchFailed, MissingError, UsageError
from mpigraft.core.messages import message_of
from mpigraft.core.model import Copy
from mpigraft.graft import Slot
from mpigraft.graft.stack.generations import pruning, reading
from mpigraft.graft.stack.generations import switching as generations
from mpigraft.graft.stack.override import content
from mpigraft.graft.stack.override.content import GENERATION, OverridePlan
from testbed.stacks import files_of
from tests.builders.messages import matches, shows
from tests.builders.overrides import a_plan, a_slot, injected, store

# ------------------------------------------------------------------ switching


def test_a_generation_is_found_by_every_folder_that_programs_search(
    site: Path, libraries: tuple[Path, Path]
) -> None:
    record = generations.switch_on(a_plan(site, libraries))
    assert (record.number, record.previous) == (1, 0)
    first, second = (Path(folder) / "libmpi.so.40" for folder in a_slot(site).folders)
    assert first.samefile(second)
    generation = (
        f"{site.parent}/host_injections/rpath_overrides/OpenMPI/.mpigraft-system/generations/1"
    )
    assert read_elf(first).rpath == f"{generation}/lib:{generation}/mpi/lib"
    environment = store(site) / "generations/1/mpi/environment"
    assert environment.read_text().split() == [f"OPAL_PREFIX={generation}/mpi", "LD_PRELOAD"]
    assert str(Path(a_slot(site).path).readlink()) == ".mpigraft-system/generations/1"


def test_generations_are_undone_one_by_one(site: Path, libraries: tuple[Path, Path]) -> None:
    before = list(files_of(site))
    for key in ("one", "two", "three"):
        generations.switch_on(a_plan(site, libraries, key=key))
    slot, numbers = a_slot(site), []
    while (override := generations.undo(slot)).current:
        numbers.append(override.current)
    assert numbers == [2, 1]
    assert not os.path.lexists(slot.path)
    assert [r.number for r in override.generations] == [1, 2, 3]
    assert generations.undo(slot, 3).current == 3
    assert pruning.prune(slot, 0)[0] == (1, 2)
    generations.undo(slot, 0)
    assert pruning.prune(slot, 0)[0] == (3,)
    assert [path for path in files_of(site) if path not in before] == []


def test_what_is_on_and_whole_stays(site: Path, libraries: tuple[Path, Path]) -> None:
    plan = a_plan(site, libraries)
    generations.switch_on(plan)
    before = list(files_of(site))
    assert generations.switch_on(plan).number == 1
    assert list(files_of(site)) == before
    injected(site).write_bytes(b"changed")
    assert generations.switch_on(plan).number == 2
    assert read_elf(injected(site)).soname == "libmpi.so.40"


def test_after_an_undo_the_number_is_a_new_one_and_undo_leads_to_what_was_on(
    site: Path, libraries: tuple[Path, Path]
) -> None:
    for key in ("one", "two"):
        generations.switch_on(a_plan(site, libraries, key=key))
    generations.undo(a_slot(site))
    assert generations.switch_on(a_plan(site, libraries, key="three")).number == 3
    assert generations.undo(a_slot(site)).current == 1


def test_a_sites_empty_folders_come_back(site: Path, libraries: tuple[Path, Path]) -> None:
    for folder in a_slot(site).folders:
        (site / Path(folder).relative_to(site.parent / "host_injections")).mkdir(parents=True)
    before = list(files_of(site))
    generations.switch_on(a_plan(site, libraries))
    assert injected(site).is_file()
    generations.undo(a_slot(site))
    pruning.prune(a_slot(site), 0)
    assert list(files_of(site)) == before


def test_a_folder_that_is_searched_itself_may_be_the_override(
    tmp_path: Path, libraries: tuple[Path, Path]
) -> None:
    top = str(tmp_path / "override")
    plan = a_plan(tmp_path / "x", libraries)
    rpath = f"{GENERATION}/:{GENERATION}/{content.LIB}"
    copies = tuple(
        Copy(c.source, c.name.removeprefix("lib/"), c.digest, True, rpath, c.soname, c.renamed)
        for c in plan.copies
    )
    made = OverridePlan("k", plan.mpi, Slot(top, (top,), None), "", copies, (), ())
    generations.switch_on(made)
    assert (tmp_path / "override/libmpi.so.40").is_file()
    assert made.bindings == ("libmpi.so.40",)


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize("kind", ["file", "folder", "link", "dangling", "deep"])
def test_somebodys_data_is_refused_and_not_touched(
    site: Path, libraries: tuple[Path, Path], kind: str
) -> None:
    place = site / "rpath_overrides/OpenMPI/system"
    place.parent.mkdir(parents=True)
    match kind:
        case "file":
            place.write_text("mine")
        case "folder":
            (place / "lib").mkdir(parents=True)
            (place / "lib/libmpi.so.40").write_text("mine")
        case "link":
            (site / "mine").mkdir()
            place.symlink_to(site / "mine")
        case "dangling":
            place.symlink_to("nowhere")
        case "deep":
            (place / "lib/a/b").mkdir(parents=True)
            (place / "lib/a/b/c").symlink_to("d")
    before = list(files_of(site))
    with pytest.raises(CheckFailed, match="did not make") as caught:
        generations.switch_on(a_plan(site, libraries))
    assert "mv " in caught.value.fix
    assert list(files_of(site)) == before


def test_a_loop_of_links_is_named(site: Path, libraries: tuple[Path, Path]) -> None:
    (site / "rpath_overrides").symlink_to("rpath_overrides")
    with pytest.raises(UsageError, match="links"):
        generations.switch_on(a_plan(site, libraries))


def test_a_full_disk_is_refused_before_anything_is_written(
    site: Path, libraries: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generations, "SPARE", 1 << 60)
    with pytest.raises(MissingError, match="MiB free"):
        generations.switch_on(a_plan(site, libraries))
    assert not list(site.iterdir())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_meanwhile_leaves_nothing(
    site: Path, libraries: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(generations, "make_copy", raising(OSError(number, "full")))
    with pytest.raises(MissingError, match="full"):
        generations.switch_on(a_plan(site, libraries))
    assert not list(site.iterdir())


def raising(error: Exception) -> Callable[..., None]:
    def function(*_: object) -> None:
        raise error

    return function


@pytest.mark.parametrize("failing", ["_make", "_switch"])
@pytest.mark.parametrize("error", [LaunchFailed("changed"), KeyboardInterrupt()])
def test_a_failure_leaves_the_generation_before(
    site: Path,
    libraries: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    failing: str,
    error: Exception,
) -> None:
    generations.switch_on(a_plan(site, libraries))
    before = [row for row in files_of(site) if not row[0].endswith("/lock")]
    monkeypatch.setattr(generations, failing, raising(error))
    with pytest.raises(type(error)):
        generations.switch_on(a_plan(site, libraries, key="two"))
    assert [row for row in files_of(site) if not row[0].endswith("/lock")] == before


def test_a_source_that_changed_is_refused_and_leaves_nothing(
    site: Path, libraries: tuple[Path, Path], tmp_path: Path
) -> None:
    own = tmp_path / "libmpi.so.40", libraries[1]
    shutil.copy(libraries[0], own[0])
    plan = a_plan(site, own)
    own[0].write_bytes(b"updated")
    with pytest.raises(LaunchFailed):
        generations.switch_on(plan)
    assert not list(site.iterdir())


def test_two_at_once_are_not_let_in(site: Path, libraries: tuple[Path, Path]) -> None:
    generations.switch_on(a_plan(site, libraries))
    with (store(site) / "lock").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(MissingError, match=f"at work on .*process {os.getpid()} "):
            generations.switch_on(a_plan(site, libraries, key="two"))
        with pytest.raises(MissingError, match="at work"):
            generations.undo(a_slot(site))
        assert reading.read_override(a_slot(site)).current == 1


@pytest.mark.root
def test_a_folder_of_others_is_named_with_what_the_site_sets(
    libraries: tuple[Path, Path],
) -> None:
    message_of("override-read-only")  # its text may lie where nobody else may read
    with tempfile.TemporaryDirectory(dir="/tmp") as top:
        Path(top).chmod(0o755)
        site = Path(top) / "site"
        site.mkdir(mode=0o755)
        (Path(top) / "host_injections").symlink_to(site)
        plan = a_plan(site, libraries)
        asked, answers = get_context("fork").Pipe()

        def somebody() -> None:
            os.setuid(65534)
            with pytest.raises(MissingError) as caught:
                generations.switch_on(plan)
            answers.send((caught.value.message, caught.value.fix))

        process = get_context("fork").Process(target=somebody)
        process.start()
        process.join()
        message, fix = asked.recv() if asked.poll() else ("", "")
        assert shows(message, "may not be written")
        assert matches(fix, "override-read-only")
        assert not list(site.iterdir())


@pytest.mark.root
def test_who_may_not_switch_reads_who_may(libraries: tuple[Path, Path]) -> None:
    message_of("override-owned")
    with tempfile.TemporaryDirectory(dir="/tmp") as top:
        Path(top).chmod(0o755)
        site = Path(top) / "site"
        site.mkdir(mode=0o755)
        (Path(top) / "host_injections").symlink_to(site)
        generations.switch_on(a_plan(site, libraries))
        before = list(files_of(site))
        slot, (asked, answers) = a_slot(site), get_context("fork").Pipe()

        def somebody() -> None:
            os.setuid(65534)
            for function in (generations.undo, pruning.prune):
                with pytest.raises(MissingError) as caught:
                    function(slot)
                answers.send(caught.value.fix)

        process = get_context("fork").Process(target=somebody)
        process.start()
        process.join()
        for _ in range(2):
            assert asked.poll()
            assert matches(asked.recv(), "override-owned", owner="root")
        assert list(files_of(site)) == before


def test_others_may_read_it_whatever_the_umask_is(site: Path, libraries: tuple[Path, Path]) -> None:
    site.chmod(0o755)
    old = os.umask(0o077)
    try:
        generations.switch_on(a_plan(site, libraries))
    finally:
        os.umask(old)
    for path, mode, *_ in files_of(site):
        if not stat.S_ISLNK(mode) and not path.endswith("/lock"):
            assert mode & 0o044 == 0o044, path
    for one in site.rglob("*"):
        assert not one.is_dir() or one.stat().st_mode & 0o011 == 0o011, one


def test_no_user_may_write_there_whatever_folder_and_umask_let_him(
    site: Path, libraries: tuple[Path, Path]
) -> None:
    site.chmod(0o1777)  # as /tmp
    old = os.umask(0)
    try:
        generations.switch_on(a_plan(site, libraries))
    finally:
        os.umask(old)
    for one in site.rglob("*"):
        if not one.is_symlink() and one.name != "leases":
            assert not one.stat().st_mode & 0o002, one


def test_undo_of_nothing_says_so(site: Path, libraries: tuple[Path, Path]) -> None:
    for function in (generations.undo, pruning.prune):
        with pytest.raises(UsageError, match="no MPI was injected"):
            function(a_slot(site))
    generations.switch_on(a_plan(site, libraries))
    with pytest.raises(UsageError, match="it has 0, 1"):
        generations.undo(a_slot(site), 7)
