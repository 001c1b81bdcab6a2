"""A benchmark on several layouts is one table over them, in a terminal and in Markdown."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mpigraft.core.model import CellGroup, Comparison, Verdict
from mpigraft.core.process import clean
from mpigraft.report import markdown, terminal
from mpigraft.report.contents import ReportData
from mpigraft.report.layouts_table import NodesTable, Row, split_layouts
from mpigraft.report.wording import words
from tests.builders.commands import run_on_store as run
from tests.builders.messages import shows
from tests.builders.reports import comparison, data_of

ARCHER2 = Path(__file__).parents[2] / "data/archer2"
NAMES = "{configuration}/osu_{benchmark}_{nodes}nodes_{ranks}processes_{date}.dat"
BENCHMARK = (("native:latency", "latency", 1.0),)


@cache
def on_layouts(*layouts: str) -> Comparison:
    """A measured campaign, the same on every layout."""
    one = comparison(benchmarks=BENCHMARK)
    groups = tuple(replace(group, layout=key) for key in layouts for group in one.groups)
    noise = tuple(replace(noise, layout=key) for key in layouts for noise in one.noise)
    return replace(one, groups=groups, noise=noise)


def shown(found: Comparison, *, encoding: str = "utf-8") -> list[str]:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(file=stream, markup=False, highlight=False, emoji=False, width=80)
    terminal.print_report(report(found), console)
    stream.flush()
    return raw.getvalue().decode(encoding).splitlines()


def report(found: Comparison) -> ReportData:
    return data_of(found, 6)


def rows_of(found: Comparison) -> list[Row]:
    (table,), _ = split_layouts(found, words.VERDICT_SIGNS)
    return list(table.rows)


def test_archer2_fits_a_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its figures: allreduce by UCX is ahead at 4 KiB up to 8 nodes, and behind from 16 on."""
    store = tmp_path / "store"
    assert run(store, "import", ARCHER2, "--pattern", NAMES, "--machine", "archer2") == 0
    capsys.readouterr()
    assert run(store, "compare", "archer2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    head, *rows = (line.split() for line in lines if "above 1" in line or line.startswith("osu:"))
    assert head[-8:] == [f"{2**n}x128" for n in range(8)]
    assert shows(
        " ".join(rows[2]), "1.18", "1.23", "1.23", "1.42", "1.10", "0.776", "0.756", "0.519"
    )
    assert shows("\n".join(lines), "compare", "--full", "report")
    assert run(store, "compare", "archer2", "--full") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 400
    heads = [line.split() for line in lines if line.split()[:2] == ["1", "2"]]
    assert heads == [["1", "2", "4", "8", "16", "32", "64", "128"]] * 3
    row = "medium 4 KiB 0.538* 0.661* 0.782* 0.904* 1.23* 1.31* 1.30* 1.04*"
    assert row in [" ".join(line.split()) for line in lines]
    text = "\n".join(lines)
    assert shows(text, "*", "single run")
    # alltoall ends at 64 B on 128 nodes: means of columns are over what all of them have
    row = "1 B to 64 B 0.898* 1.01* 1.02* 1.06* 1.07* 1.05* 1.09* 1.07*"
    assert row in [" ".join(line.split()) for line in lines]
    assert shows(text.replace("\n ", ""), "1 B", "64 B", "1", "16")
    assert run(store, "compare", "archer2", "--markdown") == 0
    text = capsys.readouterr().out
    assert shows(text, "configuration", "size", *heads[0])
    assert shows(text, "| UCX/OFI |", "4 KiB | 0.538\\* | 0.661\\* |")


def test_figures_are_those_of_the_sections() -> None:
    found = on_layouts("1x128", "16x128", "2x128")
    group = found.groups[0]
    (table,), alone = split_layouts(found, words.VERDICT_SIGNS)
    assert alone == ()
    assert table.heads == ("1", "2", "16")
    cells = {cell.size: cell for cell in group.cells}
    row = next(r for r in table.rows if r.configuration.startswith(group.configuration))
    size = {"8 B": 8, "16 B": 16, "32 B": 32}[row.what.removeprefix("small ")]
    sign = words.VERDICT_SIGNS[cells[size].verdict]
    assert {text.split()[0] for text in row.texts} == {sign}
    (ratio,) = {float(text.split()[1]) for text in row.texts}
    assert ratio == pytest.approx(cells[size].ratio, rel=0.006)
    assert set(row.verdicts) == {cells[size].verdict}
    curve = next(r for r in table.rows if r.what == "whole curve")
    assert set(curve.verdicts) == {group.curve}


def test_a_single_layout_has_no_table_over_layouts() -> None:
    over, alone = split_layouts(comparison(benchmarks=BENCHMARK), words.VERDICT_SIGNS)
    assert not over
    assert alone


def test_layouts_through_which_no_curve_goes_are_shown_by_themselves() -> None:
    _, alone = split_layouts(on_layouts("1x128", "2x128", "unknown"), words.VERDICT_SIGNS)
    assert [section.layout for section in alone] == ["unknown"]
    tables, alone = split_layouts(on_layouts("1x2", "2x4", "unknown"), words.VERDICT_SIGNS)
    assert tables == ()
    assert len(alone) == 3
    text = "\n".join(shown(on_layouts("1x128", "2x128", "unknown")))
    assert shows(text, "latency in us", "unknown")
    assert shows(text, "over nodes", "128 ranks", "node")


def test_ranks_per_node_are_an_axis_too() -> None:
    tables, _ = split_layouts(on_layouts("1x2", "1x16", "1x4", "2x4"), words.VERDICT_SIGNS)
    for table, values in zip(
        tables, (("over ranks", "1 node"), ("over nodes", "4 ranks per node")), strict=True
    ):
        assert shows(table.title, *values)
    assert [table.heads for table in tables] == [("2", "4", "16"), ("1", "2")]


def test_what_a_layout_lacks_is_a_dash() -> None:
    found = on_layouts("1x128", "2x128")
    first, *rest = found.groups
    short = replace(first, cells=first.cells[:1])
    lacking = replace(found, groups=(short, *rest))
    row = next(r for r in rows_of(lacking) if r.what.startswith("large"))
    assert "-" not in row.texts  # the baseline has it from other configurations
    own = [r for r in rows_of(lacking) if r.configuration.startswith(first.configuration)]
    assert [r.texts[0] == "-" for r in own] == [True, True, True, False]
    assert own[0].verdicts[0] is None


def test_a_metric_that_repeats_another_says_so() -> None:
    found = on_layouts("1x128", "2x128")
    groups = tuple(replace(group, repeats="bandwidth") for group in found.groups)
    (table,), _ = split_layouts(replace(found, groups=groups), words.VERDICT_SIGNS)
    assert shows(table.title, "same", "bandwidth", "counted once")


def test_full_has_every_section() -> None:
    text = "\n".join(shown(on_layouts("1x128", "2x128")))
    assert shows(text, "latency", "lower", "better", "1x128")
    assert shows(text, "latency", "lower", "better", "2x128")


def test_a_stream_without_signs_gets_ascii() -> None:
    found = on_layouts(*(f"{2**n}x128" for n in range(8)))
    lines = shown(found, encoding="ascii")
    assert max(map(len, lines)) <= 80


def test_a_benchmark_cannot_move_the_cursor() -> None:
    found = on_layouts("1x128", "2x128")
    groups = tuple(
        replace(g, benchmark="osu:\x1b[2Jx", configuration="\x1b[31m" + g.configuration)
        for g in found.groups
    )
    for line in shown(replace(found, groups=groups)):
        assert line == clean(line.encode())


@given(
    names=st.lists(st.text("abc/@.", min_size=1, max_size=60), min_size=1, max_size=4, unique=True),
    nodes=st.lists(st.integers(1, 99999), min_size=2, max_size=30, unique=True).map(sorted),
    texts=st.lists(st.sampled_from(["-", "1.02", "▲ 0.123", "216888", "0.938*"]), min_size=1),
)
def test_blocks_fit_and_have_every_figure(
    names: list[str], nodes: list[int], texts: list[str]
) -> None:
    heads = tuple(map(str, nodes))
    verdicts: tuple[Verdict | None, ...] = (None,) * len(nodes)
    rows = tuple(
        Row(name, what, tuple(texts[n % len(texts)] for n in range(len(nodes))), verdicts)
        for name in names
        for what in ("small 64 B", "whole curve")
    )
    blocks = list(NodesTable("title", heads, rows).blocks(80))
    lines = [["".join(text for text, _ in line) for line in block] for block in blocks]
    assert all(len(line) <= 80 for block in lines for line in block)
    assert [head for block in lines for head in block[0].split()] == list(heads)
    whole = " ".join(" ".join(" ".join(block).split()) for block in lines)
    assert sum(whole.count(f"{what} ") for what in ("small 64 B", "whole curve")) == len(
        rows
    ) * len(blocks)
    assert all(name in whole for name in names)


def cut_to(group: CellGroup, *sizes: int) -> CellGroup:
    cells = tuple(cell for cell in group.cells if cell.size in sizes)
    return replace(group, cells=cells, pooled_sizes=(), pooled=9.0)


def test_ratios_of_columns_with_other_sizes_are_over_those_of_all() -> None:
    found = on_layouts("1x128", "2x128")
    every = found.groups[0].configuration
    groups = [g for g in found.groups if g.configuration == every]
    groups[0] = replace(groups[0], curve=Verdict.FASTER)
    short = [groups[0], cut_to(groups[1], 1, 2, 4096)]
    shown_rows = rows_of(replace(found, groups=tuple(short)))
    (over,) = (row for row in shown_rows if row.what == "1 B to 4 KiB")
    means = [group.ratio_over((1, 2, 4096)) for group in short]
    assert means[0] == pytest.approx(
        math.prod(cell.ratio for cell in short[0].cells if cell.size in (1, 2, 4096)) ** (1 / 3)
    )
    assert [float(text) for text in over.texts] == pytest.approx(means, rel=0.006)
    assert over.verdicts == (None, None)
    (whole,) = (row for row in shown_rows if row.what == "whole curve")
    assert whole.texts == tuple(words.VERDICT_SIGNS[group.curve] for group in short)
    text = " ".join(" ".join(shown(replace(found, groups=tuple(short)))).split())
    assert shows(text, "whole curve", "verdict over", "1", "4")


def test_columns_without_a_common_size_have_no_mean() -> None:
    found = on_layouts("1x128", "2x128", "4x128")
    groups = [g for g in found.groups if g.configuration == found.groups[0].configuration]
    apart = ((1, 2), (2, 4096), (4096,))
    parted = [cut_to(g, *sizes) for g, sizes in zip(groups, apart, strict=True)]
    one = replace(found, groups=tuple(replace(g, curve=Verdict.INCONCLUSIVE) for g in parted))
    assert not [row.what for row in rows_of(one) if "to" in row.what or "curve" in row.what]
    assert shows(" ".join(shown(one)), "no mean", "no size in common")
    none = replace(one, groups=(one.groups[0], one.groups[2]))
    tables, alone = split_layouts(none, words.VERDICT_SIGNS)
    assert (tables, len(alone)) == ((), 2)  # nothing to show over nodes: each by itself
    assert "over nodes" not in markdown.render_markdown(report(none))
