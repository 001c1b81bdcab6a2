"""`mpigraft record` and `replay` with real MPIs, as a person uses them: the program is untouched,
and its record is replayed on another MPI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from mpigraft.core.model import Family
from tests.native.native_world import compile_c

pytestmark = pytest.mark.mpi
LONG = pytest.mark.long
SCHEMA = json.loads(files("mpigraft").joinpath("report/schemas/replay.json").read_text())
FAMILIES = {"openmpi@5": Family.OPENMPI, "mpich@5": Family.MPICH, "intel": Family.INTEL}
Ended = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def programs(
    mpis: Mapping[Family, Path], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Path]:
    made = {}
    for name in ("openmpi@5", "mpich@5"):
        prefix = mpis[FAMILIES[name]]
        library = next(p for p in (prefix / "lib").glob("libmpi.so.*") if p.name.count(".") == 2)
        made[name] = compile_c(
            Path(__file__).with_name("phases.c"),
            tmp_path_factory.mktemp("a program") / "phases",
            "-isystem", prefix / "include", library,
        )  # fmt: skip
    return made | {"intel": made["mpich@5"]}


def start(*words: object, **options: object) -> Ended:
    argv = [sys.executable, "-m", "mpigraft.cli.entry", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("openmpi@5", ("mpich@5",)),
        pytest.param("mpich@5", ("openmpi@5", "intel"), marks=LONG),
        pytest.param("intel", ("mpich@5", "openmpi@5", "intel"), marks=LONG),
    ],
)
def test_what_one_mpi_called_another_replays(
    programs: Mapping[str, Path], mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path,
    name: str, others: tuple[str, ...],
) -> None:  # fmt: skip
    record = tmp_path / "a record"
    ran = start("record", "--mpi", name, "-n", 3, "-o", record, "--", programs[name], "fine")
    assert ran.returncode == 0, ran.stderr
    assert "".join(ran.stdout.split()) == "done" * 3  # lines of ranks may be mixed
    for other in others:
        again = start("replay", record, "--mpi", other, "--gaps", "none", "--check", "--json")
        assert again.returncode == 0, again.stderr
        rows = [json.loads(line) for line in again.stdout.splitlines()]
        for row in rows:
            jsonschema.validate(row, SCHEMA)
        calls = {row.get("benchmark"): row.get("iterations") for row in rows}
        assert calls["replay,routine=Alltoallv"] == 3 * 10
        assert calls["replay,routine=Allreduce"] == 3 * 20
        assert all(row["valid"] for row in rows if row["mpigraft"] == "value")
        assert f'"ranks":{3}' in again.stdout
    planned = start("replay", record, "--dry-run")
    assert f"{mpis[FAMILIES[name]].name}/bin/" in planned.stdout  # the MPI that was recorded
    refused = start("replay", record, "--ranks-per-node", 2, "--nodes", 1)
    assert "[ranks-contradict]" in refused.stderr
    assert "site's profile" not in refused.stderr  # which has asked for nothing
    table = start("replay", record, "--only", "MPI_Alltoallv")
    assert table.returncode == 0, table.stderr
    assert max(map(len, table.stdout.splitlines())) <= 80
    assert [line.split()[0] for line in table.stdout.splitlines()] == [
        "routine", "Alltoallv", "the",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("mpich@5", "segv"),
        pytest.param("openmpi@5", "segv", marks=LONG),
        pytest.param("openmpi@5", "exit", marks=LONG),
        pytest.param("mpich@5", "exit", marks=LONG),
    ],
)
def test_a_program_that_ends_badly_keeps_its_code_and_output(
    programs: Mapping[str, Path], fresh_home: Path, tmp_path: Path, name: str, how: str
) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(b"an earlier record")
    before = os.listdir(tmp_path / "scratch")  # noqa: PTH208
    words = ("--mpi", name, "-n", 2)
    plain = start("run", *words, "--", programs[name], how)
    ran = start("record", *words, "-o", kept, "--", programs[name], how)
    assert ran.returncode == plain.returncode
    assert plain.returncode
    assert ran.stdout.count("done") == plain.stdout.count("done")
    assert "wrote no record" in ran.stderr
    assert kept.read_bytes() == b"an earlier record"
    assert os.listdir(tmp_path / "scratch") == before  # noqa: PTH208


def recorded(programs: Mapping[str, Path], record: Path, how: str) -> Ended:
    """A record of two ranks of MPICH that end well."""
    words = ("--mpi", "mpich@5", "-n", 2, "-o", record)
    ran = start("record", *words, "--", programs["mpich@5"], how)
    assert ran.returncode == 0, ran.stderr
    return ran


def test_a_record_that_lacks_objects_is_refused(
    programs: Mapping[str, Path], fresh_home: Path, tmp_path: Path
) -> None:
    """Dynamic windows are not recorded, and a fence of one is."""
    record = tmp_path / "it.record"
    ran = recorded(programs, record, "dynamic")
    assert "dynamic windows are not recorded: 2 of 2 ranks" in ran.stderr
    again = start("replay", record)
    assert again.returncode == 2
    assert "[record-strays]" in again.stderr


def test_a_record_says_that_calls_failed(
    programs: Mapping[str, Path], fresh_home: Path, tmp_path: Path
) -> None:
    record = tmp_path / "it.record"
    ran = recorded(programs, record, "refused")
    note = "calls that returned an error are left out"
    assert note in ran.stderr
    again = start("replay", record, "--gaps", "none")
    assert again.returncode == 0, again.stderr
    assert note in again.stderr


@pytest.mark.parametrize("command", ["profile", "record"])
def test_ranks_that_do_not_return_from_init_are_no_static_program(
    programs: Mapping[str, Path], fresh_home: Path, tmp_path: Path, command: str
) -> None:
    of = ("--mpi", "mpich@5", "--env", "MPIR_CVAR_CH4_NETMOD=none", "-n", 1)
    output = ("-o", tmp_path / "output")
    ran = start(command, *output, *of, "--", programs["mpich@5"], "fine")
    assert ran.returncode
    assert "a process of" in ran.stderr
    assert "static" not in ran.stderr
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize("budget", [4, pytest.param(64, marks=LONG)])
def test_a_rank_takes_no_more_memory_than_its_budget(
    programs: Mapping[str, Path], fresh_home: Path, tmp_path: Path, budget: int
) -> None:
    """A million calls that cannot be folded; 3 MiB more are for the library itself."""
    words = ("--mpi", "mpich@5", "-n", 1)
    program = ("--", programs["mpich@5"], "unlike")
    record = tmp_path / "it.record"
    taken = []
    for command in (("run",), ("record", "--budget", f"{budget}M", "-o", record)):
        ran = start(*command, *words, *program)
        assert ran.returncode == 0, ran.stderr
        taken.append(int(ran.stdout.split("peak ")[1].split()[0]) / 1024)
    assert "the budget ended the record" in ran.stderr
    assert budget / 2 < taken[1] - taken[0] < budget + 3


@pytest.mark.parametrize("name", ["mpich@5", pytest.param("openmpi@5", marks=LONG)])
def test_messages_cross_the_border_of_phases(
    programs: Mapping[str, Path], fresh_home: Path, tmp_path: Path, name: str
) -> None:
    """And requests that an earlier phase made are started."""
    record = tmp_path / "it.record"
    ran = start("record", "--mpi", name, "-n", 2, "-o", record, "--", programs[name], "across")
    assert ran.returncode == 0, ran.stderr
    for phase, due in (
        (2, {"Send": 2, "Startall": 2, "Waitall": 2, "Isend": 2, "Recv": None}),
        (3, {"Recv": 2, "Wait": 2, "Send": None}),
    ):
        words = ("--gaps", "none", "--check", "--json", "--phase", phase)
        again = start("replay", record, "--mpi", name, *words)
        assert again.returncode == 0, again.stderr
        rows = [json.loads(line) for line in again.stdout.splitlines()]
        calls = {row.get("benchmark"): row.get("iterations") for row in rows}
        for routine, count in due.items():
            assert calls.get(f"replay,routine={routine}") == count, routine
