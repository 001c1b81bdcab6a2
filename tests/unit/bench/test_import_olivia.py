"""Published tables through the whole command line: import, compare, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mpigraft.cli import main

OLIVIA = Path(__file__).parents[2] / "data/olivia"
STACKS = {"2025": ("cray-mpich-8.1.32", "eessi-2023.06-openmpi-4.1.6"),
          "2026": ("cray-mpich-9.1.0", "eessi-2025.06-openmpi-5.0.3")}  # fmt: skip
MIB_4 = 4 * 1024 * 1024


def run(store: Path, *words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["--store", str(store), *words])
    assert not ended.value.code


def compare(store: Path, year: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    for stack in STACKS[year]:
        files = sorted(str(path) for path in OLIVIA.glob(f"{year}-{stack}.*.txt"))
        assert len(files) == 2
        run(store, "import", *files, "--configuration", stack, "--campaign", year,
            "--machine", "olivia", "--nodes", "2", "--ranks-per-node", "1")  # fmt: skip
    capsys.readouterr()
    run(store, "compare", year, "--json")
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(("year", "at_8", "at_4_mib"), [("2025", 0.17, 0.99), ("2026", 2.25, 1.02)])
def test_bibw_of_the_stack_against_cray_mpich(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], year: str, at_8: float, at_4_mib: float
) -> None:
    told = compare(tmp_path, year, capsys)
    assert told["baseline"] == STACKS[year][0]  # the first that was imported
    (bibw,) = (g for g in told["comparisons"] if g["benchmark"] == "osu:bibw")
    assert (bibw["configuration"], bibw["layout"], bibw["buffers"], bibw["unit"]) == (
        STACKS[year][1], "2x1", "cuda", "MB/s",
    )  # fmt: skip
    cells = {cell["size"]: cell for cell in bibw["cells"]}
    assert len(cells) == 23
    assert round(cells[8]["ratio"], 2) == at_8
    assert round(cells[MIB_4]["ratio"], 2) == at_4_mib


def test_a_single_run_has_no_interval_and_the_verdict_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = compare(tmp_path, "2025", capsys)
    cells = [cell for group in told["comparisons"] for cell in group["cells"]]
    assert len(cells) == 46
    assert {(c["low"], c["high"], c["verdict"], c["rounds"]) for c in cells} == {
        (None, None, "inconclusive", 1)
    }
    run(tmp_path, "compare", "2025")
    assert "imported runs did not alternate" in " ".join(capsys.readouterr().out.split())


def test_the_other_stack_can_be_the_baseline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compare(tmp_path, "2026", capsys)
    run(tmp_path, "compare", "2026", "--baseline", "eessi", "--json")
    told = json.loads(capsys.readouterr().out)
    (bibw,) = (g for g in told["comparisons"] if g["benchmark"] == "osu:bibw")
    ratio = next(cell["ratio"] for cell in bibw["cells"] if cell["size"] == 8)
    assert round(1 / ratio, 2) == 2.25


def test_the_report_of_an_import_says_that_nothing_was_proven(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compare(tmp_path, "2025", capsys)
    page = tmp_path / "report.html"
    run(tmp_path, "report", "2025", "-o", str(page))
    text = page.read_text()
    assert STACKS["2025"][1] in text
    assert "no evidence" in text.lower()
