"""Exported campaigns: what was exported imports again unchanged, and nothing else does."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpigraft.bench import ImportedFile, ImportOptions, import_files, write_export
from mpigraft.bench.exchange.columns import COLUMNS, NAMES
from mpigraft.bench.exchange.text import FORMULA, READERS
from mpigraft.bench.importing.reading import ImportSource
from mpigraft.core.errors import MissingError
from mpigraft.core.model import (
    METRICS,
    Benchmark,
    ConfigurationRecord,
    Evidence,
    EvidenceRecord,
    Finding,
    LaunchState,
    Level,
    Measurement,
    Origin,
)
from mpigraft.store import Store
from tests.builders import records
from tests.builders.commands import run_on_store as run
from tests.builders.messages import matches, shows

DATA = Path(__file__).parents[2] / "data"
FORMATS = ("csv", "json", "parquet")
CAMPAIGN = records.CAMPAIGN

TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cf", "Zl", "Zp", "Co", "Cn")),
    min_size=1, max_size=12,
).filter(str.isprintable)  # fmt: skip
NAME = TEXT | st.sampled_from(["=1+1", "-2", "+3", "@x", "'quoted", "a,b", 'a"b', "é", "| x"])
FIGURE = st.floats(0, 1e300, allow_nan=False)
MEASUREMENT = st.builds(
    Measurement,
    st.builds(Benchmark, st.sampled_from(["osu", "app", "native"]), st.sampled_from(["bw", "x.y"]),
              st.sampled_from([(), (("pairs", "4"),)])),
    st.sampled_from([*METRICS, "rate [Gflop/s] higher"]), st.integers(0, 2**63 - 1), FIGURE,
    *[st.none() | FIGURE] * 5, st.none() | st.integers(0, 2**63 - 1), st.none() | st.booleans(),
    st.lists(FIGURE, max_size=3).map(tuple), st.none() | FIGURE,
)  # fmt: skip


def exported(store: Store, form: str) -> bytes:
    file = io.BytesIO()
    write_export(store, store.campaign(), form, file)
    return file.getvalue()


def bring(folder: Path, data: bytes, name: str = "export") -> ImportedFile:
    path = folder / name
    path.write_bytes(data)
    (done,) = import_files(Store(folder / "again"), [ImportSource.of(path)], ImportOptions())
    return done


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two launches with two values each, and one that failed."""
    store = Store(tmp_path / "store")
    with store.writer() as writer:
        writer.add_campaign(CAMPAIGN)
        writer.add_configuration(ConfigurationRecord(CAMPAIGN.id, "k0", "=cmd|x", '{"a":1}'))
        writer.add_allocation(replace(records.ALLOCATION, hosts=("n1", "n2"), job="77"))
        for number in range(2):
            values = [Measurement(records.LATENCY, "latency", size, size + 0.1) for size in (1, 2)]
            writer.add_launch(records.launch(number), values, {"stdout": b"text"})
        failed = records.launch(3, state=LaunchState.FAILED, exit_code=-9)
        writer.add_launch(failed, [], {})
    return store


