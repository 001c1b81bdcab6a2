"""`mpigraft compare` and `mpigraft report` on real stores, through the command line."""

from __future__ import annotations

import json
import math
import os
import random
import stat
from collections.abc import Callable
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

import mpigraft
from mpigraft.cli import report as command
from mpigraft.cli.compare import parse_margin
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import CampaignRecord, LaunchRecord, LaunchState, Measurement, Origin
from mpigraft.report import json as as_json
from mpigraft.store import Store
from tests.builders import records
from tests.builders.commands import Run
from tests.builders.messages import matches, shows
from tests.builders.outputs import assert_output
from tests.builders.reports import OLIVIA, single_data, small_data

SCHEMA = json.loads((Path(mpigraft.__file__).parent / "report/schemas/compare.json").read_text())
CAMPAIGN = CampaignRecord(
    "22222222-2222-4222-8222-222222222222", "nightly", "2026-02-03T04:05:06+00:00", Origin.RUN,
    7, 8, "k0", "{}", "0.1",
)  # fmt: skip
BASE, SLOW, FAST = "mpich@5/ofi-tcp", "openmpi@5/ofi-tcp", "openmpi@5/ob1-sm"
SIZES = tuple(1 << n for n in range(0, 20, 4))


def launch(number: int, slot: int, replica: int, key: str) -> LaunchRecord:
    return LaunchRecord(
        f"{number}-{slot}", CAMPAIGN.id, "a0", key, "1x2", number, slot, replica,
        CAMPAIGN.created, 1.5, 0, LaunchState.OK, (),
    )  # fmt: skip


@pytest.fixture
def measured(tmp_path: Path) -> Store:
    """8 rounds of three configurations: baseline, one 1.5 times slower, one twice as fast."""
    store = Store(tmp_path / "store")
    rng = random.Random(11)
    factors = {"k0": 1.0, "k1": 1.5, "k2": 0.5}
    names = {"k0": BASE, "k1": SLOW, "k2": FAST}
    with store.writer() as writer:
        records.add_campaign(writer, CAMPAIGN, names)
        for number in range(CAMPAIGN.rounds):
            for slot, (key, replica) in enumerate([*((k, 0) for k in factors), ("k0", 1)]):
                shift = factors[key] * math.exp(rng.gauss(0, 0.03))
                values = [
                    Measurement(records.LATENCY, "latency", size, 2.0 * shift + size / 4e3)
                    for size in SIZES
                ]
                writer.add_launch(launch(number, slot, replica, key), values, {})
    return store


def add_campaign(tmp_path: Path, factor: Callable[[int], float]) -> None:
    """10 rounds of a baseline and one other, `factor` times as slow at each of ten sizes."""
    rng = random.Random(5)
    with Store(tmp_path / "store").writer() as writer:
        records.add_campaign(writer, CAMPAIGN, {"k0": "mpi@k0", "k1": "mpi@k1"})
        for number, (slot, key) in product(range(10), enumerate(("k0", "k0", "k1"))):
            values = [
                Measurement(
                    records.LATENCY, "latency", 1 << n,
                    2.0 * math.exp(rng.gauss(0, 0.03)) * (factor(1 << n) if key == "k1" else 1),
                )
                for n in range(10)
            ]  # fmt: skip
            writer.add_launch(launch(number, slot, int(slot == 1), key), values, {})


# ------------------------------------------------------------------ compare


def test_compare_prints_tables_overview_and_answer(run: Run, measured: Store) -> None:
    ended = run("compare")
    assert ended.code == 0
    assert_output("compare/answer", ended.out)
    assert_output("compare/full", run("compare", "--full").out)
    assert "| size |" in run("compare", "--markdown", "--full").out
    assert_output("compare/answer.markdown", run("compare", "--markdown").out)
    assert run("compare", "nightly").out == run("compare", "2222").out == ended.out


def test_json_is_what_other_tools_rely_on(run: Run, measured: Store) -> None:
    document = json.loads(run("compare", "--json").out)
    jsonschema.validate(document, SCHEMA)
    assert document["schema"] == 2
    assert document["campaign"] == CAMPAIGN.id
    assert document["baseline"] == BASE
    fast, slow = document["comparisons"]
    assert (fast["configuration"], slow["configuration"]) == (FAST, SLOW)
    for key, value in {
        "benchmark": "native:latency", "metric": "latency", "unit": "us",
        "layout": "1x2", "buffers": "host",
    }.items():  # fmt: skip
        assert slow[key] == value
    cell = slow["cells"][0]
    assert {"size", "baseline", "value", "ratio", "low", "high", "verdict", "rounds"} <= set(cell)
    assert (cell["size"], cell["verdict"], cell["rounds"]) == (1, "slower", 8)
    assert cell["low"] < cell["ratio"] < cell["high"]


