"""Exports of which somebody changed a cell."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.model import Origin
from mpigraft.store import Store
from tests.builders.commands import run_on_store as run
from tests.builders.messages import matches, shows

TABLE = "# OSU MPI Latency Test v7.5\n# Size       Avg Latency(us)\n1     28.16\n2     29.00\n"
Change = Callable[[list[dict[str, str]]], object]


@pytest.fixture
def export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A campaign of two launches as CSV."""
    store = tmp_path / "store"
    for name, text in (("a", TABLE), ("b", TABLE.replace("28", "27"))):
        (tmp_path / name).write_text(text)
        assert run(store, "import", tmp_path / name, "--configuration", name, "--machine", "m") == 0
    assert run(store, "export", "m", "--output", tmp_path / "m.csv") == 0
    capsys.readouterr()
    return tmp_path / "m.csv"


def edit(export: Path, change: Change) -> None:
    rows = list(csv.DictReader(io.StringIO(export.read_text(), newline="")))
    names = list(rows[0])
    change(rows)
    with export.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)


def change_records(rows: list[dict[str, str]]) -> None:
    document: dict[str, Any] = json.loads(rows[0]["records"])
    document["launch"]["layout"] = "2x1"
    rows[0]["records"] = json.dumps(document)


@pytest.mark.parametrize(
    ("change", "row"),
    [
        (lambda rows: rows[0].update(value="0.001"), 1),
        (lambda rows: rows[1].update(value="0.001"), 2),
        (lambda rows: rows[1].update(mean=""), 2),
        (lambda rows: rows[3].update(size_bytes="4"), 4),
        (lambda rows: rows[3].update(layout="4x1"), 4),
        (lambda rows: rows[3].update(configuration="c"), 4),
        (lambda rows: rows.insert(2, rows[1]), 3),
        (change_records, 1),
    ],
)
def test_a_changed_cell_is_refused_with_its_row(
    export: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Change, row: int
) -> None:
    edit(export, change)
    assert run(tmp_path / "again", "import", export) == 2
    assert shows(shown := capsys.readouterr().err, "m.csv", f"row {row}")
    assert matches(shown, "export-edited")
    assert not list((tmp_path / "again").glob("*.sqlite"))


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows,
        lambda rows: rows.pop(1),
        lambda rows: [row.update(value=f"{float(row['value']):.6f}") for row in rows],
        lambda rows: [row.update(baseline=row["baseline"].upper()) for row in rows],
    ],
)
def test_a_spreadsheet_may_write_the_same_cells_in_its_own_way(
    export: Path, tmp_path: Path, change: Change
) -> None:
    edit(export, change)
    assert run(tmp_path / "again", "import", export) == 0


def test_edited_values_stand_beside_the_measured_ones(export: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    edit(export, lambda rows: rows[0].update(value="0.001"))
    assert run(folder, "import", export, "--edited") == 0
    assert run(folder, "import", export, "--edited") == 0  # again: nothing new
    store = Store(folder)
    assert sorted(c.name for c in store.campaigns()) == ["m", "m-edited"]
    edited = store.campaign("m-edited")
    assert (edited.origin, json.loads(edited.plan)["edited"]) == (Origin.IMPORT, True)
    values = [[v.value for v in store.values(store.campaign(n).id)] for n in ("m", "m-edited")]
    assert values == [[28.16, 29.0, 27.16, 29.0], [0.001, 29.0, 27.16, 29.0]]


def test_exports_of_before_have_no_digests(export: Path, tmp_path: Path) -> None:
    def before(rows: list[dict[str, str]]) -> None:
        for row in rows:
            if row["records"]:
                document = json.loads(row["records"])
                del document["digest"], document["digests"]
                row["records"] = json.dumps(document)

    edit(export, before)
    assert run(tmp_path / "again", "import", export) == 0
