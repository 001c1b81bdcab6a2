"""Whole campaigns on real MPIs, and what may go wrong in the middle of one."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.bench import measurement, pipeline, shards
from mpigraft.bench.schedule.campaign import Step
from mpigraft.core.errors import LaunchFailed, TransportMismatch, UsageError
from mpigraft.core.model import Configuration, Evidence, LaunchState, Machine, MpiInstall
from mpigraft.core.process.command import run_command
from mpigraft.evidence import runner
from mpigraft.evidence.keys import evidence_key
from mpigraft.native import programs as natives
from mpigraft.native.programs import Natives, benchmarks
from mpigraft.native.programs import choose_natives as real_natives
from mpigraft.store import Store, Writer
from tests.mpi.campaigns import Silent, doctored, ranks_left, short

pytestmark = pytest.mark.mpi
LONG = pytest.mark.long

# ------------------------------------------------------------------ the whole flow


def test_every_mpi_over_every_transport_that_runs_here(
    machine: Machine, store_folder: Path
) -> None:
    planned = short(machine, rounds=1)
    store, watch = Store(store_folder), Silent()
    identity = pipeline.run_campaign(planned, machine, store, watch)
    ran = {c.id.partition("/")[2] for c in store.configurations(identity)}
    assert {"ob1-sm", "ob1-tcp", "ofi-tcp", "ofi-lnx", "ucx", "shm", "shm-ofi-tcp"} <= ran
    assert [(e.asked, e.findings) for e in watch.evidence if not e.ok] == []
    states = Counter(launch.state for launch in store.launches(identity))
    assert states == {LaunchState.OK: len(planned.configurations) + 1}
    measured = {(v.configuration, v.size) for v in store.values(identity)}
    sizes = {1, 2, 4, 8, 16, 32, 64}
    assert measured == {(c.key, s) for c in planned.configurations for s in sizes}


def test_evidence_is_kept_for_the_next_campaign(machine: Machine, store_folder: Path) -> None:
    planned = short(machine, mpi=("mpich",), transport=("ofi-tcp",), rounds=1)
    first, second = Silent(), Silent()
    begun = time.monotonic()
    pipeline.run_campaign(planned, machine, Store(store_folder), first)
    assert time.monotonic() > begun
    launched: list[tuple[str, ...]] = []
    plain = run_command

    def counted(argv: tuple[str, ...], **words: object) -> object:
        launched.append(argv)
        return plain(argv, **words)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "run_command", counted)
        pipeline.run_campaign(planned, machine, Store(store_folder), second)
    assert len(launched) == 2  # the baseline twice, no probe
    assert second.evidence == first.evidence


# ------------------------------------------------------------------ what may go wrong


@pytest.mark.parametrize(
    ("behaviour", "limit", "state"),
    [
        ("sleep 600", 3.0, LaunchState.TIMEOUT),
        ("exit 0", 60.0, LaunchState.MISMATCH),
        ("exit 3", 60.0, LaunchState.FAILED),
        pytest.param("kill -11 $$", 60.0, LaunchState.FAILED, marks=LONG),
        ('"$REAL" "$@" >/dev/null', 60.0, LaunchState.FAILED),
        # Read to its end: a rank that dies of a closed pipe in the middle of a shell's pipeline
        # ends well for hydra, and the other rank waits for it or not.
        ('"$REAL" "$@" | { head -c 300; cat >/dev/null; }', 60.0, LaunchState.FAILED),
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
        pipeline.run_campaign(planned, machine, store, watch)
    assert caught.value.exit_code in (4, 5)
    launches = store.launches(store.campaign().id)
    assert len(launches) == shards.GIVE_UP_AFTER
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
    identity = pipeline.run_campaign(planned, machine, store, Silent())
    assert {launch.state for launch in store.launches(identity)} == {LaunchState.OK}
    assert len(store.values(identity)) == 2 * 7


def test_an_unnamed_configuration_that_fails_is_a_row(
    machine: Machine, store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash = 'case "$0" in *ompi/*) kill -11 $$;; esac; exec "$REAL" "$@"'
    doctored(monkeypatch, tmp_path, crash)
    planned = short(machine, mpi=("mpich", "openmpi"), rounds=3)
    store = Store(store_folder)
    identity = pipeline.run_campaign(planned, machine, store, Silent())
    by_state = Counter((launch.configuration, launch.state) for launch in store.launches(identity))
    for configuration in planned.configurations:
        failed = by_state[configuration.key, LaunchState.FAILED]
        assert failed == (shards.GIVE_UP_AFTER if "openmpi" in configuration.id else 0)


@pytest.mark.parametrize("whose", ["baseline", "another"])
def test_a_named_one_that_is_refused_ends_with_an_error_and_not_the_others(
    whose: str, machine: Machine, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("ofi-tcp", "shm-ofi-tcp")
    planned = short(machine, mpi=("mpich@5",), transport=names, rounds=1)
    other = next(c for c in planned.configurations if c.key != planned.baseline.key)
    bad = planned.baseline if whose == "baseline" else other
    plain = runner.evidence_of

    def looked(configuration: Configuration, *rest: Any) -> Evidence:
        seen = plain(configuration, *rest)
        return replace(seen, ok=seen.ok and configuration.key != bad.key)

    monkeypatch.setattr(pipeline, "evidence_of", looked)
    store = Store(store_folder)
    with pytest.raises(TransportMismatch, match=bad.id):
        pipeline.run_campaign(planned, machine, store, Silent())
    ran = Counter(launch.configuration for launch in store.launches(store.campaign().id))
    assert ran == ({} if whose == "baseline" else {planned.baseline.key: 2})


@pytest.fixture
def moved(machine: Machine, tmp_path: Path) -> MpiInstall:
    """An MPICH of this test's own."""
    mpi = next(m for m in machine.mpis if m.id.startswith("mpich"))
    copy = tmp_path / "mpich"
    shutil.copytree(mpi.prefix, copy)
    there = str(mpi.prefix)
    assert mpi.libmpi is not None
    assert mpi.launcher is not None
    return replace(
        mpi,
        prefix=copy,
        libmpi=copy / mpi.libmpi.relative_to(mpi.prefix),
        launcher=copy / mpi.launcher.relative_to(mpi.prefix),
        environment=tuple(
            replace(row, value=row.value and row.value.replace(there, str(copy)))
            for row in mpi.environment
        ),
    )


