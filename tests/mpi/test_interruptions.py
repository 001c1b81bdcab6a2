"""Campaigns that are killed, meet a full disk, are not alone, or know a secret."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.bench import measurement
from mpigraft.core.errors import MissingError, MpigraftError
from mpigraft.core.model import Family, LaunchState
from mpigraft.store import Store
from tests.mpi.campaigns import SHORT, mpigraft, ranks_left

pytestmark = pytest.mark.mpi


@pytest.fixture
def long_campaign(
    fresh_home: Path, mpis: Mapping[Family, Path], store_folder: Path, scratch: Path
) -> Iterator[subprocess.Popen[bytes]]:
    mpi = mpis[Family.OPENMPI].name.replace("-", "@")  # Debian 13 has an openmpi@5 too
    words = ("--store", store_folder, "bench", "--mpi", mpi, "--transport", "ob1-sm")
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
    assert len({measurement.place(launch) for launch in launches}) == 16
    assert {launch.state for launch in launches} == {LaunchState.OK}
    extended = mpigraft("--store", store_folder, "bench", "--resume", "--rounds", "9")
    assert extended.returncode == 0, extended.stderr
    assert store.launches(identity)[:16] == launches
    assert [launch.round for launch in store.launches(identity)[16:]] == [8, 8]
    shown = mpigraft("--store", store_folder, "results", "show", "--full").stdout
    assert "extended from 8 to 9 rounds" in shown


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


@contextlib.contextmanager
def mounted_tmpfs(folder: Path, options: str) -> Iterator[Path]:
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.root
def test_a_full_disk_ends_with_a_message_and_keeps_what_was_measured(
    fresh_home: Path, tmp_path: Path
) -> None:
    with mounted_tmpfs(tmp_path / "small", "size=192k") as folder:
        words = ("--store", folder, "bench", "--mpi", "mpich@5", "--transport", "ofi-tcp")
        ended = mpigraft(*words, *SHORT, "--rounds", "40")
        assert ended.returncode == MissingError.exit_code, ended.stderr
        assert "full" in ended.stderr or "space" in ended.stderr
        assert "Traceback" not in ended.stderr
        store = Store(folder)
        identity = store.campaign().id
        launches = store.launches(identity)
        assert launches
        assert len(store.values(identity)) == 7 * len(launches)


@pytest.mark.root
def test_a_read_only_store_is_refused_before_anything_starts(
    fresh_home: Path, tmp_path: Path
) -> None:
    with mounted_tmpfs(tmp_path / "fixed", "ro") as folder:
        words = ("--store", folder, "bench", "--mpi", "mpich@5", "--transport", "ofi-tcp")
        ended = mpigraft(*words, *SHORT)
        assert ended.returncode == MissingError.exit_code
        assert str(folder) in ended.stderr
        assert "what to do" in ended.stderr


def test_a_second_campaign_on_this_host_waits_its_turn(
    long_campaign: subprocess.Popen[bytes], store_folder: Path, tmp_path: Path
) -> None:
    _wait_for_launches(Store(store_folder), 1)
    ended = mpigraft("--store", tmp_path / "other", "bench", "--mpi", "mpich@5", *SHORT)
    assert ended.returncode == MissingError.exit_code
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