# ------------------------------------------------------------------ unchanged


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=12)
@given(data=st.data())
def test_what_was_exported_imports_again_unchanged(form: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = Store(folder / "store")
        labels = data.draw(st.lists(NAME, min_size=1, max_size=3))
        with store.writer() as writer:
            writer.add_campaign(replace(CAMPAIGN, name=data.draw(NAME), origin=Origin.IMPORT))
            for number, label in enumerate(labels):
                writer.add_configuration(
                    ConfigurationRecord(CAMPAIGN.id, f"k{number}", label, '{"x":[1]}', "cuda")
                )
            writer.add_allocation(replace(records.ALLOCATION, job=data.draw(NAME)))
            launches = data.draw(st.lists(st.lists(MEASUREMENT, max_size=3), max_size=4))
            for number, measurements in enumerate(launches):
                finding = Finding(Level.ERROR, "code", data.draw(NAME) + "\nline")
                key = f"k{number % len(labels)}"
                launch = records.launch(number, configuration=key, findings=(finding,))
                writer.add_launch(launch, measurements, {})
        before = exported(store, form)
        done = bring(folder, before)
        assert done.error is None
        again = Store(folder / "again")
        assert exported(again, form) == before
        assert again.campaigns() == store.campaigns()
        assert again.launches(CAMPAIGN.id) == store.launches(CAMPAIGN.id)
        assert again.values(CAMPAIGN.id) == store.values(CAMPAIGN.id)
        assert again.configurations(CAMPAIGN.id) == store.configurations(CAMPAIGN.id)
        for launch in store.launches(CAMPAIGN.id):
            assert again.measurements(launch.id) == store.measurements(launch.id)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("version", ["version2-ranks", "version3", "version5"])
def test_stores_of_older_versions_export_with_evidence_and_conditions(
    tmp_path: Path, version: str, form: str
) -> None:
    (tmp_path / "store").mkdir()
    shutil.copy(DATA / f"store/{version}.sqlite", tmp_path / "store")
    store = Store(tmp_path / "store")
    before = exported(store, form)
    assert bring(tmp_path, before).error is None
    again = Store(tmp_path / "again")
    assert exported(again, form) == before
    identity = store.campaign().id
    assert again.evidence(identity, every=True) == store.evidence(identity, every=True)
    assert again.launches(identity) == store.launches(identity)


def test_an_export_twice_or_beside_the_original_adds_nothing(store: Store, tmp_path: Path) -> None:
    data = exported(store, "csv")
    assert bring(tmp_path, data).launches == 3
    for form in FORMATS:
        assert bring(tmp_path, exported(store, form), form).state == "known"
    path = tmp_path / "export"
    (done,) = import_files(store, [ImportSource.of(path)], ImportOptions())
    assert (done.state, done.values) == ("known", 0)
    assert len(Store(store.folder).values(CAMPAIGN.id)) == 4


def test_a_campaign_without_a_launch_is_a_row(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    with store.writer() as writer:
        writer.add_campaign(CAMPAIGN)
        writer.add_evidence(
            EvidenceRecord(CAMPAIGN.id, "k0", "1x2", Evidence("a", "b", (), (), ()))
        )
    for form in FORMATS:
        bring(tmp_path, exported(store, form))
        again = Store(tmp_path / "again")
        assert again.campaigns() == (CAMPAIGN,)
        assert [e.evidence.ran for e in again.evidence(CAMPAIGN.id)] == ["b"]


# ------------------------------------------------------------------ what the columns hold


def test_a_row_says_where_its_value_comes_from_and_in_which_unit(store: Store) -> None:
    text = exported(store, "csv").decode()
    first, *_, last = csv.DictReader(io.StringIO(text))
    assert first["configuration"] == "'=cmd|x"
    wanted = {
        "campaign": "nightly", "origin": "run", "baseline": "true", "job": "77", "hosts": "n1,n2",
        "layout": "1x2", "nodes": "1", "ranks_per_node": "2", "round": "1", "state": "ok",
        "benchmark": "native:latency", "metric": "latency", "unit": "us", "better": "lower",
        "size_bytes": "1", "value": "1.1",
    }  # fmt: skip
    assert {name: first[name] for name in wanted} == wanted
    assert (last["state"], last["value"]) == ("failed", "")


def test_a_unit_is_no_formula() -> None:
    """Exports of before wrote an apostrophe before a percent sign."""
    for text in ("%", "'%"):
        assert READERS["text"](text) == "%"
    assert "%" not in FORMULA


@given(st.lists(NAME | st.sampled_from(FORMULA).map(lambda c: c + "x"), min_size=1, max_size=3))
def test_no_cell_is_a_formula_to_a_spreadsheet(labels: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        with store.writer() as writer:
            writer.add_campaign(replace(CAMPAIGN, name=labels[0].strip() or "x"))
            for number, label in enumerate(labels):
                writer.add_configuration(
                    ConfigurationRecord(CAMPAIGN.id, f"k{number}", label, "{}")
                )
                launch = records.launch(number, configuration=f"k{number}")
                writer.add_launch(launch, [Measurement(records.LATENCY, "latency", 1, 1.0)], {})
        rows = list(csv.reader(io.StringIO(exported(store, "csv").decode(), newline="")))
    kinds = {c.name: c.kind for c in COLUMNS}
    for row in rows[1:]:
        for name, cell in zip(NAMES, row, strict=True):
            assert kinds[name] in ("whole", "number") or not cell.startswith(tuple("=+-@\t\r|%"))


def test_a_spreadsheet_may_have_been_there(store: Store, tmp_path: Path) -> None:
    """A byte order mark, other ends of lines, TRUE, a column more, the columns in another order."""
    rows = list(csv.DictReader(io.StringIO(exported(store, "csv").decode(), newline="")))
    file = io.StringIO()
    order = ["mpigraft_export", "note", *reversed(NAMES[1:])]
    writer = csv.DictWriter(file, order, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows({**r, "note": "mine", "baseline": r["baseline"].upper()} for r in rows)
    done = bring(tmp_path, b"\xef\xbb\xbf" + file.getvalue().encode())
    assert (done.error, done.launches, done.values) == (None, 3, 4)


# ------------------------------------------------------------------ what is refused


def changed(store: Store, row: int, **cells: Any) -> bytes:
    """The JSON export with cells of one row (from 0) replaced; None removes a cell."""
    document = json.loads(exported(store, "json"))
    target = document["rows"][row]
    for name, value in cells.items():
        target[name] = value
        if value is None:
            del target[name]
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("row", "cells", "problem"),
    [
        (1, {"value": float("nan")}, "row 2: value is nan"),
        (1, {"value": -1.0}, "row 2: value is -1.0"),
        (1, {"value": "1"}, "row 2: value is '1', not a number"),
        (1, {"value": None}, "row 2: it has no value"),
        (1, {"size_bytes": 2**63}, "row 2: size_bytes is"),
        (1, {"size_bytes": 1.5}, "row 2: size_bytes is"),
        (1, {"metric": "speed"}, "row 2: its metric is 'speed'"),
        (1, {"benchmark": "osu:bw,b=1,a=2"}, "row 2: its benchmark is"),
        (1, {"benchmark": "a\x1b[1m"}, "row 2: its benchmark is"),
        (1, {"valid": 3}, "row 2: valid is neither"),
        (1, {"samples": [1, "x"]}, "row 2: a sample is 'x'"),
        (1, {"launch": "another"}, "row 2: the first row of its launch"),
        (1, {"mpigraft_export": 2}, "it is of version 2; this mpigraft reads 1"),
        (0, {"records": None}, "row 1: the first row of its launch"),
        (0, {"records": {"launch": 3}}, "row 1"),
        (0, {"records": {"campaign": {"id": "x"}}}, "row 1"),
        (2, {"records": {"campaigns": 3}}, "row 3: the first row of its launch"),
    ],
)
def test_a_changed_row_refuses_the_whole_file(
    store: Store, tmp_path: Path, row: int, cells: dict[str, Any], problem: str
) -> None:
    done = bring(tmp_path, changed(store, row, **cells))
    assert done.error
    assert problem in done.error.message
    assert not list((tmp_path / "again").glob("*.sqlite"))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda r: r["campaign"].update(name="a\x1b[1m"), "control characters"),
        (lambda r: r["campaign"].update(name="a\nb"), "a name in it is"),
        (lambda r: r["campaign"].update(id="../../etc"), "id or plan"),
        (lambda r: r["campaign"].update(plan="[1]"), "id or plan"),
        (lambda r: r["campaign"].update(plan="{"), "id or plan"),
        (lambda r: r["launch"].update(campaign="other"), "two campaigns"),
        (lambda r: r["configurations"][0].update(campaign="other"), "two campaigns"),
        (lambda r: r["configurations"][0].update(id="x" * 5000), "a name in it is"),
        (lambda r: r["launch"].update(round=-1), "impossible round"),
        (lambda r: r["launch"].update(layout="1x1\n2x2"), "a name in it is"),
        (lambda r: r.pop("campaign"), "records of the campaign, is missing"),
    ],
)
def test_changed_records_are_refused(
    store: Store, tmp_path: Path, change: Any, problem: str
) -> None:
    document = json.loads(exported(store, "json"))
    kept = document["rows"][0]["records"]
    del kept["digests"]  # as versions before wrote it
    change(kept)
    done = bring(tmp_path, json.dumps(document).encode())
    assert done.error
    assert problem in done.error.message


