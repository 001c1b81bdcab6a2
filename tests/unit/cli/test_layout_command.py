"""`mpigraft layout`: the drawing, the words of launchers, the document."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given

import mpigraft
from mpigraft.cli import main
from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    Allocation,
    Cpu,
    Gpu,
    Layout,
    Machine,
    Placement,
    RenderedCommand,
    parse_layout,
)
from mpigraft.core.text import WIDTH
from mpigraft.discovery import inventory
from mpigraft.launch import describe
from mpigraft.launch import placement as layouts
from mpigraft.launch.launchers.registry import LAUNCHERS
from mpigraft.report import machine_document, node_drawing
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.messages import matches, shows
from tests.builders.outputs import assert_output
from tests.unit.core.test_layout_keys import LAYOUTS
from tests.unit.launch.test_layouts import ARCHER2, GCDS, GH200, HOPPERS, LUMI_C, NODES, lumi_g

SCHEMA = Path(mpigraft.__file__).parent / "report/schemas/layout.json"
LUMI_G = lumi_g(threads=2, without=range(0, 64, 8))


def a_node(cpu: Cpu, gpus: Sequence[Gpu] = ()) -> Machine:
    mpis = (an_mpi("openmpi@5.0.11"), an_mpi("mpich@5.0.2"))
    return replace(a_machine(*mpis), cpu=cpu, gpus=tuple(gpus))


def drawn(cpu: Cpu, text: str, gpus: Sequence[Gpu] = ()) -> str:
    layout = parse_layout(text, cpu.cores)
    rows = node_drawing.node_rows(cpu, gpus, layouts.assign_cpus(layout, cpu, gpus))
    return "\n".join(
        f"{r.label:{node_drawing.NODE_LABEL}}{''.join(c.text for c in r.cells)}  {r.note}".rstrip()
        for r in rows
    )


# ------------------------------------------------------------------ the drawing


def test_lumi_g_is_drawn_by_its_caches() -> None:
    assert_output("layout/caches", drawn(LUMI_G, "1x8x7:l3cache+gpus", GCDS))


def test_small_caches_stand_side_by_side() -> None:
    assert_output("layout/small-caches", drawn(ARCHER2, "1x50:numa"))


def test_what_several_ranks_share_is_marked() -> None:
    assert_output("layout/shared", drawn(LUMI_C, "1x2:core-l3cache"))
    assert_output("layout/unbound", drawn(LUMI_C, "1x2-none"))


@given(NODES, LAYOUTS)
def test_each_core_is_drawn_once_and_no_line_is_too_long(cpu: Cpu, layout: Layout) -> None:
    layout = replace(layout, gpus=False)
    try:
        placed = layouts.assign_cpus(layout, cpu)
    except UsageError:
        return
    rows = list(node_drawing.node_rows(cpu, (), placed))
    cells = [c for row in rows for c in row.cells if c.text.strip() != node_drawing.NEXT]
    assert len(cells) == cpu.cores
    assert all(len(row.label) <= node_drawing.NODE_LABEL for row in rows)
    assert all(
        node_drawing.NODE_LABEL + sum(len(c.text) for c in row.cells) <= WIDTH for row in rows
    )
    if layout.bind == "core":
        alone = [c.rank for c in cells if c.rank is not None]
        assert sorted(set(alone)) == list(range(layout.ranks_per_node))
        assert len(alone) == layout.ranks_per_node * layout.threads


# ------------------------------------------------------------------ words


def said(machine: Machine, text: str, *kinds: str) -> dict[str, RenderedCommand]:
    layout = parse_layout(text, machine.cpu.cores)
    placed = layouts.assign_cpus(layout, machine.cpu, machine.gpus)
    nodes = some_nodes(layout)
    found = describe.render_launchers(kinds or tuple(LAUNCHERS), machine, layout, placed, nodes)
    return {one.launcher: one for one in found}


def some_nodes(layout: Layout) -> Allocation:
    return Allocation(tuple(f"n{n}" for n in range(layout.nodes)), "--hosts")


def test_every_launcher_gets_the_same_cpus() -> None:
    """Two domains, a rank in each: 0 and 36 on a node of 72 cores."""
    cpu = Cpu("", "x86_64", 4, 4, 2, ((0, 1), (2, 3)), (), (), ((0, 1), (2, 3)))
    found = said(a_node(cpu), "1x2:numa")
    assert not [one for one in found.values() if one.refused]
    words = {kind: " ".join(one.words) for kind, one in found.items()}
    assert "--cpu-bind=mask_cpu:0x1,0x4" in words["srun"]
    assert shows(words["hydra"], "-bind-to user:0,2")
    assert "list:0:2" in words["pals"]
    assert "-cc 0:2" in words["aprun"]
    for kind in ("prrte", "orte"):
        assert re.findall(r"slot=(\d)", dict(found[kind].files)["ranks"]) == ["0", "2"]


def test_a_launcher_that_cannot_says_so() -> None:
    found = said(a_node(GH200, HOPPERS), "1x4+gpus", "aprun", "srun")
    assert found["aprun"].refused
    assert "CUDA_VISIBLE_DEVICES=0/1/2/3" in found["srun"].words
    with pytest.raises(UsageError, match="launcher 'mpirun' is unknown"):
        said(a_node(GH200), "1x4", "mpirun")


def test_the_launchers_of_this_machine_are_shown_else_all() -> None:
    assert describe.launchers_here(a_node(GH200)) == ("prrte", "hydra")
    assert describe.launchers_here(replace(a_node(GH200), mpis=())) == tuple(LAUNCHERS)


# ------------------------------------------------------------------ the command


def run(monkeypatch: pytest.MonkeyPatch, machine: Machine, *words: str, code: int = 0) -> None:
    monkeypatch.setattr(inventory, "discover_machine", lambda: machine)
    assert main.run_command(["layout", *words]) == code


def test_a_node_alone_is_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, a_node(LUMI_G, GCDS))
    assert_output("layout/node", capsys.readouterr().out)


def test_a_layout_is_drawn_in_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, a_node(ARCHER2), "2x50:numa")
    text = capsys.readouterr().out
    assert_output("layout/numa", text)
    assert max(map(len, text.splitlines())) <= 80


def test_flags_say_the_same_as_the_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = a_node(LUMI_G, GCDS)
    run(monkeypatch, machine, "2x8x7:l3cache-numa+gpus")
    word = capsys.readouterr().out
    flags = (
        "--nodes", "2", "--ranks-per-node", "8", "--threads", "7", "--map-by", "l3cache",
        "--bind-to", "numa", "--gpus",
    )  # fmt: skip
    run(monkeypatch, machine, *flags)
    assert capsys.readouterr().out == word
    for words, told in (
        (["1x2", "--nodes", "2"], "both describe a layout"),
        (["--nodes", "2"], "the number of ranks per node is missing"),
        (["1x2:l3"], "mapping 'l3' is unknown"),
        (["1x6x8:l3cache"], "needs 6 ranks with 8 cores each .* have no room"),
    ):
        run(monkeypatch, machine, *words, code=2)
        assert re.search(told, capsys.readouterr().err)


def test_a_plain_layout_is_left_to_the_launchers_as_it_is_in_a_launch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The CPUs of its ranks are drawn; no launcher is told them unless a mapping was asked for."""
    for words, due in (
        (["2x8", "--launcher", "srun"], "--cpu-bind=cores PROGRAM"),
        (["--ranks-per-node", "8", "--launcher", "srun"], "--cpu-bind=cores PROGRAM"),
        (["--ranks-per-node", "8", "--map-by", "core", "--launcher", "srun"], "=mask_cpu:0x"),
        (["2x8:core", "--launcher", "srun"], "=mask_cpu:0x"),
        (["2x8-core", "--launcher", "srun"], "=mask_cpu:0x"),
        (["--ranks-per-node", "57", "--launcher", "srun"], "--cpu-bind=none"),
    ):
        run(monkeypatch, a_node(LUMI_G), *words)
        text = capsys.readouterr().out
        assert due in " ".join(text.replace("\\\n", "").split())
        assert shows(text, "CPUs", "rank") is ("57" not in words)
    run(monkeypatch, a_node(LUMI_G), "--ranks-per-node", "57", "--bind-to", "core", code=2)
    assert matches(capsys.readouterr().err, "layout-binds-too-much", ranks=57)


