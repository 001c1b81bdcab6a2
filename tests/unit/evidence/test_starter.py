"""How long evidence lasts, and what is asked of nodes when a launch on them goes wrong."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core import fingerprint
from mpigraft.core.errors import MissingError
from mpigraft.core.model import Allocation, Finding, Layout, Level
from mpigraft.core.process.command import Completed
from mpigraft.evidence import judge, runner
from mpigraft.launch.hosts.allocation import THIS_HOST
from mpigraft.launch.hosts.reachability import Nodes
from mpigraft.launch.launch_result import LaunchResult
from mpigraft.native.programs import Natives
from tests.builders.probes import configuration, recorded, records

ASKED = configuration("openmpi@5.0.11", "ofi-lnx")
NAMED = Allocation(("n1", "n2"), "--hosts")


@pytest.fixture
def natives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Natives:
    """Programs that nothing runs, and a cache of one's own."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    witness = tmp_path / "witness.so"
    witness.touch()
    return Natives(tmp_path / "bench", witness, tmp_path / "guard", "digest")


@pytest.mark.parametrize(
    ("nodes", "probes"),
    [
        (THIS_HOST, 1),
        (replace(NAMED, scheduler="slurm", job="7"), 1),
        (NAMED, 2),  # they may have booted between two campaigns
    ],
)
def test_evidence_is_kept_of_this_host_and_of_a_job(
    natives: Natives, nodes: Allocation, probes: int
) -> None:
    log, started = recorded("openmpi-5.0.11--ofi-lnx"), []

    def start(*_: object) -> LaunchResult:
        started.append(1)
        return LaunchResult(log.completed, log.ranks)

    found = [runner.evidence_of(ASKED, Layout(), natives, start, nodes) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0].ok
    assert len(started) == probes


def test_a_probe_of_many_ranks_may_take_longer_to_start(natives: Natives) -> None:
    log, limits = recorded("openmpi-5.0.11--ofi-lnx"), []

    def start(_: object, __: object, ___: object, limit_s: float, ____: object) -> LaunchResult:
        limits.append(limit_s)
        return LaunchResult(log.completed, log.ranks)

    for layout in (Layout(1, 2), Layout(64, 64)):
        runner.evidence_of(ASKED, layout, natives, start)
    assert limits[0] < 61
    assert limits[-1] > 240


@pytest.mark.parametrize(
    ("code", "nodes", "left", "asked"),
    [
        (0, 2, 2, []),
        (0, 2, 1, [("n1", "n2")]),  # a rank left no record
        (1, 2, 2, [("n1", "n2")]),
        (1, 1, 1, []),
    ],
)
def test_nodes_are_asked_after_a_launch_on_several_that_did_not_end_well(
    natives: Natives,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    nodes: int,
    left: int,
    asked: list[object],
) -> None:
    heard: list[Sequence[str]] = []
    begun: list[bool] = []
    lost = Finding(Level.ERROR, "node-lost", "n2 answered")

    class Nodes:
        def __init__(self, hosts: Sequence[str]) -> None:
            assert hosts == ("n1", "n2", "n3")

        def query(self, *, wait: bool) -> None:
            begun.append(wait)

        def unreachable(self, hosts: Sequence[str]) -> tuple[Finding, ...]:
            heard.append(tuple(hosts))
            return (lost,) if hosts else ()

    monkeypatch.setattr(runner, "Nodes", Nodes)
    monkeypatch.setattr(runner, "run_command", lambda *_, **__: Completed((), code, b"", b"", 0.1))
    monkeypatch.setattr(judge, "read_witness", lambda *_: records(left))
    named = replace(NAMED, hosts=("n1", "n2", "n3"))
    with runner.make_starter({ASKED.key: natives}, named) as start:
        ended = start(ASKED, Layout(nodes, 1), ("program",), 1.0, False)
    assert [hosts for hosts in heard if hosts] == asked
    assert begun == ([True] if nodes > 1 else [])  # answers are waited for, as this is measured
    assert ended.nodes == ((lost,) if asked else ())


