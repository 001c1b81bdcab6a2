"""Whatever step of an injection a process is killed at, programs find the old MPI or the new."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from mpigraft.graft.stack.generations import pruning, reading
from mpigraft.graft.stack.generations import switching as generations
from tests.builders.overrides import a_plan, a_slot, injected, store

WRITES = {
    "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.chmod",
    "os.truncate", "subprocess.Popen",
}  # fmt: skip


def counted(folder: Path, last: int, work: Callable[[], object]) -> int:
    """Do work in a process that kills itself before its `last`-th step that writes; give its exit
    status, or minus the signal."""

    def child() -> None:
        steps = 0

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal steps
            opens = event == "open" and isinstance(arguments[2], int) and arguments[2] & (
                os.O_WRONLY | os.O_RDWR | os.O_CREAT
            )  # fmt: skip
            if event in WRITES or opens:
                steps += 1
                if steps == last:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        work()

    process = get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


def restorer(site: Path) -> Callable[[], None]:
    """Keep the site as it is, and give what puts it back."""
    kept = site.with_name("kept")
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(site, kept, symlinks=True)

    def restore() -> None:
        shutil.rmtree(site)
        shutil.copytree(kept, site, symlinks=True)

    return restore


def state(site: Path) -> tuple[int, bytes]:
    """What programs find."""
    try:
        data = injected(site).read_bytes()
    except OSError:
        data = b""
    return reading.read_override(a_slot(site)).current, data


@pytest.mark.parametrize("start", ["nothing", "empty folders", "another"])
def test_killed_at_any_step_it_leaves_the_old_state_or_the_new(
    site: Path, libraries: tuple[Path, Path], start: str
) -> None:
    if start == "empty folders":
        (site / "rpath_overrides/OpenMPI/system/lib").mkdir(parents=True)
    if start == "another":
        generations.switch_on(a_plan(site, libraries))
    prepare = restorer(site)
    new = a_plan(site, libraries, key="two")
    old = state(site)
    generations.switch_on(new)
    due = state(site)
    whole = reading.read_override(a_slot(site))
    for step in range(1, 1000):
        prepare()
        ended = counted(site, step, lambda: generations.switch_on(new))
        assert state(site) in (old, due), step
        if state(site) == due:
            assert not reading.damaged(whole, whole.generations[-1]), step
        generations.switch_on(new)
        assert state(site)[1][:4] == b"\x7fELF"
        names = {path.name for path in store(site).iterdir()}
        assert names <= {"generations", "lock", "before", "folders", "leases", "off-1"}
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
    assert step > 20


def test_undo_killed_at_any_step_leaves_the_old_state_or_the_new(
    site: Path, libraries: tuple[Path, Path]
) -> None:
    for to, empty in ((1, False), (0, False), (0, True)):
        shutil.rmtree(site)
        site.mkdir()
        if empty:
            (site / "rpath_overrides/OpenMPI/system/lib").mkdir(parents=True)
        for key in ("one", "two"):
            generations.switch_on(a_plan(site, libraries, key=key))
        prepare = restorer(site)
        for step in range(1, 100):
            prepare()
            ended = counted(site, step, lambda: generations.undo(a_slot(site), to))  # noqa: B023
            assert state(site)[0] in (2, to), step
            generations.undo(a_slot(site), to)
            assert state(site)[0] == to
            if ended == 0:
                break
        assert step > 2


def test_prune_killed_at_any_step_keeps_what_is_on(
    site: Path, libraries: tuple[Path, Path]
) -> None:
    for key in ("one", "two"):
        generations.switch_on(a_plan(site, libraries, key=key))
    prepare, due = restorer(site), state(site)
    for step in range(1, 100):
        prepare()
        ended = counted(site, step, lambda: pruning.prune(a_slot(site), 0))
        assert state(site) == due, step
        pruning.prune(a_slot(site), 0)
        assert [r.number for r in reading.read_override(a_slot(site)).generations] == [2]
        if ended == 0:
            break
    assert step > 3