def test_the_document_is_as_its_schema_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["2x8x7:l3cache+gpus"], []):
        run(monkeypatch, a_node(LUMI_G, GCDS), *words, "--json")
        document = json.loads(capsys.readouterr().out)
        jsonschema.validate(document, json.loads(SCHEMA.read_text()))
        assert [gpu["index"] for gpu in document["gpus"] if 1 in gpu["cpus"]] == [4]
    assert (document["layout"], document["masks"]) == (None, [])


def test_another_machine_is_read_from_its_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    keys = machine_document(a_node(LUMI_G, GCDS))
    file = tmp_path / "lumi-g.json"
    file.write_text(json.dumps({"schema": 1, **keys}))
    run(monkeypatch, a_node(LUMI_C), "1x8:l3cache+gpus", "--machine", str(file))
    assert shows(capsys.readouterr().out, "0: 1,65", "GPU 4")
    run(monkeypatch, a_node(LUMI_C), "1x8:l3cache+gpus", code=2)
    assert matches(capsys.readouterr().err, "layout-no-gpu")


def test_placement_without_masks_lists_gpus() -> None:
    assert shows(node_drawing.node_ranks(Placement((), (1, 0), "amd")), "0: GPU 1", "1: GPU 0")
    assert node_drawing.node_ranks(Placement()) == []
