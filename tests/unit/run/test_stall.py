"""Jobs on several nodes whose ranks do not come."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpigraft.core import cache
from mpigraft.core.model import NOWHERE, Allocation, Finding, Layout
from mpigraft.core.serialize import plain
from mpigraft.native.programs import Natives
from mpigraft.run.cached import document, stall, start
from mpigraft.run.foreground import DONE, END, GO_ON
from tests.builders.probes import configuration
from tests.builders.witness import a_document

LACKS = Finding.of("node-lacks", nodes="n2", others="n1", libraries="/opt/libmpi.so")
UNLIKE = Finding.of("node-unlike", nodes="n2", others="n1", libraries="its kernel")


def a_job(tmp_path: Path, compare: str) -> start.Document:
    """Of a program that never ends, whose guard runs `compare` where it is given a limit."""
    guard = tmp_path / "guard"
    guard.write_text(f"#!/bin/sh\ncase $1 in --limit) {compare};; esac\nexec sleep 60\n")
    guard.chmod(0o755)
    return a_document(tmp_path, nodes=2, argv=[str(guard), "PID"], parent=1)


def a_stall(tmp_path: Path, compare: str, answer: int = GO_ON) -> stall.Stall:
    one = stall.Stall(a_job(tmp_path, compare), lambda: answer)
    one.due = 0
    return one


@pytest.mark.parametrize(("code", "answer"), [(0, GO_ON), (1, GO_ON), (stall.FATAL, END)])
def test_nodes_are_compared_once(code: int, answer: int, tmp_path: Path) -> None:
    one = a_stall(tmp_path, f"exit {code}")
    assert one.look() == GO_ON
    os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)
    assert one.look() == answer == one.look()
    assert one.pid == 0


def test_nothing_is_compared_before_its_time_or_once_all_ranks_came(tmp_path: Path) -> None:
    come = a_stall(tmp_path, "exit 4", DONE)
    early = stall.Stall(a_job(tmp_path, "exit 4"), lambda: GO_ON)
    assert (come.look(), early.look()) == (DONE, GO_ON)
    assert (come.pid, early.pid) == (0, 0)


def test_a_comparison_ends_with_the_job(tmp_path: Path) -> None:
    one = a_stall(tmp_path, "exec sleep 60")
    one.look()
    one.end()
    with pytest.raises(ProcessLookupError):
        os.kill(one.pid, 0)


def test_a_job_that_waits_for_a_node_without_the_mpi_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stall, "AFTER_S", 0)
    heard = []

    def judge(_: str, __: str, failed: int) -> bool:
        heard.append(failed)
        return True

    code = start.start_job(a_job(tmp_path, "exit 4"), dict(os.environ), judge)
    assert (code, heard) == (4, [4])


def test_the_comparison_of_a_job_that_is_not_known_ends_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-c", stall.COMPARE, "k"]
    environ = {**os.environ, "MPIGRAFT_HOME": str(tmp_path)}
    assert subprocess.run(words, env=environ, check=False).returncode == 0


@pytest.mark.parametrize(
    ("found", "failed", "codes"),
    [
        ((LACKS,), 1, ["node-lacks"]),
        ((UNLIKE,), 1, ["node-unlike"]),
        ((LACKS,), 0, ["no-witness"]),
    ],
)
def test_a_failed_start_names_the_node(
    found: tuple[Finding, ...],
    failed: int,
    codes: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path))
    asked = []

    def explain(*words: object, **options: object) -> tuple[Finding, ...]:
        asked.append((*words, options))
        return found

    monkeypatch.setattr(document, "explain_start", explain)
    natives = Natives(tmp_path / "bench", tmp_path / "w.so", tmp_path / "guard", "digest")
    nodes = Allocation(("n1", "n2"), "--hosts")
    what = (configuration("openmpi@5.0.11", "ofi-lnx"), Layout(2, 1), NOWHERE, nodes, natives)
    cache.put(document.KIND, "k", plain(what))
    assert [f.code for f in document.launch_findings("k", tmp_path, failed=failed)] == codes
    assert len(asked) == bool(failed)
    assert [f.code for f in document.nodes_findings("k")] == [f.code for f in found if f is LACKS]
    assert asked[-1][1:4] == (2, natives, nodes)
    assert asked[-1][4] == {"launch": False}
