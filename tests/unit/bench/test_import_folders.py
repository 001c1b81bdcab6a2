"""Folders of results whose names say what they are: what is taken, and what is not."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench import ImportOptions, Pattern
from mpigraft.bench.importing.pattern import DATES, read_date
from mpigraft.bench.importing.reading import ImportSource, read_results
from mpigraft.core.errors import UsageError
from mpigraft.store import Store
from tests.builders.commands import run_on_store as run
from tests.builders.messages import matches, shows
from tests.builders.outputs import assert_output

DATA = Path(__file__).parents[2] / "data"
ARCHER2 = DATA / "archer2"
NAMES = "{configuration}/osu_{benchmark}_{nodes}nodes_{ranks}processes_{date}.dat"
LATENCY = "# OSU MPI Latency Test v7.5\n# Size       Avg Latency(us)\n"
ROW = re.compile(r"\d+ +\d+\.\d\d\n?")


def results(folder: Path, *names: str) -> Path:
    """A folder of tables, each with a value of its own."""
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(LATENCY + f"1 {number + 1}.00\n")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def imported(store: Path, capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    """The document of an import, and its exit code."""
    code = run(store, "import", *words, "--json")
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return {**document, "code": code}


# ------------------------------------------------------------------ ARCHER2 with one command


def test_archer2_is_one_command_and_every_value_is_there(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(store, "import", ARCHER2, "--pattern", NAMES, "--machine", "archer2") == 0
    text = capsys.readouterr().out
    assert_output("import/archer2", text)
    assert all(len(line) <= 80 for line in text.splitlines())
    files = sorted(ARCHER2.rglob("*.dat"))
    rows = sum(bool(ROW.fullmatch(line)) for f in files for line in f.read_text().splitlines())
    assert rows == 917
    read = Store(store)
    (campaign,) = read.campaigns()
    values = read.values(campaign.id)
    assert len(values) == rows
    labels = {c.key: c.id for c in read.configurations(campaign.id)}
    assert set(labels.values()) == {"OFI", "UCX"}
    assert {row.layout for row in values} == {f"{2**n}x128" for n in range(8)}
    first, second = (
        {r.value for r in values if (labels[r.configuration], r.layout, r.benchmark, r.round)
         == ("OFI", "128x128", "osu:alltoall", number)} for number in (0, 1)
    )  # fmt: skip
    earlier = "OFI/osu_alltoall_128nodes_16384processes_202203081242.dat"
    assert first == {float(line.split()[1]) for line in rows_of(ARCHER2 / earlier)}
    assert second
    assert second != first
    started = {launch.started for launch in read.launches(campaign.id)}
    assert "2022-03-08T12:42:00.000+00:00" in started


def rows_of(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if ROW.fullmatch(line)]


def test_a_folder_twice_or_copied_adds_nothing(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(store, "import", ARCHER2, "--pattern", NAMES) == 0
    copy = tmp_path / "old/2022"
    shutil.copytree(ARCHER2, copy)
    capsys.readouterr()
    for folder in (ARCHER2, copy, copy / "UCX"):
        document = imported(store, capsys, folder, "--pattern", NAMES)
        assert (document["code"], document["counts"]["stored"]) == (0, 0)
        assert document["counts"]["known"] in {51, 24}
    renamed = results(tmp_path / "renamed")
    renamed.mkdir()
    shutil.copy(next((copy / "UCX").iterdir()), renamed / "some name")
    document = imported(store, capsys, renamed, "--configuration", "UCX")
    assert [f["state"] for f in document["files"]] == ["known"]
    assert len(Store(store).values(Store(store).campaign().id)) == 917


# ------------------------------------------------------------------ what is not taken


def test_a_bad_file_of_a_folder_stops_no_other(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = results(tmp_path / "r", "good.txt", "sub/good.txt")
    (folder / "bad.txt").write_text(LATENCY)
    (folder / "README.md").write_text("not a result")
    (folder / ".hidden").write_text(LATENCY + "1 9.00\n")
    (folder / "loop").symlink_to(folder)
    (folder / "nowhere").symlink_to("none")
    assert run(store, "import", folder, "--configuration", "x") == 2
    out, err = capsys.readouterr()
    assert shows(out, "2 files", "2 values", "1 refused", "1 skipped")
    assert shows(out, "skipped", "README.md")
    assert shows(err, "refused", f"{folder}/bad.txt", "bad.txt:1")
    assert shows(err, "1 of 4 files refused")
    document = imported(store, capsys, folder, "--configuration", "x")
    states = {f["file"]: f["state"] for f in document["files"]}
    assert states == {
        "bad.txt": "refused", "README.md": "skipped", "good.txt": "known", "sub/good.txt": "known"
    }  # fmt: skip
    assert document["code"] == 2


def test_a_file_outside_the_pattern_is_skipped_in_a_folder_and_refused_by_name(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = results(tmp_path / "r", "x_latency.txt", "latency-y.txt")
    words = ("--pattern", "{configuration}_{benchmark}.txt")
    document = imported(store, capsys, folder, *words)
    assert document["code"] == 0
    assert {f["file"]: f["state"] for f in document["files"]} == {
        "x_latency.txt": "stored", "latency-y.txt": "skipped"
    }  # fmt: skip
    document = imported(store, capsys, folder / "latency-y.txt", folder, *words)
    assert (document["code"], document["counts"]["refused"]) == (2, 1)


def test_a_folder_without_results_is_said_so(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(store, "import", tmp_path, "--configuration", "x") == 2
    assert matches(capsys.readouterr().err, "import-nothing")
    assert not store.exists()


def test_a_missing_name_for_many_files_is_one_message(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(store, "import", results(tmp_path / "r", "a", "b")) == 2
    assert capsys.readouterr().err.count("no name for what was measured") == 1


def test_a_dry_run_shows_the_same_and_stores_nothing(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (ARCHER2, "--pattern", NAMES)
    planned = imported(store, capsys, *words, "--dry-run")
    assert not store.exists()
    done = imported(store, capsys, *words)
    assert planned["files"] == done["files"]
    assert (planned["dry_run"], done["dry_run"]) == (True, False)
    again = imported(store, capsys, *words, "--dry-run")
    assert again["counts"]["known"] == 51


def test_damage_in_a_file_is_reported_by_file_and_line(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = results(tmp_path / "r", "a/one.txt")
    (folder / "a/one.txt").write_text(LATENCY + "1 1.00\n2 nan\n4 4.00\n" + LATENCY + "8 8.0")
    assert run(store, "import", folder, "--configuration", "x") == 2
    out = capsys.readouterr().out
    assert shows(out, "warning", "a/one.txt", "1 line", "a/one.txt:4")
    assert shows(out, "a/one.txt:8", "8 8.0")
    assert [row.size for row in Store(store).values(Store(store).campaign().id)] == [1, 4]


# ------------------------------------------------------------------ what names say


@pytest.mark.parametrize(
    ("name", "words", "conflict"),
    [
        ("bw_2n.txt", (), "its name says bw, and it holds latency"),
        ("latency_2n.txt", ("--nodes", "4", "--ranks-per-node", "1"),
         "nodes: --nodes says 4, and its name says 2"),
        ("latency_3n.txt", (), "nodes: its name says 3, and the file says 2"),
        ("latency_0n.txt", (), "nodes in its name is '0'"),
    ],
)  # fmt: skip
def test_a_name_that_contradicts_is_refused(
    store: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    words: tuple[str, ...],
    conflict: str,
) -> None:
    (tmp_path / name).write_text("== Nodes = 2\n== Processes = 8\n" + LATENCY + "1 1.00\n")
    pattern = ("--pattern", "{benchmark}_{nodes}n.txt", "--configuration", "x")
    assert run(store, "import", tmp_path / name, *pattern, *words) == 2
    assert conflict in capsys.readouterr().err
    assert not store.exists()


def test_fields_of_other_names_are_a_part_of_the_configuration(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = results(tmp_path / "r", "ofi.gcc.txt", "ofi.cce.txt")
    words = ("--pattern", "{configuration}.{compiler}.txt")
    document = imported(store, capsys, folder, *words)
    names = {f["file"]: f["configuration"] for f in document["files"]}
    assert names == {"ofi.gcc.txt": "ofi+compiler=gcc", "ofi.cce.txt": "ofi+compiler=cce"}


def test_rounds_follow_the_round_or_date_of_the_name(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = results(tmp_path / "r", "x_20250102.txt", "x_20240102.txt", "x_20260102.txt")
    words = ("--configuration", "x", "--campaign")
    imported(store, capsys, folder, *words, "dates", "--pattern", "x_{date}.txt")
    read = Store(store)
    assert [r.value for r in sorted(read.values(read.campaign("dates").id), key=lambda r: r.round)
            ] == [2.0, 1.0, 3.0]  # fmt: skip
    folder = results(tmp_path / "n", "run10.txt", "run2.txt", "run9.txt")
    document = imported(store, capsys, folder, *words, "runs", "--pattern", "run{round}.txt")
    assert [(f["file"], f["rounds"]) for f in document["files"]] == [
        ("run2.txt", [3]), ("run9.txt", [10]), ("run10.txt", [11])
    ]  # fmt: skip


def test_machines_of_a_pattern_are_campaigns(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = results(tmp_path / "r", "lumi/a.txt", "olivia/a.txt")
    words = ("--configuration", "x", "--pattern", "{machine}/*.txt")
    document = imported(store, capsys, folder, *words)
    assert document["campaigns"] == ["lumi", "olivia"]
    refused = imported(store, capsys, folder, *words, "--campaign", "one")
    assert (refused["counts"]["stored"], refused["counts"]["refused"]) == (1, 1)


def test_a_name_is_text_and_nothing_else(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = results(tmp_path / "r", "a\x1b[31mb\nforged: 9 values", "[bold]x", "..x")
    (folder / "..x").rename(folder / "x..")
    assert run(store, "--verbose", "import", folder, "--configuration", "x") == 0
    out = capsys.readouterr().out
    assert shows(out, r"a\x1b[31mb\x0aforged", "1 value")
    assert shows(out, "[bold]x", "1 value")
    assert "\x1b" not in out
    words = ("--pattern", "{configuration}: 9 values")
    assert run(store, "import", folder, *words) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["compiler", "gpu", "run", "cluster", "f1", "note", "branch"])
def test_a_field_may_have_a_name_of_its_own(name: str) -> None:
    assert Pattern.parse(f"{{benchmark}}_{{{name}}}.dat").fields == ("benchmark", name)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("osu.dat", "no field"), ("{a}{b}", "side by side"), ("{a}*{b}", "side by side"),
        ("{a}-{a}", "twice"), ("{A}", "no field"), ("{a}{", "a brace"), ("{a}-{b!r}", "a brace"),
        ("-".join(f"{{f{n}}}" for n in range(13)), "more than 12"),
        ("{a}" + "?" * 400, "more than 400 characters"),
        ("{benchmark}_{node}.dat", "{node} is no field of it, and {nodes} is"),
        ("{benchmark}_{rank}.dat", "{ranks} is"), ("{benchmarks}.dat", "{benchmark} is"),
        ("a_{num_procs}.dat", "{ranks} is"), ("a_{num_nodes}.dat", "{nodes} is"),
        ("a_{np}.dat", "{ranks} is"), ("a_{ppn}.dat", "{ranks_per_node} is"),
        ("a_{allocations}.dat", "{allocation} is"), ("{config}.dat", "{configuration} is"),
    ],
)  # fmt: skip
def test_a_pattern_that_cannot_be_read_is_refused(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        Pattern.parse(text)


@given(
    st.from_regex(r"[a-z][a-z_]{0,12}", fullmatch=True).filter(lambda b: "__" not in b),
    st.integers(1, 10**6), st.integers(1, 10**6),
    st.datetimes().filter(lambda d: d.year >= 1000),
)  # fmt: skip
def test_what_a_name_was_made_of_is_read_back(
    benchmark: str, nodes: int, ranks: int, moment: Any
) -> None:
    name = f"osu_{benchmark}_{nodes}nodes_{ranks}processes_{moment:%Y%m%d%H%M}.dat"
    fields = Pattern.parse(NAMES).fields_of(Path("a/UCX") / name)
    assert fields
    assert (fields.configuration, fields.benchmark) == ("UCX", benchmark)
    assert (fields.nodes, fields.ranks) == (nodes, ranks)
    assert fields.started == moment.strftime("%Y-%m-%dT%H:%M:00.000+00:00")


@given(st.sampled_from(DATES), st.datetimes().filter(lambda d: d.year >= 1000))
def test_every_form_of_date_is_read_as_it_was_written(form: str, moment: Any) -> None:
    text = moment.strftime(form)
    again = type(moment).fromisoformat(read_date(Path("x"), text))
    assert again.strftime(form) == text


def test_no_name_takes_long_to_match() -> None:
    """As a regular expression this would not end within a lifetime."""
    pattern = Pattern.parse("{a}_{b}_{c}_{d}_{e}_{f}_{g}_{h}.dat")
    assert pattern.fields_of(Path("_" * 250 + "x")) is None


@pytest.mark.parametrize(
    ("pattern", "name", "fields"),
    [
        ("{a}_*.dat", "x_y.z_1.dat", {"a": "x"}),
        ("{a}?.dat", "xyz.dat", {"a": "xy"}),
        ("{a}-{b}.txt", "1-2-3.txt", {"a": "1", "b": "2-3"}),
        ("*{a}.x", "abc.x", {"a": "abc"}),
        ("{a}.x", ".x", None),
        ("{a}/y", "y", None),
    ],
)
def test_a_field_takes_as_little_as_it_can(
    pattern: str, name: str, fields: dict[str, str] | None
) -> None:
    found = Pattern.parse(pattern).fields_of(Path("/") / name)
    assert (dict(found.labels) if found else None) == fields


@given(st.text(max_size=40), st.text(max_size=20))
def test_any_name_is_matched_or_refused(name: str, text: str) -> None:
    try:
        pattern = Pattern.parse("{benchmark}_" + text + "_{nodes}.{x}")
        pattern.fields_of(Path("folder") / name.replace("/", "").replace("\0", ""))
    except UsageError as error:
        assert error.message.isprintable() or error.code == "pattern-invalid"  # noqa: PT017


def test_buffers_of_a_pattern_are_read_from_the_content() -> None:
    path = DATA / "olivia/2025-cray-mpich-8.1.32.bibw.txt"
    fields = Pattern.parse("{date}-{configuration}.{benchmark}.txt").fields_of(path)
    assert fields
    assert (fields.configuration, fields.benchmark) == ("cray-mpich-8.1.32", "bibw")
    read = read_results(ImportSource.of(path, fields=fields), ImportOptions())
    assert isinstance(read, tuple)
    (table,) = read
    assert (table.buffers, table.started[:4]) == ("cuda", "2025")


# ------------------------------------------------------------------ years of files


def test_a_campaign_for_each_day_makes_a_history(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = results(
        tmp_path / "r", "a_2022-03-01.dat", "b_2022-03-01.dat", "a_2023-04-02.dat", "a_undated.dat"
    )
    words = (folder, "--machine", "m", "--campaign", "m-{date}")
    dated = imported(store, capsys, *words, "--pattern", "{configuration}_{date}.dat")
    assert dated["code"] == 0  # the last has another name, and is skipped
    campaigns = {c.name: c.created for c in Store(store).campaigns()}
    assert campaigns == {
        "m-2022-03-01": "2022-03-01T00:00:00+00:00",
        "m-2023-04-02": "2023-04-02T00:00:00+00:00",
    }
    assert run(store, "history", "--json") == 0
    lines = json.loads(capsys.readouterr().out)
    assert "2022-03-01" in json.dumps(lines)
    again = imported(store, capsys, *words, "--pattern", "{configuration}_*.dat")
    refused = [file for file in again["files"] if file["state"] == "refused"]
    assert {file["code"] for file in refused} == {"campaign-date-unknown"}


def test_what_captions_say_is_of_the_whole_campaign(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = results(tmp_path / "r", "a.dat", "b.dat")
    words = ("--configuration", "x", "--campaign", "c")
    first = imported(store, capsys, folder / "a.dat", *words, "--about", "GH200, Slingshot 11")
    assert first["code"] == 0
    assert shows(json.loads(Store(store).campaign("c").plan)["about"], "GH200", "Slingshot 11")
    assert imported(store, capsys, folder / "b.dat", *words)["code"] == 0
    other = imported(store, capsys, folder / "b.dat", *words, "--about", "MI250X")
    assert [file["code"] for file in other["files"]] == ["campaign-about"]
