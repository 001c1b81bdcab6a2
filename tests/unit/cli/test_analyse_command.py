"""`mpigraft analyse`: the table, the document, and the records of the steps."""

from __future__ import annotations

import json
import random
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from mpigraft.cli.main import main
from mpigraft.trace import make_ladder
from tests.builders.messages import shows
from tests.unit.trace.record.test_exchanges import an_exchange

SCHEMA = json.loads(files("mpigraft").joinpath("report/schemas/analyse.json").read_text())


@pytest.fixture
def solver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a solver.record"
    path.write_bytes(make_ladder(an_exchange(random.Random(3), 4))[-1].data)
    return path


def analyse(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["analyse", *map(str, words)])
    return int(ended.value.code or 0)


def test_the_table_and_the_document(solver: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert analyse(solver) == 0
    lines = capsys.readouterr().out.splitlines()
    assert shows(lines, "Alltoallv on 4")
    assert shows(" ".join(lines[:3]), "unlike osu_alltoallv", "empty blocks", "late")
    assert len(lines) <= 24
    assert shows(lines[-1], "--full", "1 phase")
    assert analyse(solver, "--full") == 0
    whole = capsys.readouterr().out.splitlines()
    assert shows(whole, "skew", "bytes of the rank that sends")
    assert shows(whole, "0 to the end")
    assert analyse(solver, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, SCHEMA)
    assert document["exchanges"][0]["ranks"] == 4


def test_the_steps_are_records_of_their_own(
    solver: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert analyse(solver, "-o", "the steps") == 0
    printed = capsys.readouterr()
    made = sorted(path.name for path in Path("the steps").iterdir())
    assert [name[:2] for name in made] == ["1-", "2-", "3-", "4-", "5-"]
    assert shows(printed.err, "app:the steps/5-spread.record")
    assert analyse("the steps/5-spread.record") == 0
    assert shows(capsys.readouterr().out, "Alltoallv", "4")


def test_what_is_no_record_or_no_place_is_refused(solver: Path) -> None:
    Path("other").write_text("hello")
    assert analyse("other") == 2
    assert analyse(solver, "-o", "other") == 3
    assert analyse(solver, "--rounds", "8") == 2
    assert analyse(solver, "--mpi", "openmpi", "-o", "a,b") == 2


@pytest.mark.mpi
def test_a_dry_run_prints_the_campaign(
    solver: Path, mpis: object, capsys: pytest.CaptureFixture[str]
) -> None:
    solver.write_bytes(make_ladder(an_exchange(random.Random(3), 2))[-1].data)
    words = ("--mpi", "mpich@5", "--transport", "ucx", "--transport", "ofi-tcp", "--here")
    assert analyse(solver, *words, "--dry-run", "--full") == 0
    printed = capsys.readouterr().out
    assert printed.count("5-spread.record: ") == 2
    assert "1x2" in printed


@pytest.mark.mpi
@pytest.mark.long
def test_steps_are_measured_by_one_command(
    solver: Path, mpis: object, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    solver.write_bytes(make_ladder(an_exchange(random.Random(3), 2))[-1].data)
    words = ("--mpi", "mpich@5", "--transport", "ucx", "--transport", "ofi-tcp", "--here")
    store = ("--store", str(tmp_path / "results"))
    with pytest.raises(SystemExit) as ended:
        main([*store, "analyse", str(solver), *words, "--rounds", "2", "--json"])
    assert not ended.value.code
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, SCHEMA)
    steps = document["ladder"]["steps"]
    assert [row["step"][:2] for row in steps] == ["1-", "2-", "3-", "4-", "5-"]
    assert not any(row["moves"] for row in steps)  # two rounds decide nothing