def test_no_node_is_queried_for_a_launch_that_cannot_be_prepared(
    natives: Natives, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query waits for answers of a dead name server for seconds."""
    queried: list[bool] = []
    monkeypatch.setattr(Nodes, "query", lambda _, *, wait: queried.append(wait))
    unknown = replace(ASKED, mpi=None)
    with runner.make_starter({ASKED.key: natives}, NAMED) as start, pytest.raises(MissingError):
        start(unknown, Layout(2, 1), ("program",), 1.0, False)
    assert queried == []


# ------------------------------------------------------------------ folders that were left


def gone() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen(["true"]) as ended:
        return ended.pid


def test_only_what_this_host_knows_to_be_left_is_removed(tmp_path: Path) -> None:
    """Two clusters with one home folder may both have an n1: the other's process is not here, and
    its folder was taken from under it."""
    here, host, pid = runner._host_prefix(), os.uname().nodename, gone()
    left = tmp_path / f"{here}{pid}-x"
    mine = tmp_path / f"{here}{os.getpid()}-x"
    theirs = tmp_path / f"mpigraft-{host}-0badc0de-{pid}-x"
    old = tmp_path / f"mpigraft-{host}-0badc0de-{pid}-y"
    other = tmp_path / f"mpigraft-other-0badc0de-{pid}-x"
    for folder in (left, mine, theirs, old, other):
        (folder / "records").mkdir(parents=True)
    os.utime(old, (0, 0))
    os.utime(other, (0, 0))
    runner._sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted((mine, theirs, other))


def test_processes_are_counted_by_boot_and_namespace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = runner._host_prefix()
    assert here == runner._host_prefix()
    assert here in runner._prefix()
    (tmp_path / "boot").write_text("another boot")
    monkeypatch.setattr(fingerprint, "BOOT", str(tmp_path / "boot"))
    assert runner._host_prefix() != here
    monkeypatch.setattr(fingerprint, "BOOT", str(tmp_path / "gone"))  # hidden in some containers
    assert runner._host_prefix().startswith(runner.SCRATCH)


def test_a_witness_behind_a_blank_is_preloaded_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment in a folder "my env": LD_PRELOAD ends a path at the blank."""
    place = tmp_path / "my env"
    place.mkdir()
    (place / "witness.so").write_bytes(b"witness")
    ours = Natives(place / "bench", place / "witness.so", place / "guard", "d" * 64)
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    found = runner.preloadable_natives(ours)
    assert found == replace(ours, witness=tmp_path / "home/cache/native" / f"{'d' * 16}.so")
    assert found.witness.read_bytes() == b"witness"
    before = found.witness.stat().st_ino
    assert runner.preloadable_natives(ours).witness.stat().st_ino == before
    assert runner.preloadable_natives(found) is found
    assert [path.name for path in found.witness.parent.iterdir()] == [found.witness.name]
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "my home"))
    with pytest.raises(MissingError, match="cannot be preloaded"):
        runner.preloadable_natives(ours)


LACKS = Finding.of("node-lacks", nodes="n2", others="n1", libraries="/opt/libmpi.so")
UNLIKE = Finding.of("node-unlike", nodes="n2", others="n1", libraries="its kernel")
DENIED = Finding.of("ssh-denied", node="n2", reason="publickey")


@pytest.mark.parametrize(
    ("unlike", "printed", "launch", "found"),
    [
        (LACKS, None, True, LACKS),
        (UNLIKE, None, False, UNLIKE),
        (UNLIKE, DENIED, True, DENIED),
        (UNLIKE, UNLIKE, True, UNLIKE),
    ],
)
def test_a_failed_start_is_explained_by_its_nodes_first(
    natives: Natives,
    monkeypatch: pytest.MonkeyPatch,
    unlike: Finding,
    printed: Finding | None,
    launch: bool,
    found: Finding,
) -> None:
    """A launch of one rank on each is made only where nothing else explains it."""

    @contextmanager
    def starter(*_: object) -> Iterator[object]:
        assert printed
        launched = LaunchResult(Completed((), 1, b"", b"", 0.0), (), nodes=(printed,))
        yield lambda _, layout, *__: launched if layout.key == "2x1-none" else None

    monkeypatch.setattr(runner, "_compare" if launch else "_compare_once", lambda *_: (unlike,))
    monkeypatch.setattr(runner, "make_starter", starter)
    assert runner.explain_start(ASKED, 2, natives, NAMED, launch=launch) == (found,)


def test_of_a_probe_that_was_not_started_its_nodes_alone_are_reported(natives: Natives) -> None:
    log = recorded("openmpi-5.0.11--ofi-lnx")
    launched = LaunchResult(log.completed, (), nodes=(LACKS,), started=False)
    evidence = runner.evidence_of(ASKED, Layout(2, 1), natives, lambda *_: launched, NAMED)
    assert (evidence.findings, evidence.ok) == ((LACKS,), False)