def test_json_of_every_kind_of_data_fits_the_schema() -> None:
    jsonschema.validate(json.loads(as_json.render_json(small_data())), SCHEMA)
    document = json.loads(as_json.render_json(single_data()))
    jsonschema.validate(document, SCHEMA)
    figures = [len(one["figures"]) for one in document["baseline_only"]]
    assert (document["comparisons"], figures) == ([], [4, 4])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema": 2}, SCHEMA)


def test_baseline_takes_the_beginning_of_one_id(run: Run, measured: Store) -> None:
    document = json.loads(run("compare", "--json", "--baseline", "openmpi@5/ob1").out)
    assert document["baseline"] == FAST
    assert {c["configuration"] for c in document["comparisons"]} == {BASE, SLOW}
    for wish in ("openmpi", "nothing-like-it"):
        ended = run("compare", "--baseline", wish)
        assert ended.code == 2
        assert BASE in ended.err or SLOW in ended.err


def test_fail_on_slower_says_which_and_exits_1(run: Run, measured: Store) -> None:
    ended = run("compare", "--fail-on", "slower", "--json")
    assert ended.code == 1
    json.loads(ended.out)
    assert_output("compare/slower", ended.err)
    cells = run("compare", "--fail-on", "slower-cell")
    assert cells.code == 1
    assert_output("compare/slower-cell", cells.err)


@pytest.mark.parametrize("direction", [1.0, 0.25])
def test_single_sizes_of_an_open_curve_fail_no_pipeline_that_asks_for_curves(
    run: Run, tmp_path: Path, direction: float
) -> None:
    """Two of ten sizes are slower; the others are as they were, or faster."""
    add_campaign(tmp_path, lambda size: 1.12 if size < 4 else direction)
    ended = run("compare", "--fail-on", "slower")
    assert ended.code == 6
    cells = run("compare", "--fail-on", "slower-cell")
    assert cells.code == 1
    assert_output(f"compare/open-curve-{direction:g}", ended.err + cells.err)


def test_fail_on_is_content_when_nothing_is_slower(run: Run, measured: Store) -> None:
    ended = run("compare", "--fail-on", "slower", "--baseline", "openmpi@5/ofi-tcp")
    assert ended.code == 0


def test_a_comparison_without_any_verdict_is_no_pass(run: Run, tmp_path: Path) -> None:
    olivia(run)
    for gate in ("slower", "slower-cell"):
        ended = run("compare", "--fail-on", gate)
        assert ended.code == 6
        assert matches(ended.err, "nothing-judged", curves=2)
    add_campaign(tmp_path, lambda size: 0.89 if size < 4 else 1.0)
    assert run("compare", CAMPAIGN.id, "--fail-on", "slower").code == 6
    cells = run("compare", CAMPAIGN.id, "--fail-on", "slower-cell")  # which asks for sizes
    assert cells.code == 0
    assert shows(cells.err, "of 10", "inconclusive")


@pytest.mark.parametrize(
    "words",
    [
        ("--fail-on", "faster"),
        ("--json", "--markdown"),
        ("--margin", "3"),
        ("--margin", "many"),
        ("no-such-campaign",),
    ],
)
def test_bad_usage_is_exit_2_with_the_mend(
    run: Run, measured: Store, words: tuple[str, ...]
) -> None:
    ended = run("compare", *words)
    assert ended.code == 2
    assert ended.out == ""


def test_margins_as_people_write_them() -> None:
    assert [parse_margin(t) for t in ("3%", "3 %", "0.03", "2.5%")] == [0.03, 0.03, 0.03, 0.025]
    for text in ("", "3", "0", "-1%", "100%", "3%x", "nan", "inf"):
        with pytest.raises(UsageError):
            parse_margin(text)


def test_a_wider_margin_changes_the_answer(run: Run, measured: Store) -> None:
    assert run("compare", "--fail-on", "slower", "--margin", "90%").code == 0


