"""Growth with ranks in each form of a report: a prediction is never shown as a measurement."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

import mpigraft
from mpigraft.core.model import RankRecord, ValueRow
from mpigraft.report import json as as_json
from mpigraft.report import markdown, rank_scaling, terminal
from mpigraft.report.contents import ReportData
from mpigraft.report.html import page as html
from tests.builders.messages import shows
from tests.builders.reports import BASELINE, small_data

SCHEMA = json.loads((Path(mpigraft.__file__).parent / "report/schemas/compare.json").read_text())
NODES = (1, 2, 3, 4, 8)


def grown(per_node: int = 1, benchmark: str = "native:launch_time") -> ReportData:
    """Eight launches of the baseline on each of five numbers of nodes; a node has two cores."""
    data = small_data()
    rows = tuple(
        ValueRow(f"key:{BASELINE}", f"{n}x{per_node}", "a1", r, 0, benchmark, "launch_time", 0,
                 (300 + 25 * n**0.5) * (1 + 0.01 * (r % 3)), "host")
        for n in NODES
        for r in range(8)
    )  # fmt: skip
    return replace(data, values=(*data.values, *rows))


def on_terminal(data: ReportData) -> str:
    stream = io.StringIO()
    terminal.print_report(data, Console(file=stream, width=80))
    return stream.getvalue()


def test_every_form_says_what_is_predicted() -> None:
    data = grown()
    shown = on_terminal(data)
    assert shows(shown, "native:launch_time", "launch_time", "against", "ranks", "1 rank", "node")
    assert shows(shown, "PREDICTED", "not measured", "16")
    assert all(len(line) <= 80 for line in shown.splitlines())
    page = html.render_html(data)
    assert "predicted" in page
    assert shows(page, 'data-kind="growth"')
    assert shows(markdown.render_markdown(data), "PREDICTED", "not measured", "16")
    document = json.loads(as_json.render_json(data))
    jsonschema.validate(document, SCHEMA)
    (one,) = document["growth"]
    assert [p["ranks"] for p in one["predictions"]] == [16, 32]
    assert all(p["predicted"] for p in one["predictions"])
    assert one["law"]["form"] in ("a + b log2 p", "a + b p^c")


def test_a_point_says_whether_it_was_measured() -> None:
    (plot,) = rank_scaling.plots(grown())
    assert [point[0] for point in plot["measured"]] == list(NODES)
    assert [point[0] for point in plot["predicted"]] == [16, 32]
    assert all(point[4].endswith(", measured") for point in plot["measured"])
    assert all(point[4].endswith(rank_scaling.PREDICTED) for point in plot["predicted"])
    assert (plot["last"], plot["law"][0][0], plot["law"][-1][0]) == (8, 1, 32)
    assert plot["last"] in [ranks for ranks, _ in plot["law"]]  # the dashed line begins there


def test_ranks_that_shared_the_machines_cores_are_refused() -> None:
    data = grown(per_node=4)
    shown = on_terminal(data)
    assert shows(" ".join(shown.split()), "no law", "takes 4", "numbers", "ranks", "0")
    assert shows(" ".join(shown.split()), "ranks shared", "1x4", "2x4", "3x4", "4x4", "8x4")
    assert "PREDICTED" not in shown
    assert not shows(html.render_html(data), 'data-kind="growth"')
    assert rank_scaling.plots(data) == []
    (one,) = json.loads(as_json.render_json(data))["growth"]
    assert one["law"] is None


@pytest.mark.parametrize("machine", ["{}", "not JSON", '{"cpu": {"cores": null}}'])
def test_unknown_cores_refuse_a_law(machine: str) -> None:
    data = grown()
    silent = replace(data, allocations=tuple(replace(a, machine=machine) for a in data.allocations))
    (one,) = rank_scaling.growths(silent)
    assert one.law is None
    assert rank_scaling.UNKNOWN in one.refused


def test_masks_of_ranks_decide_whether_cores_are_shared() -> None:
    data = grown()
    (first, *rest) = (e for e in data.evidence if e.configuration == f"key:{BASELINE}")
    one_core = tuple(replace(r, host="n1", cores=(0,)) for r in first.evidence.ranks)
    assert len(one_core) > 1
    told = replace(first, layout="8x1", evidence=replace(first.evidence, ranks=one_core))
    data = replace(data, evidence=(*data.evidence, told))
    (one,) = rank_scaling.growths(data)
    assert shows(html.render_html(data), "left", "8x1", "ranks shared", "cores")
    assert one.left_out == (("8x1", rank_scaling.SHARED),)
    assert one.points[-1].ranks == 4
    assert not rest


def rank(host: str, boot: str, *cores: int) -> RankRecord:
    return RankRecord(0, 1, host, 1, "", cores, (), boot=boot)


def test_nodes_of_one_kernel_share_its_cores() -> None:
    """Containers and namespaces: two names, one boot, one CPU 0."""
    assert rank_scaling.overlapping([rank("n1", "b", 0), rank("n3", "b", 0)])
    assert not rank_scaling.overlapping([rank("n1", "b", 0), rank("n2", "b", 1)])
    assert not rank_scaling.overlapping([rank("n1", "b", 0), rank("n3", "c", 0)])
    assert not rank_scaling.overlapping([rank("n1", "", 0), rank("n3", "", 0)])
    assert rank_scaling.overlapping([rank("n1", "", 0), rank("n1", "", 0)])


def test_two_hardware_threads_are_one_core() -> None:
    siblings = {0: 0, 64: 0, 1: 1, 65: 1}
    two = [rank("n1", "b", 0), rank("n1", "b", 64)]
    assert not rank_scaling.overlapping(two)
    assert rank_scaling.overlapping(two, core_of=siblings)
    apart = [rank("n1", "b", 0, 64), rank("n1", "b", 1, 65)]
    assert not rank_scaling.overlapping(apart, core_of=siblings)
    assert rank_scaling.overlapping(apart, threads=2, core_of=siblings)
    assert not rank_scaling.overlapping([rank("n1", "b", 7), rank("n1", "b", 8)], core_of=siblings)


def test_hardware_threads_are_read_off_the_machine() -> None:
    data = grown()
    (one,) = data.allocations
    machine = json.dumps({"cpu": {"cores": 64, "core_cpus": [[0, 64], [1, 65]]}})
    (first, *_) = (e for e in data.evidence if e.configuration == f"key:{BASELINE}")
    shared = tuple(
        replace(r, host="n1", boot="b", cores=(cpu,))
        for r, cpu in zip(first.evidence.ranks, (0, 64), strict=False)
    )
    told = replace(first, layout="8x1", evidence=replace(first.evidence, ranks=shared))
    seen = replace(data, allocations=(replace(one, machine=machine),))
    unclear_cores = rank_scaling.unclear_cores(replace(seen, evidence=(*data.evidence, told)))
    assert unclear_cores[f"key:{BASELINE}", "8x1"] == rank_scaling.SHARED


def test_shared_cores_in_one_allocation_refuse_a_law() -> None:
    """The first of two jobs had its ranks on one core; the second says nothing against it."""
    data = grown()
    (first, *_) = (e for e in data.evidence if e.configuration == f"key:{BASELINE}")
    bad, good = (
        tuple(replace(r, host="n1", cores=cores) for r, cores in zip(first.evidence.ranks, own,
              strict=False))
        for own in (((0,), (0,)), ((0,), (1,)))
    )  # fmt: skip
    for order in ((bad, good), (good, bad)):
        told = tuple(
            replace(first, layout="8x1", evidence=replace(first.evidence, ranks=ranks))
            for ranks in order
        )
        found = rank_scaling.unclear_cores(replace(data, evidence=(*data.evidence, *told)))
        assert found[f"key:{BASELINE}", "8x1"] == rank_scaling.SHARED


def test_two_layouts_of_a_collective_say_nothing_to_a_person() -> None:
    data = grown(benchmark="native:barrier")
    few = replace(data, values=tuple(row for row in data.values if row.layout in ("1x1", "2x1")))
    assert rank_scaling.growths(few)
    assert not rank_scaling.growths_to_show(few)
