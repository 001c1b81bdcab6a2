"""`mpigraft diagnose` on files, a stored campaign and a machine, through the command line."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import mpigraft
from mpigraft.core.model import NetDevice, NetLibrary
from mpigraft.core.serialize import document as to_document
from mpigraft.report import machine_document
from mpigraft.report.screen import LINES
from mpigraft.store import Store
from tests.builders.commands import Run
from tests.builders.configuration import a_machine
from tests.builders.messages import shows
from tests.builders.overtime import campaign
from tests.builders.probes import install

DATA = Path(__file__).resolve().parents[2] / "data"
OLIVIA, PUBLISHED = DATA / "olivia", DATA / "published"
SCHEMA = Path(mpigraft.__file__).parent / "report/schemas/diagnose.json"
ISSUE = "No PMIx server was reachable, but a PMI1/2 was detected.\n"


def document(run: Run, *words: object) -> dict[str, Any]:
    ended = run("diagnose", "--json", *map(str, words))
    assert ended.code == 0
    answer: dict[str, Any] = json.loads(ended.out)
    jsonschema.validate(answer, json.loads(SCHEMA.read_text()))
    return answer


def ids(run: Run, *words: object) -> list[str]:
    return [row["id"] for row in document(run, *words)["findings"]]


def test_published_tables_have_their_known_faults(run: Run) -> None:
    assert ids(run, *sorted(OLIVIA.glob("2025-*"))) == ["VAL-01", "CXI-01"]
    assert ids(run, *sorted(OLIVIA.glob("2026-*"))) == []
    assert ids(run, PUBLISHED / "libfabric-10822.alltoall.txt") == ["VAL-01", "CXI-13"]


def test_the_answer_is_one_screen_of_80_columns(run: Run) -> None:
    ended = run("diagnose", *map(str, (*OLIVIA.iterdir(), *PUBLISHED.iterdir())))
    lines = ended.out.splitlines()
    assert shows(lines[0], "4 known issues", "1 measured", "1 matches", "2 possible")
    assert len(lines) <= LINES + 8
    commands = ("confirm:", "--setting")
    assert max(len(line) for line in lines if not line.strip().startswith(commands)) <= 80
    full = run("diagnose", "--full", *map(str, (*OLIVIA.iterdir(), *PUBLISHED.iterdir()))).out
    assert full.count("  cause: ") == 4
    assert shows(full, "--setting cxi-01:FI_CXI_DISABLE_NON_INJECT_MSG_IDC=1")


def test_ranks_a_node_of_a_stored_campaign_are_compared(run: Run) -> None:
    for ranks in (32, 36):
        table = str(PUBLISHED / f"mpich-2530.{ranks}.alltoall.txt")
        flags = f"--nodes 10 --ranks-per-node {ranks} --configuration mpich --campaign old"
        assert run("import", table, *flags.split()).code == 0
    (row,) = document(run, "old")["findings"]
    assert row["id"] == "COL-05"
    assert shows(row["seen"][0]["message"], "17616 us at 2 B", "10x32")


def test_a_job_is_searched_at_both_ends_whatever_its_size(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "job.out"
    with log.open("wb") as file:
        file.write(b"start\n")
        file.truncate(1 << 30)
        file.seek(0)
        file.write(b"step\n" * (1 << 20))
        file.seek(0, 2)
        file.write(b"\n" + ISSUE.encode())
    (row,) = document(run, log)["findings"]
    assert (row["id"], row["sure"]) == ("LCH-01", "matches")
    assert row["seen"][0]["of"] == "job.out"


def test_a_baseline_shows_where_single_copies_are_missing(run: Run, tmp_path: Path) -> None:
    head = "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n"
    for name, part in (("good", 1.0), ("bad", 2.0)):
        rows = [(1 << n, min(8.0 * (1 << n), 9e3) / (part if n > 15 else 1)) for n in range(22)]
        text = head + "".join(f"{size} {value:.2f}\n" for size, value in rows)
        (tmp_path / name).write_text(f"== Nodes: 1, nprocs: 2\n{text}")
    assert "CMA-03" not in ids(run, tmp_path / "bad", "--baseline", tmp_path / "good")
    for name in ("good", "bad"):
        flags = f"--nodes 1 --ranks-per-node 2 --configuration {name} --campaign copies"
        assert run("import", str(tmp_path / name), *flags.split()).code == 0
    (row,) = document(run, "copies")["findings"]
    assert row["id"] == "CMA-03"
    assert shows(row["confirm"], "--benchmark osu:bw")


def test_a_fix_of_several_variables_is_one_setting(run: Run, tmp_path: Path) -> None:
    line = "mm_posix.c:195 UCX ERROR open(/proc/29/fd/52) failed: Permission denied\n"
    (tmp_path / "job.out").write_text(line)
    (row,) = document(run, tmp_path / "job.out")["findings"]
    assert row["id"] == "UCX-03"
    assert len(shlex.split(row["setting"])) == 2
    assert shows(row["setting"], "--setting", "ucx-03:UCX_POSIX_USE_PROC_LINK=n UCX_TLS=^cma")
    assert row["confirm"].endswith(row["setting"])


def test_a_campaign_without_values_cannot_be_judged(run: Run, tmp_path: Path) -> None:
    record = campaign(1, rounds=1).campaign
    with Store(tmp_path / "store").writer() as writer:
        writer.add_campaign(record)
    ended = run("diagnose", record.id)
    assert ended.code == 6
    assert shows(ended.out, "without values")


def test_machines_that_are_mixed_are_named(run: Run, tmp_path: Path) -> None:
    library = NetLibrary("libfabric", "2.2.0", None)
    up = (NetDevice("cxi0", "cxi", "up"),)
    for name, fabrics in (("one", up), ("other", ())):
        here = a_machine(install("openmpi@5.0.8", libfabric=library))
        described = replace(here, hostname=name, fabrics=fabrics)
        (tmp_path / f"{name}.json").write_text(to_document(**machine_document(described)))
    answer = document(run, tmp_path)
    assert answer["machines"] == 2
    assert [row["id"] for row in answer["findings"]] == ["CXI-10", "LNX-08"]
    assert all(shows(row["seen"][0]["of"], "one", "openmpi") for row in answer["findings"])


def test_a_routine_of_one_profile_alone_is_named(run: Run) -> None:
    fft, driver = (DATA / "profiles" / f"{name}.mpiP" for name in ("fft", "driver"))
    answer = document(run, fft, "--baseline", driver)
    assert (answer["profiles"], [row["id"] for row in answer["findings"]]) == (2, ["VAL-04"])
    assert shows(answer["findings"][0]["seen"][0]["message"], "MPI_Alltoall", "driver.mpiP")
    assert ids(run, fft, driver) == []


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", "diagnose-empty"), (b" \n", "diagnose-empty"), (b"\x7fELF\0\0", "diagnose-binary")],
)
def test_what_is_no_text_is_refused(run: Run, tmp_path: Path, content: bytes, code: str) -> None:
    (tmp_path / "x").write_bytes(content)
    ended = run("diagnose", str(tmp_path / "x"))
    assert ended.code == 2
    assert shows(ended.err, code)


def test_a_baseline_needs_results(run: Run, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("nothing measured\n")
    table = str(PUBLISHED / "easyconfigs-25902.bw.txt")
    assert shows(run("diagnose", table, "--baseline", str(tmp_path / "log")).err, "no results")
    assert shows(run("diagnose", "--baseline", table).err, "--baseline", "FILE")


def test_tables_of_two_sizes_and_texts_without_issues_have_none(run: Run, tmp_path: Path) -> None:
    head = "# OSU MPI Latency Test v7.4\n# Size  Latency (us)\n"
    (tmp_path / "two").write_text(f"{head}1 1.0\n2 100.0\n")
    (tmp_path / "log").write_text("all is well\n")
    assert ids(run, tmp_path / "two", tmp_path / "log") == []
    assert shows(run("diagnose", str(tmp_path)).out, "No known issue", "1 curve")
