"""The script of `inject --as commands`: stopped at any step, it can be started again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mpigraft.graft.stack.generations import reading
from mpigraft.graft.stack.generations import switching as generations
from mpigraft.graft.stack.generations.commands import render_commands
from testbed.stacks import files_of
from tests.builders.messages import shows
from tests.builders.overrides import a_plan, a_slot, injected, store

STEPS = (
    "cat", "chmod", "cmp", "find", "flock", "install", "ln", "mkdir", "mv", "patchelf", "readlink",
    "rm", "sha256sum", "touch",
)  # fmt: skip
# Each program of the script kills it instead, when its turn has come.
STEP = """#!/bin/sh
echo >>"$STEPS"
if [ "$(wc -l <"$STEPS")" = "$LAST" ]; then kill -9 "$PPID"; exit 1; fi
PATH=$REAL exec {name} "$@"
"""


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("steps")
    for name in STEPS:
        (folder / name).write_text(STEP.format(name=name))
        (folder / name).chmod(0o755)
    return folder


def start(script: Path, steps: Path, last: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a script, and kill it before its `last`-th step."""
    real = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    count = script.with_name("count")
    count.write_text("")
    environ = {"PATH": f"{steps}:{real}", "REAL": real, "STEPS": str(count), "LAST": str(last)}
    return subprocess.run(["sh", script], env=environ, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("before", [pytest.param("nothing", marks=pytest.mark.long), "another"])
def test_killed_at_any_step_it_goes_on_when_it_is_started_again(
    site: Path, libraries: tuple[Path, Path], steps: Path, tmp_path: Path, before: str
) -> None:
    if before == "another":
        generations.switch_on(a_plan(site, libraries))
    plan = a_plan(site, libraries, key="two")
    number = 2 if before == "another" else 1
    script = tmp_path / "inject.sh"
    script.write_text(render_commands(plan, reading.read_override(a_slot(site))))
    kept = tmp_path / "kept"
    shutil.copytree(site, kept, symlinks=True)
    old = reading.read_override(a_slot(site)).current
    for step in range(1, 1000):
        shutil.rmtree(site)
        shutil.copytree(kept, site, symlinks=True)
        done = start(script, steps, step)
        assert reading.read_override(a_slot(site)).current in (old, number), step
        if old:
            assert injected(site).read_bytes()[:4] == b"\x7fELF", step
        for _ in range(1 if done.returncode else 2):
            again = start(script, steps)
            assert again.returncode == 0, (step, again.stderr)
            assert shows(again.stdout, f"generation {number}")
        assert reading.read_override(a_slot(site)).current == number
        assert injected(site).read_bytes()[:4] == b"\x7fELF"
        names = {path.name for path in store(site).iterdir()}
        assert names <= {"generations", "lock", "leases", "off-1", "folders"}, step
        if done.returncode == 0:
            break
        assert done.returncode in (-9, 137, 1), (step, done)
    assert step > 15


def test_a_script_that_is_too_old_changes_nothing(
    site: Path, libraries: tuple[Path, Path], steps: Path, tmp_path: Path
) -> None:
    own = tmp_path / "libmpi.so.40"
    shutil.copy(libraries[0], own)
    plan = a_plan(site, (own, libraries[1]))
    script = tmp_path / "inject.sh"
    script.write_text(render_commands(plan, reading.read_override(a_slot(site))))
    own.write_bytes(b"updated")
    done = start(script, steps)
    assert (done.returncode, reading.read_override(a_slot(site)).current) == (1, 0)
    assert shows(done.stderr, "file of the MPI changed")
    for key in ("two", "three"):
        generations.switch_on(a_plan(site, libraries, key=key))
        before = [row for row in files_of(site) if "/lock" not in row[0]]
        done = start(script, steps)
        assert done.returncode == 1
        assert shows(done.stderr, "nothing", "switched")
        assert [row for row in files_of(site) if "/lock" not in row[0]] == before