@pytest.mark.parametrize(
    "name",
    [
        "libmpi", "daemon", "bench", "config", pytest.param("libfabric", marks=LONG),
        pytest.param("launcher", marks=LONG), pytest.param("guard", marks=LONG),
    ],
)  # fmt: skip
def test_what_a_launch_uses_and_is_replaced_in_the_middle_ends_the_campaign(
    name: str,
    machine: Machine,
    moved: MpiInstall,
    store_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same bytes under another inode are the same; other bytes are refused."""
    architecture = machine.cpu.architecture
    ours = real_natives(moved, architecture).guard.parent
    shutil.copytree(ours, tmp_path / "prebuilt" / architecture)
    monkeypatch.setattr(natives, "PREBUILT", tmp_path / "prebuilt")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    programs = real_natives(moved, architecture)
    assert moved.libmpi is not None
    assert moved.launcher is not None
    file = {
        "libmpi": moved.libmpi.resolve(),
        "libfabric": next((moved.prefix / "lib").rglob("libfabric.so.1")).resolve(),
        "launcher": moved.launcher.resolve(),
        "daemon": moved.launcher.parent / "hydra_pmi_proxy",
        "bench": programs.bench,
        "guard": programs.guard,
        "config": tmp_path / "user/ucx.conf",
    }[name]
    planned = short(replace(machine, mpis=(moved,)), transport=("shm-ofi-tcp",), rounds=6)

    class Meddler(Silent):
        def launched(self, step: Step, outcome: measurement.LaunchOutcome, wall_s: float) -> None:
            super().launched(step, outcome, wall_s)
            file.parent.mkdir(exist_ok=True)
            other = file.with_suffix(".new")
            other.write_bytes(file.read_bytes() if file.exists() else b"")
            other.chmod(0o755)
            if len(self.outcomes) == 2 or name == "config":
                with other.open("ab") as end:
                    end.write(b"UCX_RNDV_THRESH=1024\n")
            other.replace(file)

    watch, store = Meddler(), Store(store_folder)
    with pytest.raises(UsageError, match="the campaign") as caught:
        pipeline.run_campaign(planned, replace(machine, mpis=(moved,)), store, watch)
    assert file.name in str(caught.value.message)
    due = 1 if name == "config" else 2
    assert [o.state for o in watch.outcomes] == [LaunchState.OK] * due
    assert len(store.launches(store.campaign().id)) == due
    with pytest.raises(UsageError, match="cannot resume"):
        pipeline.run_campaign(planned, machine, store, Silent(), store.campaign())


def test_other_programs_do_not_go_on_with_a_campaign(
    machine: Machine, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = short(machine, mpi=("mpich",), transport=("ofi-tcp",), rounds=1)
    store = Store(store_folder)
    identity = pipeline.run_campaign(planned, machine, store, Silent())

    def rebuilt(mpi: MpiInstall, architecture: str, build: str = "prebuilt") -> Natives:
        return replace(real_natives(mpi, architecture, build), digest="another")

    monkeypatch.setattr(pipeline, "choose_natives", rebuilt)
    with pytest.raises(UsageError, match="other benchmark programs"):
        pipeline.run_campaign(planned, machine, store, Silent(), store.campaign(identity))


def test_a_campaign_is_stored_after_its_configurations(
    machine: Machine, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that one which is there has all of them, whenever it was killed."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    planned = short(machine, mpi=("mpich",))
    monkeypatch.setattr(Writer, "add_campaign", killed)
    store = Store(store_folder)
    with pytest.raises(KeyboardInterrupt):
        pipeline.run_campaign(planned, machine, store, Silent())
    assert store.campaigns() == ()


def test_what_steers_a_library_from_a_file_is_part_of_the_evidence(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    named = tmp_path / "mine.conf"
    named.touch()
    setting = f"OMPI_MCA_mca_base_param_files={named}"
    planned = short(machine, mpi=("openmpi",), transport=("ob1-sm",), env=(setting,))
    asked, layout = planned.configurations[0], planned.layouts[0]
    assert asked.mpi is not None
    programs = real_natives(asked.mpi, machine.cpu.architecture)
    keys = [evidence_key(asked, layout, programs)]
    (tmp_path / "ucx.conf").write_text("UCX_TLS=tcp\n")
    keys.append(evidence_key(asked, layout, programs))
    named.write_text("btl = self,tcp\n")
    keys.append(evidence_key(asked, layout, programs))
    assert len(set(keys)) == 3


def test_the_benchmarks_that_can_be_asked_for_are_those_of_the_program(machine: Machine) -> None:
    mpi = next(m for m in machine.mpis if m.id.startswith("mpich"))
    program = real_natives(mpi, machine.cpu.architecture).bench
    paths = {row.name: row.value or "" for row in mpi.environment}
    listed = subprocess.run([program, "--list"], env=paths, capture_output=True, text=True)
    assert tuple(listed.stdout.split()) == tuple(benchmarks())