def olivia(run: Run) -> None:
    for name, file in (("cray-mpich@9.1.0", "cray"), ("eessi-2025.06", "eessi")):
        files = [str(f) for f in sorted(OLIVIA.glob(f"2026-{file}-*.txt"))]
        words = ("--configuration", name, "--nodes", "2", "--ranks-per-node", "1")
        assert run("import", *files, *words).code == 0


def test_imported_tables_compare_as_published(run: Run) -> None:
    olivia(run)
    document = json.loads(run("compare", "--json").out)
    jsonschema.validate(document, SCHEMA)
    (bibw,) = (c for c in document["comparisons"] if c["benchmark"] == "osu:bibw")
    cells = {c["size"]: c for c in bibw["cells"]}
    assert round(cells[8]["ratio"], 2) == 2.25
    assert round(cells[1 << 22]["ratio"], 2) == 1.02
    assert {(c["low"], c["high"], c["verdict"]) for c in cells.values()} == {
        (None, None, "inconclusive")
    }
    shown = run("compare").out
    assert_output("compare/imported", shown, date=shown.partition("imported on ")[2][:10])


def test_every_form_names_a_damaged_store_file(run: Run, measured: Store, tmp_path: Path) -> None:
    (measured.folder / "broken.sqlite").write_bytes(b"no database" * 100)
    out = tmp_path / "report.html"
    assert run("report", "-o", str(out)).code == 0
    for words in ((), ("--full",), ("--json",), ("--markdown",)):
        assert "broken" in run("compare", *words).out
    assert "broken.sqlite" in out.read_text(encoding="utf-8")


# ------------------------------------------------------------------ report


def test_report_writes_one_file_and_says_where(run: Run, measured: Store, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    ended = run("report", "-o", str(out))
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == f"wrote {out}\n"
    assert out.read_text(encoding="utf-8").startswith("<!doctype")
    assert stat.S_IMODE(out.stat().st_mode) & 0o600 == 0o600
    before = out.read_bytes()
    assert run("report", "-o", str(out)).code == 0
    assert out.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()].count("report.html") == 1
    assert not list(tmp_path.glob(".report*"))


def test_report_writes_figures_into_a_folder(run: Run, measured: Store, tmp_path: Path) -> None:
    page, folder = tmp_path / "page.html", tmp_path / "figures"
    before = os.umask(0)
    try:
        for _ in range(2):  # the second time over the first
            ended = run("report", "-o", str(page), "--figures", str(folder))
            assert ended.code == 0
    finally:
        os.umask(before)
    assert not any(path.stat().st_mode & 0o002 for path in (page, folder, *folder.iterdir()))
    files = sorted(path.name for path in folder.iterdir())
    assert shows(ended.err.splitlines()[-1], len(files), folder)
    assert any(shows(name.replace("-", " "), "latency", "1x2", "host") for name in files)
    assert {name.rpartition(".")[2] for name in files} == {"svg", "pdf"}
    for path in folder.glob("*.svg"):
        ElementTree.parse(path)
    assert all(path.read_bytes().startswith(b"%PDF-1.4") for path in folder.glob("*.pdf"))


@pytest.mark.usefixtures("measured")
def test_figures_go_nowhere_but_into_a_folder(run: Run, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("kept")
    page = tmp_path / "page.html"
    ended = run("report", "-o", str(page), "--figures", str(plain))
    assert (ended.code, plain.read_text(), page.exists()) == (2, "kept", False)
    assert str(plain) in ended.err
    ended = run("report", "-o", str(page), "--figures", str(tmp_path / "a" / "b"))
    assert (ended.code, page.exists()) == (2, False)


def test_report_follows_a_link_and_keeps_the_mode(
    run: Run, measured: Store, tmp_path: Path
) -> None:
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    assert run("report", "-o", str(link)).code == 0
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8").startswith("<!doctype")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_report_refuses_what_is_no_file(run: Run, measured: Store, tmp_path: Path) -> None:
    for target in (tmp_path, tmp_path / "nowhere/report.html", Path("/dev/null")):
        ended = run("report", "-o", str(target))
        assert ended.code == 2
        assert "what to do:" in ended.err


def test_a_report_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "report.html"
    out.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MissingError, match="No space left"):
        command.write(out, "new")
    assert out.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_report_of_imported_tables(run: Run, tmp_path: Path) -> None:
    olivia(run)
    out = tmp_path / "r.html"
    assert run("report", "-o", str(out)).code == 0
    assert shows(out.read_text(encoding="utf-8"), "every verdict", "inconclusive")
