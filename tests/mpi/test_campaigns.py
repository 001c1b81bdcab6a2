"""Whole campaigns on real MPIs, and what may go wrong in the middle of one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft import campaign, discover, measure, pipeline
from mpigraft.campaign import Campaign, Step
from mpigraft.errors import LaunchFailed, MissingError, MpigraftError, TransportMismatch
from mpigraft.model import Configuration, Evidence, LaunchState, Layout, Machine, MpiInstall
from mpigraft.natives import BENCHMARKS, Natives
from mpigraft.natives import natives as real_natives
from mpigraft.run import run
from mpigraft.store import Store
from mpigraft.wish import Wish

pytestmark = pytest.mark.mpi

SHORT = ("--benchmark", "latency", "--max", "64", "--budget", "1", "--seed", "3")
MARK = "MPIGRAFT_WITNESS="


class Silent:
    """A watch that remembers."""

    def __init__(self) -> None:
        self.outcomes: list[measure.Outcome] = []
        self.evidence: list[Evidence] = []

    def began(self, campaign: Campaign, launches: int) -> None:
        self.launches = launches

    def proved(self, configuration: Configuration, layout: Layout, evidence: Evidence) -> None:
        self.evidence.append(evidence)

    def launched(self, step: Step, outcome: measure.Outcome, wall_s: float) -> None:
        self.outcomes.append(outcome)


def mpigraft(*words: object, **more: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "mpigraft.cli.main", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=300, **more)  # type: ignore[call-overload,no-any-return]


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the campaigns of this test keep witness records, here and in children."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def ranks_left(scratch: Path) -> list[int]:
    """Processes that carry the witness's variable: ranks, wherever their parents went."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if f"{MARK}{scratch}".encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


@pytest.fixture
def machine(fresh_home: Path) -> Machine:
    """This machine with the fetched MPIs alone: others are here by chance."""
    here = discover.machine()
    return replace(here, mpis=tuple(m for m in here.mpis if m.source == "wheel"))


def short(machine: Machine, **wish: object) -> Campaign:
    values: dict[str, object] = {
        "benchmark": ("latency",), "max_size": 64, "budget_ms": 1.0, "rounds": 6, "seed": 3,
    }  # fmt: skip
    return campaign.plan(Wish(**{**values, **wish}), machine)  # type: ignore[arg-type]


def doctored(monkeypatch: pytest.MonkeyPatch, folder: Path, behaviour: str) -> None:
    """Replace the benchmark, not the probe, by a shell script; $REAL is the benchmark."""

    def made(mpi: MpiInstall, architecture: str, build: str = "prebuilt") -> Natives:
        true = real_natives(mpi, architecture, build)
        script = folder / f"bench-{mpi.abi}"
        script.write_text(
            f'#!/bin/sh\nREAL="{true.bench}"\n'
            f'case "$*" in *--probe*) exec "$REAL" "$@";; esac\n{behaviour}\n'
        )
        script.chmod(0o755)
        return replace(true, bench=script)

    monkeypatch.setattr(pipeline, "natives", made)


# ------------------------------------------------------------------ the whole flow


def test_every_mpi_over_every_transport_that_runs_here(
    machine: Machine, store_folder: Path
) -> None:
    planned = short(machine, rounds=1)
    store, watch = Store(store_folder), Silent()
    identity = pipeline.bench(planned, machine, store, watch)
    ran = {c.id.partition("/")[2] for c in store.configurations(identity)}
    assert {"ob1-sm", "ob1-tcp", "ofi-tcp", "ofi-lnx", "ucx", "shm", "shm-ofi-tcp"} <= ran
    assert [e.asked for e in watch.evidence if not e.ok] == []
    states = Counter(launch.state for launch in store.launches(identity))
    assert states == {LaunchState.OK: len(planned.configurations) + 1}
    measured = {(v.configuration, v.size) for v in store.values(identity)}
    sizes = {1, 2, 4, 8, 16, 32, 64}
    assert measured == {(c.key, s) for c in planned.configurations for s in sizes}


