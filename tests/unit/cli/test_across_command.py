"""`mpigraft compare OLD NEW` on real stores, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import mpigraft
from mpigraft.store import Store
from tests.builders.commands import Run
from tests.builders.messages import shows
from tests.builders.outputs import assert_output
from tests.builders.overtime import MACHINE, MPICH, campaign, identity, keep

SCHEMAS = Path(mpigraft.__file__).parent / "report/schemas"
NEWER = {**MACHINE, "kernel": "6.12.1"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Three nights: the second as the first, the third with another kernel and Open MPI, which is
    1.3 times slower."""
    newer = {"k0": MPICH, "k2": "openmpi@5.0.12/ob1-sm"}
    return keep(
        Store(tmp_path / "store"),
        campaign(1),
        campaign(2),
        campaign(
            3,
            names=newer,
            level=lambda name, _: 1.3 if name.startswith("openmpi") else 1.0,
            machine=NEWER,
        ),
    )


@pytest.mark.usefixtures("store")
def test_two_campaigns_are_compared_with_what_changed(run: Run) -> None:
    ended = run("compare", "night1", "night3", "--full")
    assert ended.code == 0
    assert_output("compare/campaigns", ended.out)
    assert max(map(len, ended.out.splitlines())) <= 80


@pytest.mark.usefixtures("store")
def test_equal_campaigns_say_so(run: Run) -> None:
    ended = run("compare", "night1", "night2", "--fail-on", "slower")
    assert ended.code == 0
    assert_output("compare/equal-campaigns", ended.out)


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("columns", [60, 80])
def test_two_campaigns_have_one_screen(
    run: Run, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    ended = run("compare", "night1", "night3")
    lines = ended.out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= columns
    blank = lines.index("")
    assert shows(lines[blank + 1], "Slower", "night1", "1 of 2")
    assert shows(" ".join(lines), "changed:", "kernel", NEWER["kernel"], "MPI", "openmpi@5.0.12")
    assert shows(lines, "1.30x slower")
    assert shows(lines[-1], "--full")


def test_undecided_curves_are_said_once(run: Run, tmp_path: Path) -> None:
    keep(Store(tmp_path / "store"), campaign(1, spread=0.5), campaign(2, spread=0.5))
    out = run("compare", "night1", "night2").out
    assert out.count("No curve") == 1
    assert shows(out, "No curve is decided", "0 of 2 curves")


@pytest.mark.usefixtures("store")
def test_a_slower_campaign_fails_a_pipeline(run: Run) -> None:
    ended = run("compare", identity(1), identity(3)[:8], "--fail-on", "slower")
    assert ended.code == 1
    assert "curves-slower" in ended.err
    turned = run("compare", "night3", "night1", "--fail-on", "slower")
    assert (turned.code, "campaigns-turned" in turned.out) == (0, True)
    assert "campaigns-turned" not in run("compare", "night1", "night3").out


@pytest.mark.usefixtures("store")
def test_document_has_its_schema(run: Run) -> None:
    document = json.loads(run("compare", "night1", "night3", "--json").out)
    jsonschema.validate(document, json.loads((SCHEMAS / "across.json").read_text()))
    curves = {row["configuration"]: row["curve"] for row in document["comparisons"]}
    assert curves[MPICH] == "equivalent"
    kernel = next(row for row in document["changes"] if row["name"] == "kernel")
    assert (kernel["old"], kernel["new"]) == (MACHINE["kernel"], NEWER["kernel"])
    assert kernel["status"] == "changed"


@pytest.mark.usefixtures("store")
def test_markdown_escapes_names(run: Run, tmp_path: Path) -> None:
    keep(Store(tmp_path / "store"), campaign(4, name="a|b <script>"))
    text = run("compare", "night1", identity(4), "--markdown", "--full").out
    assert_output("compare/campaigns.markdown", text)


@pytest.mark.usefixtures("store")
def test_brief_markdown_leaves_out_the_sizes(run: Run) -> None:
    markdown = ("compare", "night1", "night2", "--markdown")
    whole, brief = run(*markdown, "--full").out, run(*markdown).out
    assert "| size |" in whole
    assert "| size |" not in brief
    assert f"| {MPICH} |" in brief
    assert "not recorded" not in whole


def test_campaigns_of_two_stores_are_compared(run: Run, tmp_path: Path) -> None:
    keep(Store(tmp_path / "elsewhere"), campaign(1))
    keep(Store(tmp_path / "store"), campaign(2))
    ended = run("compare", "night1", "night2", "--old-store", str(tmp_path / "elsewhere"))
    assert ended.code == 0
    assert shows(ended.out, "night2", "night1")


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("night1", "night1"), "campaigns-same"),
        (("night1", "night2", "--baseline", MPICH), "campaigns-two-exclude"),
        (("night1", "night2", "--across", "layouts"), "campaigns-two-exclude"),
        (("night1", "--match", "a=b"), "campaigns-two-needed"),
        (("night1", "night2", "--match", "a=b"), "match-unknown"),
        (("night1", "nothing"), "campaign-not-one"),
    ],
)
def test_what_cannot_be_compared_is_refused(run: Run, words: tuple[str, ...], code: str) -> None:
    ended = run("compare", *words)
    assert ended.code == 2
    assert f"[{code}]" in ended.err


@pytest.mark.usefixtures("store")
def test_names_of_a_store_cannot_move_the_cursor(run: Run, tmp_path: Path) -> None:
    names = {"k0": "mpich@5\x1b[2J/ucx"}
    keep(Store(tmp_path / "store"), campaign(5, names=names), campaign(6, names=names))
    ended = run("compare", "night5", "night6")
    assert "\x1b" not in ended.out
    assert "\\x1b[2J" in ended.out