@pytest.mark.parametrize("form", FORMATS)
@given(data=st.data())
@settings(max_examples=30)
def test_no_damage_makes_a_reader_fall_over(
    form: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / f"damage-{form}"
    folder.mkdir(exist_ok=True)
    store = Store(folder / "store")
    if not store.campaigns():
        with store.writer() as writer:
            writer.add_campaign(CAMPAIGN)
            values = [Measurement(records.LATENCY, "latency", 1, 1.0)]
            writer.add_launch(records.launch(), values, {})
    whole = bytearray(exported(store, form))
    at = data.draw(st.integers(0, len(whole)))
    whole[at : at + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=20))
    done = bring(folder, bytes(whole))
    assert done.state in ("stored", "known", "refused")
    shutil.rmtree(folder / "again", ignore_errors=True)


def test_flags_say_nothing_of_an_export(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(exported(store, "csv"))
    (done,) = import_files(store, [ImportSource.of(path)], ImportOptions(campaign="other"))
    assert done.error
    assert matches(done.error, "import-conflict", conflict="it says so itself")


# ------------------------------------------------------------------ the command


def test_the_command_exports_by_the_suffix_and_imports_by_the_content(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for form in FORMATS:
        path = tmp_path / f"x.{form}"
        assert run(store.folder, "export", "nightly", "-o", path) == 0
        assert path.read_bytes() == exported(store, form)
        assert run(tmp_path / form, "import", path) == 0
        assert "x." + form + ": campaign nightly, 3 launches, 4 values" in capfd.readouterr().out
    assert run(store.folder, "export") == 0
    assert capfd.readouterr().out.encode() == exported(store, "csv")
    assert run(store.folder, "export", "-o", tmp_path / "x.txt") == 2
    assert run(store.folder, "export", "-o", tmp_path / "x.txt", "--format", "json") == 0
    assert run(store.folder, "export", "-o", tmp_path / "none/x.csv") == 2


def test_export_says_what_it_leaves_behind(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launches = store.launches(store.campaign().id)
    outputs = sum(len(launch.artefacts) for launch in launches)
    assert outputs
    assert run(store.folder, "export", "-o", tmp_path / "all.csv") == 0
    err = capsys.readouterr().err
    values = sum(len(m) for _, m in store.measured(store.campaign().id))
    assert shows(err, "all.csv", values, len(launches))
    assert f"{outputs} output" in err
    assert f"stay in {store.folder}" in err
    assert run(tmp_path / "new", "import", tmp_path / "all.csv") == 0
    capsys.readouterr()
    again = Store(tmp_path / "new")
    with pytest.raises(MissingError):
        again.artefact(again.launches(again.campaign().id)[0].artefacts[0][1])


def test_parquet_says_what_to_install(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "x.parquet"
    assert run(store.folder, "export", "-o", path) == 0
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run(store.folder, "export", "-o", tmp_path / "y.parquet") == 3
    assert not (tmp_path / "y.parquet").exists()
    assert matches(capsys.readouterr().err, "parquet-missing")
    assert run(tmp_path / "again", "import", path) == 3


def test_a_damaged_file_of_the_store_is_reported_and_the_others_are_exported(
    store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (store.folder / "damaged.sqlite").write_bytes(b"SQLite format 3\0" + bytes(200))
    assert run(store.folder, "export", "-o", tmp_path / "x.csv") == 0
    assert matches(capfd.readouterr().err, "store-file-unreadable", path="damaged.sqlite")
    assert (tmp_path / "x.csv").read_bytes() == exported(Store(store.folder), "csv")


def test_launches_of_several_files_have_one_order(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for number in (3, 1, 2):
        with store.writer() as writer:
            writer.add_campaign(CAMPAIGN)
            values = [Measurement(records.LATENCY, "latency", 1, float(number))]
            writer.add_launch(records.launch(number), values, {})
    measured = [m.value for _, ms in store.measured(CAMPAIGN.id) for m in ms]
    assert measured == [1.0, 2.0, 3.0]