def test_evidence_is_kept_for_the_next_campaign(machine: Machine, store_folder: Path) -> None:
    planned = short(machine, mpi=("mpich",), transport=("ofi-tcp",), rounds=1)
    first, second = Silent(), Silent()
    begun = time.monotonic()
    pipeline.bench(planned, machine, Store(store_folder), first)
    assert time.monotonic() > begun
    launched: list[tuple[str, ...]] = []
    plain = run

    def counted(argv: tuple[str, ...], **words: object) -> object:
        launched.append(argv)
        return plain(argv, **words)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "run", counted)
        pipeline.bench(planned, machine, Store(store_folder), second)
    assert len(launched) == 2  # the baseline twice, no probe
    assert second.evidence == first.evidence


# ------------------------------------------------------------------ what may go wrong


@pytest.mark.parametrize(
    ("behaviour", "limit", "state"),
    [
        ("sleep 600", 3.0, LaunchState.TIMEOUT),
        ("exit 0", 60.0, LaunchState.MISMATCH),
        ("exit 3", 60.0, LaunchState.FAILED),
        ("kill -11 $$", 60.0, LaunchState.FAILED),
        ('"$REAL" "$@" >/dev/null', 60.0, LaunchState.FAILED),
        ('"$REAL" "$@" | head -c 300', 60.0, LaunchState.FAILED),
    ],
)
def test_a_launch_that_goes_wrong_is_a_row_and_then_an_error(
    behaviour: str,
    limit: float,
    state: LaunchState,
    machine: Machine,
    store_folder: Path,
    tmp_path: Path,
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doctored(monkeypatch, tmp_path, behaviour)
    planned = short(machine, mpi=("mpich",), transport=("ofi-tcp",), limit_s=limit)
    store, watch = Store(store_folder), Silent()
    with pytest.raises((LaunchFailed, TransportMismatch)) as caught:
        pipeline.bench(planned, machine, store, watch)
    assert caught.value.code in (4, 5)
    launches = store.launches(store.campaign().id)
    assert len(launches) == pipeline.GIVE_UP_AFTER
    assert {launch.state for launch in launches} == {state}
    assert all(launch.findings for launch in launches)
    assert ranks_left(scratch) == []


def test_foreign_noise_costs_nothing(
    machine: Machine, store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = r"printf 'lib: \0\0 \377 warning'; printf 'no newline' >&2"
    doctored(monkeypatch, tmp_path, f'{noise}; "$REAL" "$@"; {noise}')
    planned = short(machine, mpi=("mpich",), transport=("ofi-tcp",), rounds=1)
    store = Store(store_folder)
    identity = pipeline.bench(planned, machine, store, Silent())
    assert {launch.state for launch in store.launches(identity)} == {LaunchState.OK}
    assert len(store.values(identity)) == 2 * 7


def test_an_unnamed_configuration_that_fails_is_a_row(
    machine: Machine, store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = 'case "$0" in *ompi) kill -11 $$;; esac; exec "$REAL" "$@"'
    doctored(monkeypatch, tmp_path, crash)
    planned = short(machine, mpi=("mpich", "openmpi"), rounds=3)
    store = Store(store_folder)
    identity = pipeline.bench(planned, machine, store, Silent())
    by_state = Counter((launch.configuration, launch.state) for launch in store.launches(identity))
    for configuration in planned.configurations:
        failed = by_state[configuration.key, LaunchState.FAILED]
        assert failed == (pipeline.GIVE_UP_AFTER if "openmpi" in configuration.id else 0)


# ------------------------------------------------------------------ killed, full, shared


@pytest.fixture
def long_campaign(
    fresh_home: Path, store_folder: Path, scratch: Path
) -> Iterator[subprocess.Popen[bytes]]:
    words = ("--store", store_folder, "bench", "--mpi", "openmpi@5", "--transport", "ob1-sm")
    argv = [sys.executable, "-m", "mpigraft.cli.main", *map(str, (*words, *SHORT))]
    child = subprocess.Popen(
        [*argv, "--rounds", "8"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    yield child
    child.kill()
    child.wait()


def _wait_for_launches(store: Store, wanted: int) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            identity = store.campaign().id
            if len(store.launches(identity)) >= wanted:
                return identity
        except MpigraftError:
            pass
        time.sleep(0.05)
    pytest.fail("the campaign did not get going")


def test_a_killed_campaign_leaves_no_rank_and_goes_on(
    long_campaign: subprocess.Popen[bytes], store_folder: Path, scratch: Path
) -> None:
    store = Store(store_folder)
    identity = _wait_for_launches(store, 5)
    long_campaign.send_signal(signal.SIGKILL)
    long_campaign.wait()
    deadline = time.monotonic() + 10
    while ranks_left(scratch) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert ranks_left(scratch) == []
    kept = len(store.launches(identity))
    assert 5 <= kept < 16
    ended = mpigraft("--store", store_folder, "bench", "--resume")
    assert ended.returncode == 0, ended.stderr
    launches = store.launches(identity)
    assert len(launches) == 16
    assert len({measure.place(launch) for launch in launches}) == 16
    assert {launch.state for launch in launches} == {LaunchState.OK}


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_campaign_leaves_no_rank_and_no_scratch(
    sent: signal.Signals,
    code: int,
    long_campaign: subprocess.Popen[bytes],
    store_folder: Path,
    scratch: Path,
) -> None:
    _wait_for_launches(Store(store_folder), 2)
    long_campaign.send_signal(sent)
    assert long_campaign.wait(20) == code
    assert ranks_left(scratch) == []
    assert list(scratch.iterdir()) == []


@pytest.mark.root
def test_a_full_disk_ends_with_a_message_and_keeps_what_was_measured(
    fresh_home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192k", "none", folder], check=True)
    try:
        words = ("--store", folder, "bench", "--mpi", "mpich@5", "--transport", "ofi-tcp")
        ended = mpigraft(*words, *SHORT, "--rounds", "40")
        assert ended.returncode == MissingError.code, ended.stderr
        assert "full" in ended.stderr or "space" in ended.stderr
        assert "Traceback" not in ended.stderr
        store = Store(folder)
        identity = store.campaign().id
        launches = store.launches(identity)
        assert launches
        assert len(store.values(identity)) == 7 * len(launches)
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.root
def test_a_read_only_store_is_refused_before_anything_starts(
    fresh_home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "fixed"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", folder], check=True)
    try:
        words = ("--store", folder, "bench", "--mpi", "mpich@5", "--transport", "ofi-tcp")
        ended = mpigraft(*words, *SHORT)
        assert ended.returncode == MissingError.code
        assert str(folder) in ended.stderr
        assert "what to do" in ended.stderr
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_second_campaign_on_this_host_waits_its_turn(
    long_campaign: subprocess.Popen[bytes], store_folder: Path, tmp_path: Path
) -> None:
    _wait_for_launches(Store(store_folder), 1)
    ended = mpigraft("--store", tmp_path / "other", "bench", "--mpi", "mpich@5", *SHORT)
    assert ended.returncode == MissingError.code
    assert f"pid {long_campaign.pid}" in ended.stderr


def test_no_secret_reaches_store_report_or_log(fresh_home: Path, store_folder: Path) -> None:
    planted = "planted-7f3a9c"
    environment = {
        **os.environ,
        "GITHUB_TOKEN": planted,
        "OMPI_MCA_planted_password": planted,
        "SLURM_JWT": planted,
    }
    words = ("bench", "--mpi", "openmpi@5", "--transport", "ob1-sm", *SHORT, "--rounds", "1")
    ended = mpigraft("-v", "--store", store_folder, *words, env=environment)
    assert ended.returncode == 0, ended.stderr
    page = store_folder.parent / "report.html"
    told = mpigraft("--store", store_folder, "report", "-o", page, env=environment)
    shown = mpigraft("--store", store_folder, "results", "show", "--json", env=environment)
    assert (told.returncode, shown.returncode) == (0, 0), told.stderr + shown.stderr
    store = Store(store_folder)
    identity = store.campaign().id
    kept = [file.read_bytes() for file in store_folder.iterdir()]
    for launch in store.launches(identity):
        kept += [store.artefact(sha) for _, sha in launch.artefacts]
    texts = [ended.stdout, ended.stderr, told.stderr, shown.stdout, page.read_text()]
    assert not any(planted.encode() in data for data in kept)
    assert not any(planted in text for text in texts)
    json.loads(shown.stdout)


def test_the_benchmarks_that_can_be_asked_for_are_those_of_the_program(machine: Machine) -> None:
    mpi = next(m for m in machine.mpis if m.id.startswith("mpich"))
    program = real_natives(mpi, machine.cpu.architecture).bench
    paths = {row.name: row.value or "" for row in mpi.environment}
    listed = subprocess.run([program, "--list"], env=paths, capture_output=True, text=True)
    assert tuple(listed.stdout.split()) == BENCHMARKS
