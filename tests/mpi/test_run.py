"""`mpigraft run` with real MPIs: what ran is what was asked for, or it is said."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.native.programs import PREBUILT, SPAWN
from tests.builders.elf import program
from tests.native.native_world import compile_c
from tests.unit.run.test_run_command import LIGHT

pytestmark = pytest.mark.mpi
LONG = pytest.mark.long

ENTRY = (sys.executable, "-m", "mpigraft.cli.entry", "run")
OPENMPI = ("--mpi", "openmpi@5", "-n", "2")
MPICH = ("--mpi", "mpich@5", "-n", "2")


def compiled(prefix: Path, folder: Path) -> Path:
    source = Path(__file__).parent / "ranks.c"
    library = next(p for p in (prefix / "lib").glob("libmpi.so.*") if p.name.count(".") == 2)
    return compile_c(source, folder / "ranks", "-isystem", prefix / "include", library)


@pytest.fixture(scope="module")
def programs(
    mpis: Mapping[Family, Path], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[Family, Path]:
    families = (Family.OPENMPI, Family.MPICH)
    return {f: compiled(mpis[f], tmp_path_factory.mktemp(f.value)) for f in families}


@pytest.fixture
def ompi(programs: Mapping[Family, Path], fresh_home: Path) -> Path:
    return programs[Family.OPENMPI]


@pytest.fixture
def mpich(programs: Mapping[Family, Path], fresh_home: Path) -> Path:
    return programs[Family.MPICH]


def started(*words: object, **more: object) -> subprocess.Popen[str]:
    argv = [*ENTRY, *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, stdout=pipe, stderr=pipe, text=True, **more)  # type: ignore[call-overload,no-any-return]


def run(*words: object, **more: object) -> subprocess.CompletedProcess[str]:
    argv = [*ENTRY, *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, **more)  # type: ignore[call-overload,no-any-return]


def kept(home: Path) -> list[Path]:
    return list((home / "cache/run").glob("*.json"))


def ranks_of(ended: subprocess.CompletedProcess[str]) -> list[str]:
    return sorted(line for line in ended.stdout.splitlines() if line.startswith("rank "))


# ------------------------------------------------------------------ what runs


def test_a_program_runs_twice_and_the_second_time_from_what_was_kept(
    ompi: Path, fresh_home: Path
) -> None:
    environ = dict(os.environ)  # Python itself adds LC_CTYPE to what children inherit
    first = run(*OPENMPI, "--transport", "ob1-sm", "--", ompi, env=environ)
    assert (first.returncode, first.stderr) == (0, "")
    assert ranks_of(first) == ["rank 0 of 2", "rank 1 of 2"]
    (document,) = kept(fresh_home)
    seen = document.stat().st_ino
    words = (*ENTRY, *OPENMPI, "--transport", "ob1-sm", "--", ompi)
    traced = [sys.executable, "-X", "importtime", *map(str, words[1:])]
    second = subprocess.run(
        traced, capture_output=True, text=True, timeout=120, env=environ, check=False
    )
    assert second.returncode == 0
    assert ranks_of(second) == ranks_of(first)
    imported = set(re.findall(r"\| +(mpigraft\S*|typer|dataclasses|subprocess)", second.stderr))
    assert imported <= LIGHT | {"mpigraft.cli"}
    assert document.stat().st_ino == seen


def test_a_changed_input_is_noticed(ompi: Path, fresh_home: Path, tmp_path: Path) -> None:
    program = tmp_path / "mine"
    program.write_bytes(ompi.read_bytes())
    program.chmod(0o755)
    assert run(*OPENMPI, "--", program).returncode == 0
    (document,) = kept(fresh_home)
    made = document.stat().st_ino
    program.write_bytes(b"#!/bin/sh\nexit 9\n")
    assert run(*OPENMPI, "--", program).returncode == 9
    assert document.stat().st_ino != made


def test_what_would_be_started_is_shown_and_nothing_is(ompi: Path, fresh_home: Path) -> None:
    ended = run(*OPENMPI, "--dry-run", "--env", "GREETING=two words", "--", ompi, "a b")
    assert ended.returncode == 0
    assert ended.stdout.rstrip().endswith(f"{ompi} 'a b'")
    assert "'GREETING=two words'" in ended.stdout
    assert kept(fresh_home) == []


def test_what_is_shown_can_be_pasted(ompi: Path, fresh_home: Path) -> None:
    exported = {"BASH_FUNC_ml%%": "() { :; }", "LD_PRELOAD": "libm.so.6"}
    words = [*OPENMPI, "--dry-run", "--env", "GREETING=two words", "--", ompi, "env", "GREETING"]
    shown = run(*words, env=os.environ | exported)
    pasted = subprocess.run(
        ["bash", "-ec", shown.stdout], capture_output=True, text=True, timeout=60, check=False
    )
    assert (pasted.returncode, pasted.stderr) == (0, "")
    assert pasted.stdout.count("GREETING=two words\n") == 2
    assert "rank 1 of 2\n" in pasted.stdout
    assert "LD_PRELOAD=libm.so.6" in shown.stdout


# ------------------------------------------------------------------ what passes through


@pytest.mark.parametrize("code", [pytest.param(1, marks=LONG), 42])
def test_the_exit_code_is_the_programs_own(mpich: Path, code: int) -> None:
    for _ in range(2):
        assert run(*MPICH, "--", mpich, "code", code).returncode == code


@LONG  # test_loud has them every day
def test_a_million_lines_come_through_unchanged(mpich: Path) -> None:
    ended = run("--mpi", "mpich@5", "-n", 1, "--", mpich, "lines", 1_000_000)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines == [*(f"line {i}" for i in range(1_000_000)), "rank 0 of 1"]


def test_standard_input_reaches_rank_0(mpich: Path) -> None:
    ended = run(*MPICH, "--", mpich, "read", 3, input="one\ntwo\nthree\nfour\n")
    lines = [line for line in ended.stdout.splitlines() if not line.startswith("rank")]
    assert lines == ["one", "two", "three"]
    assert ended.returncode == 0


def test_a_users_variables_reach_the_program_and_steering_ones_do_not(ompi: Path) -> None:
    given = {**os.environ, "MY_OWN": "thing", "FI_PROVIDER": "none-such", "PMI_RANK": "7"}
    own = run(*OPENMPI, "--", ompi, "env", "MY_OWN", env=given)
    assert own.stdout.count("MY_OWN=thing") == 2
    told = run(*OPENMPI, "--explain", "--", ompi, "env", "PMI_RANK", env=given)
    assert told.stdout.count("PMI_RANK=(none)") == 2
    why = "it belongs to another launch around this one and is never passed on"
    assert f"dropped: PMI_RANK  [{why}]" in told.stderr
    assert "dropped: FI_PROVIDER" in told.stderr
    user = run(*OPENMPI, "--env", "MY_OWN=else", "--", ompi, "env", "MY_OWN", env=given)
    assert user.stdout.count("MY_OWN=else") == 2


def test_what_a_user_preloads_comes_after_the_witness(ompi: Path, tmp_path: Path) -> None:
    source = tmp_path / "loud.c"
    source.write_text(
        "#include <stdio.h>\n__attribute__((constructor)) static void here(void)\n"
        '{ fputs("preloaded\\n", stderr); }\n'
    )
    loud = compile_c(source, tmp_path / "loud.so", "-shared", "-fPIC")
    ended = run(*OPENMPI, "--", ompi, env={**os.environ, "LD_PRELOAD": str(loud)})
    assert ended.returncode == 0, ended.stderr
    assert "preloaded" in ended.stderr
    assert ranks_of(ended) == ["rank 0 of 2", "rank 1 of 2"]


def test_a_program_that_executes_another_is_proved_by_that(ompi: Path, tmp_path: Path) -> None:
    script = tmp_path / "start"
    script.write_text(f'#!/bin/sh\nexec {ompi} "$@"\n')
    script.chmod(0o755)
    for _ in range(2):
        ended = run(*OPENMPI, "--", script, "code", "0")
        assert (ended.returncode, ended.stderr) == (0, "")


# ------------------------------------------------------------------ what ends


@pytest.fixture
def long_job(mpich: Path, scratch: Path) -> Iterator[subprocess.Popen[str]]:
    child = started(*MPICH, "--", mpich, "sleep", 60)
    assert child.stdout is not None
    assert child.stdout.readline().startswith("ready")
    yield child
    child.kill()
    child.communicate()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_job_and_leaves_nothing(
    long_job: subprocess.Popen[str], scratch: Path, sent: signal.Signals
) -> None:
    long_job.send_signal(sent)
    assert long_job.wait(40) != 0
    assert list(scratch.iterdir()) == []


def test_a_killed_run_takes_its_ranks_along(long_job: subprocess.Popen[str]) -> None:
    """The fixture `guard` looks for what is left."""
    long_job.kill()
    assert long_job.wait(10) == -signal.SIGKILL


def test_a_killed_rank_ends_the_job(mpich: Path) -> None:
    assert run(*MPICH, "--", mpich, "die", 1).returncode not in (0, 5)


def test_nohup_is_left_alone(mpich: Path, scratch: Path) -> None:
    def deaf() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    child = started(*MPICH, "--", mpich, "sleep", 2, preexec_fn=deaf, process_group=0)
    assert child.stdout is not None
    assert child.stdout.readline().startswith("ready")
    os.killpg(child.pid, signal.SIGHUP)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    assert "rank 1 of 2" in out


# ------------------------------------------------------------------ what is not as asked


def test_two_worlds_of_one_end_at_once_with_code_5(
    ompi: Path, mpis: Mapping[Family, Path], tmp_path: Path, fresh_home: Path
) -> None:
    """An Open MPI program under MPICH's launcher: each rank is alone, and all would end well. That
    it is one cannot be read in the script."""
    script = tmp_path / "start"
    libraries = mpis[Family.OPENMPI] / "lib"
    (tmp_path / "name").write_text(str(ompi))
    script.write_text(
        f"#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec $(cat {tmp_path}/name) sleep 50\n"
    )
    script.chmod(0o755)
    for _ in range(2):
        begun = time.monotonic()
        ended = run(*MPICH, "--", script)
        assert ended.returncode == 5
        # By when it is looked at, they are on their way into the other library or alone in it.
        alone = "worlds of one rank instead of one world of 2" in ended.stderr
        assert alone or "libmpi.so.12 of mpich@5.0.2 was intended" in ended.stderr
        assert time.monotonic() - begun < 50  # it slept, and was not waited for


def test_a_program_without_mpi_is_no_proof(ompi: Path) -> None:
    for _ in range(2):
        ended = run(*OPENMPI, "--", ompi, "never", "0")
        assert ended.returncode == 5
        assert "no rank wrote a record" in ended.stderr
    assert run(*OPENMPI, "--no-proof", "--", ompi, "never", "0").returncode == 0
    assert run(*OPENMPI, "--", ompi, "never", "3").returncode == 3


def test_a_transport_that_cannot_be_is_refused(ompi: Path) -> None:
    ended = run(*OPENMPI, "--transport", "ofi-cxi", "--", ompi)
    assert ended.returncode in (2, 3)
    assert ended.stdout == ""


def test_the_transport_is_proved_before_the_first_run(ompi: Path, fresh_home: Path) -> None:
    words = (*OPENMPI, "--transport", "ob1-sm", "--env", "OMPI_MCA_btl=self,tcp")
    ended = run(*words, "--", ompi)
    assert ended.returncode in (4, 5)
    assert ranks_of(ended) == []
    assert kept(fresh_home) == []


# ------------------------------------------------------------------ a guest


def test_another_mpi_goes_under_a_program_of_this_machine(
    mpich: Path, fresh_home: Path, tmp_path: Path
) -> None:
    """Built on MPICH, run on Intel MPI: one ABI. The second time from what was kept, until the
    graft is removed."""
    words = ("--image", mpich, "--mpi", "intel", "-n", "2", "--env", "FI_PROVIDER=tcp")
    first = run(*words, "--explain", "--", mpich)
    assert first.returncode == 0, first.stderr
    assert "mpigraft: engine: none" in first.stderr
    for _ in range(2):
        ended = run(*words, "--", mpich)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ranks_of(ended) == ["rank 0 of 2", "rank 1 of 2"]
    (document,) = kept(fresh_home)
    made = document.stat().st_ino
    (graft,) = (fresh_home / "grafts").iterdir()
    assert list((graft / "ranks").iterdir()) == []
    shutil.rmtree(graft)
    assert run(*words, "--", mpich).returncode == 0
    assert document.stat().st_ino != made


def test_a_guest_of_another_abi_is_refused(mpich: Path, fresh_home: Path) -> None:
    ended = run("--image", mpich, *OPENMPI, "--", mpich)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "does not fit" in ended.stderr
    assert kept(fresh_home) == []


# ------------------------------------------------------------------ a site


def test_a_site_decides_what_users_do_not_say(ompi: Path, tmp_path: Path) -> None:
    profile = tmp_path / "site.toml"
    profile.write_text(
        '[run]\nmpi = "openmpi@5"\nranks = 2\nenv = { OF_THE_SITE = "yes" }\n'
        '[policy]\nfixed = ["mpi"]\n'
    )
    given = {**os.environ, "MPIGRAFT_SITE": str(profile)}
    ended = run("--explain", "--", ompi, "env", "OF_THE_SITE", env=given)
    assert ended.stdout.count("OF_THE_SITE=yes") == 2
    assert f"[{profile}:2]" in ended.stderr
    refused = run("--mpi", "mpich@5", "--", ompi, env=given)
    assert refused.returncode == 2
    assert f"{profile}:2 fixes it" in refused.stderr
    assert run("--", ompi, env=given).returncode == 0
    profile.write_text('[run]\nmpi = "openmpi@5"\nranks = 1\n')
    assert ranks_of(run("--", ompi, env=given)) == ["rank 0 of 1"]


def test_kept_documents_are_of_this_user_alone(ompi: Path, fresh_home: Path) -> None:
    assert run(*OPENMPI, "--", ompi).returncode == 0
    (document,) = kept(fresh_home)
    assert document.stat().st_mode & 0o077 == 0
    content = json.loads(document.read_text())
    content["argv"] = ["/bin/false"]
    document.write_text(json.dumps(content))
    document.chmod(0o666)  # anybody may have written it
    assert run(*OPENMPI, "--", ompi).returncode == 0


@pytest.mark.parametrize("bind", ["core", "none"])
def test_ranks_of_mpich_can_spawn_others(fresh_home: Path, bind: str) -> None:
    """Hydra refuses it of ranks that it was told to bind by -bind-to."""
    program = PREBUILT / platform.machine() / "mpich" / SPAWN
    done = run(*MPICH, "--bind-to", bind, "--", program)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["children"] == 2


def test_a_child_of_another_mpi_ends_the_job(fresh_home: Path) -> None:
    """Its parents would wait for it forever."""
    machine = PREBUILT / platform.machine()
    for mpi, own, other, needed in (
        ("mpich@5", "mpich", "ompi", "libmpi.so.40"),
        ("openmpi@5", "ompi", "mpich", "libmpi.so.12"),
    ):
        done = run("--mpi", mpi, "-n", 1, "--", machine / own / SPAWN, machine / other / SPAWN)
        assert done.returncode == 4, done.stdout + done.stderr
        assert f"{machine / other / SPAWN} needs {needed}" in done.stderr


def test_a_child_without_its_loader_ends_the_job(fresh_home: Path, tmp_path: Path) -> None:
    """Its launcher would wait for it forever."""
    spawn = PREBUILT / platform.machine() / "mpich" / SPAWN
    lost = program(tmp_path / "lost", flags=["-Wl,--dynamic-linker=/opt/gone/ld.so"])
    script = tmp_path / "script"
    script.write_text("#!/opt/gone/sh -e\n")
    script.chmod(0o755)
    for child, missing in ((lost, "/opt/gone/ld.so"), (script, "/opt/gone/sh")):
        done = run("--mpi", "mpich@5", "-n", 1, "--", spawn, child)
        assert done.returncode == 4, done.stdout + done.stderr
        assert f"{child}: its loader or interpreter is {missing}, which the ranks" in done.stderr
