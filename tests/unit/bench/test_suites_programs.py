"""How programs of suites are started: names, ranks, options by version, figures of merit."""

from __future__ import annotations

import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench.suites import app, imb_programs, osu_programs
from mpigraft.bench.suites.programs import Ranks, Tool
from mpigraft.bench.suites.rank_files import RankFiles
from mpigraft.bench.suites.registry import PROGRAM_SUITES
from mpigraft.binary import FolderRoot
from mpigraft.core.errors import UsageError
from mpigraft.core.model import METRICS, Benchmark, Better, Layout
from mpigraft.request import App, CampaignSpec
from tests.builders.configuration import a_machine, an_mpi

DATA = Path(__file__).resolve().parents[2] / "data/osu-7.4"
SPEC = CampaignSpec(min_size=1, max_size=4096)
PAIR = Layout(1, 2)
# Option strings as they stand in programs of these versions.
OLD = b"ELF\0+:hvm:x:i:t:W:\0+:hvfm:i:x:M:a:\0"  # 5.6
MIDDLE = b"\0+:hvm:x:i:b:cu:G:D:P:T:\0+:hvfm:i:x:M:a:cu:G:D:P:T:\0"  # 7.1
NEW = b"\0+:hvm:x:i:b:c::u:G:D:P:T:Iz::\0+:hvfm:i:x:a:c::u:G:P:T:Ilz::\0"  # 7.4


def these_files() -> RankFiles:
    return RankFiles.of_host(FolderRoot(Path("/")), an_mpi())


def osu_words(name: str, data: bytes, folder: Path, **spec: object) -> list[str]:
    path = folder / "osu_it"
    path.write_bytes(data)
    tool = Tool(("osu",), "here", osu_programs.option_letters(these_files(), str(path)))
    asked = replace(SPEC, **spec)  # type: ignore[arg-type]
    benchmark = Benchmark.parse(f"osu:{name}")
    osu_programs.check(benchmark, asked)
    return list(osu_programs.words(benchmark, tool, asked, PAIR))[1:]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("latency", OLD, "-m 1:4096"),
        ("latency", MIDDLE, "-m 1:4096 -c"),
        ("latency", NEW, "-m 1:4096 -c -z"),
        ("bw,window=8", NEW, "-m 1:4096 -c -z -W 8"),
        ("allgather", OLD, "-m 1:4096 -f"),
        ("allgather", NEW, "-m 1:4096 -f -c -z"),
        ("allreduce", OLD, "-m 1:4096 -f"),
        ("allreduce", MIDDLE, "-m 1:4096 -f -T mpi_int -c"),
        ("ireduce_scatter", NEW, "-m 1:4096 -f -T mpi_int -c -z"),
        ("allreduce,datatype=MPI_FLOAT", NEW, "-m 1:4096 -f -T mpi_float -c -z"),
        ("ineighbor_alltoallw", NEW, "-m 1:4096 -f -c -z"),
        ("bcast_persistent", NEW, "-m 1:4096 -f -c -z"),
        ("barrier", NEW, "-f -z"),
        ("mbw_mr", MIDDLE, "-m 1:4096"),
        ("mbw_mr", NEW, "-m 1:4096 -c -z"),
        ("bw_fan_in", NEW, "-m 1:4096 -z"),
        ("put_latency", NEW, "-m 1:4096"),
        ("put_latency,sync=lock,window=create", NEW, "-m 1:4096 -w create -s lock"),
        ("init", NEW, ""),
        ("latency", b"#!/bin/sh\n", ""),
    ],
)
def test_an_osu_program_gets_the_options_that_it_understands(
    name: str, data: bytes, words: str, tmp_path: Path
) -> None:
    assert osu_words(name, data, tmp_path) == words.split()


def test_sums_of_characters_are_checked_by_no_version(tmp_path: Path) -> None:
    """They saturate in Open MPI on x86, and OSU's own check then fails without a fault."""
    for name in osu_programs.ALL:
        for data in (OLD, MIDDLE, NEW):
            words = osu_words(name, data, tmp_path)
            if "reduce" in name and "-c" in words:
                assert words[words.index("-T") + 1] == "mpi_int"
    without_types = b"\0+:hvfm:i:x:M:a:c\0"  # 5.9
    assert "-c" not in osu_words("allreduce", without_types, tmp_path)
    assert "-c" in osu_words("bcast", without_types, tmp_path)


def test_device_buffers_and_what_was_asked_for(tmp_path: Path) -> None:
    assert osu_words("bw", NEW, tmp_path, buffers="cuda")[-4:] == ["-d", "cuda", "D", "D"]
    assert osu_words("bcast", NEW, tmp_path, buffers="rocm")[-2:] == ["-d", "rocm"]
    windows = osu_words("put_bw", NEW, tmp_path, buffers="cuda")
    assert windows[2:] == ["-w", "create", "-d", "cuda", "D", "D"]
    assert "-c" not in osu_words("bw", NEW, tmp_path, validate=False)
    assert osu_words("bw", NEW, tmp_path, quick=True)[2:4] == ["-i", "1000"]
    assert osu_words("bcast", NEW, tmp_path, quick=True)[2:4] == ["-i", "100"]


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        ("osu:latenzy", "no benchmark 'osu:latenzy'"),
        ("osu:latency,datatype=int", "no option datatype=int"),
        ("osu:barrier,datatype=MPI_INT", "no option"),
        ("osu:bw,window=0", "no option window=0"),
        ("osu:put_bw,window=64", "no option window=64"),
        ("imb:Pingpong", "no benchmark 'imb:Pingpong'"),
        ("imb:PingPong,part=RMA", "no option part=RMA"),
        ("imb:Unidir_put,mode=fast", "no option mode=fast"),
        ("app:lj", "no application is defined"),
    ],
)
def test_what_a_suite_does_not_have_is_refused(key: str, problem: str) -> None:
    benchmark = Benchmark.parse(key)
    with pytest.raises(UsageError, match=problem):
        PROGRAM_SUITES[benchmark.suite].check(benchmark, SPEC)


@pytest.mark.parametrize("suite", ["osu", "imb"])
def test_every_name_can_be_started(suite: str) -> None:
    runnable = PROGRAM_SUITES[suite]
    assert len({*runnable.names(SPEC)}) == len(runnable.names(SPEC))
    for name in runnable.names(SPEC):
        benchmark = Benchmark(suite, name)
        runnable.check(benchmark, SPEC)
        ranks = runnable.ranks(benchmark, SPEC)
        assert any(ranks.fit(layout) for layout in (Layout(2, 1), Layout(2, 4)))
        assert (
            name.removesuffix("_persistent") in runnable.missing(benchmark, SPEC) or suite == "imb"
        )
        assert runnable.words(benchmark, Tool(("x",), ""), SPEC, PAIR)[0] == "x"


def test_ranks_say_on_which_layouts() -> None:
    layouts = [Layout(1, 1), Layout(1, 2), Layout(1, 3), Layout(1, 4), Layout(2, 1)]
    fits = {ranks: [r for r in layouts if ranks.fit(r)] for ranks in Ranks}
    assert fits[Ranks.PAIR] == [layouts[1], layouts[4]]
    assert fits[Ranks.EVEN] == [layouts[1], layouts[3], layouts[4]]
    assert fits[Ranks.SEVERAL] == layouts[1:]
    assert fits[Ranks.NODES] == layouts[4:]
    assert fits[Ranks.ANY] == layouts


def test_stencils_need_a_grid() -> None:
    """As IMB 2021.11 says with `is invalid for N processes`."""
    for name, numbers in (("Stencil2D", {4, 6, 8, 9, 10, 12}), ("Stencil3D", {8, 12})):
        ranks = imb_programs.ranks(Benchmark("imb", name), SPEC)
        assert {n for n in range(1, 14) if ranks.fit(Layout(1, n))} == numbers


def test_an_osu_build_is_searched_in_any_of_its_shapes(tmp_path: Path) -> None:
    for place in ("libexec/mpi/pt2pt/osu_latency", "bin/osu_bw", "src/.libs/osu_bw", "osu_bw.c"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_bytes(NEW)
        (tmp_path / place).chmod(0o755)
    (tmp_path / "osu_bibw.py").touch()
    spec = replace(SPEC, osu=(str(tmp_path),))
    for name, expected in (("latency", "osu_latency"), ("bw", "osu_bw"), ("bibw", "osu_bibw.py")):
        here = (a_machine(), these_files(), an_mpi())
        found = osu_programs.tools(Benchmark("osu", name), spec, *here)
        tools = [*found]
        assert [Path(t.words[-1]).name for t in tools if "--osu" in t.source] == [expected]
        assert "src" not in tools[0].words[-1]


LAYOUT = Layout(2, 4)


def test_imb_gets_powers_of_two_and_all_ranks() -> None:
    tool, spec = Tool(("imb",), ""), replace(SPEC, min_size=3, max_size=1000)

    def options(key: str, layout: Layout = LAYOUT) -> dict[str, str]:
        _, name, *found = imb_programs.words(Benchmark.parse(key), tool, spec, layout)
        assert name == Benchmark.parse(key).name
        return dict(zip(found[::2], found[1::2], strict=True))

    usual = {"-npmin": "8", "-msglog": "2:9", "-iter": "1000"}
    assert options("imb:Allreduce") == {**usual, "-zero_size": "off"}
    assert options("imb:Unidir_put") == usual
    assert options("imb:PingPong,part=P2P") == {"-msglog": "2:9", "-iter": "10000"}
    sizes = ",".join(str(1 << n) for n in range(2, 10))
    plain = {"-datatype": "char", "-count": sizes, "-repeat": "1000"}
    assert options("imb:PingPongMT") == plain
    threads = options("imb:PingPongMT", replace(LAYOUT, threads=2))
    assert threads["-thread_level"] == "multiple"


LJ = App(command=("./lj",), figure=r"rate: ([\w.+-]+)", better="higher", unit="ns/day", name="lj")


def figure(text: str, **changed: object) -> tuple[list[float], list[str]]:
    spec = replace(SPEC, app=(replace(LJ, **changed),))  # type: ignore[arg-type]
    parsed = app.read(Benchmark("app", "lj"), text.encode(), spec, "here")
    return [m.value for m in parsed.measurements], [f.message for f in parsed.findings]


@pytest.mark.parametrize(
    ("text", "changed", "values"),
    [
        ("noise\nrate: 12.5\n", {}, [12.5]),
        ("rate: 1\nrate: 2\nrate: 3", {"take": "last"}, [3.0]),
        ("rate: 1\nrate: 2\nrate: 3", {"take": "first"}, [1.0]),
        ('{"a": {"b": [1, 7.5]}}', {"figure": "", "json": "a.b.1"}, [7.5]),
        ('launcher says hello\n{"t": "3e2"}\n', {"figure": "", "json": "t"}, [300.0]),
        ('{"t": 1}\n{"t": 2}', {"figure": "", "json": "t", "take": "last"}, [2.0]),
        ("rate: 1\nrate: 2\nrate: 6", {"take": "sum"}, [9.0]),
        ("rate: 6\nrate: 1\nrate: 2", {"take": "median"}, [2.0]),
        ("rate: 1\nrate: 2", {"take": "median"}, [1.5]),
        ("rate: 1.0D+02", {}, [100.0]),
        ("rate: 2.5d-1\nrate: .5D0", {"take": "sum"}, [0.75]),
        ('{"r": [{"t": 1}, {"t": 4}]}', {"figure": "", "json": "r.-1.t"}, [4.0]),
        ('{"r": [{"t": 1}, {"t": 4}]}', {"figure": "", "json": "r.*.t", "take": "sum"}, [5.0]),
        ('{"a": {"t": 1}, "b": {"t": 2}}', {"figure": "", "json": "*.t", "take": "first"}, [1.0]),
        ("[[1, 2], [3, 8]]", {"figure": "", "json": "1.1"}, [8.0]),
        ('{"1": {"-1": 7}}', {"figure": "", "json": "1.-1"}, [7.0]),
        ('{"t": "3.0D+00"}', {"figure": "", "json": "t"}, [3.0]),
    ],
)
def test_a_figure_of_merit_is_read(
    text: str, changed: dict[str, object], values: list[float]
) -> None:
    assert figure(text, **changed) == (values, [])


@pytest.mark.parametrize(
    ("text", "changed", "problem"),
    [
        ("", {}, "no figure by"),
        ("rate: 1\nrate: 2", {}, "2 figures by .* 1, 2"),
        ("rate: fast", {}, "'fast', not a number above 0"),
        ("rate: nan", {}, "not a number above 0"),
        ("rate: 1_0", {}, "not a number above 0"),
        ("rate: 0.0", {}, "not a number above 0"),
        ("rate: -3", {}, "not a number above 0"),
        ('{"t": true}', {"figure": "", "json": "t"}, "not a number above 0"),
        ('{"t": [1]}', {"figure": "", "json": "t.1"}, "no figure"),
        ("[" * 100_000, {"figure": "", "json": "t"}, "no figure"),
        ("rate: 1\nrate: x", {"take": "sum"}, "'x', not a number above 0"),
        ("rate: 1\nrate: 0", {"take": "median"}, "'0', not a number above 0"),
        ("rate: 1e308\nrate: 1e308", {"take": "sum"}, "'inf', not a number above 0"),
        ("rate: 1D999", {}, "'1D999', not a number above 0"),
        ("rate: 1D", {}, "'1D', not a number above 0"),
        ('{"r": [1, 2]}', {"figure": "", "json": "r.*"}, "2 figures by"),
        ('{"r": [1, 2]}', {"figure": "", "json": "r.2"}, "no figure"),
        ('{"r": [1, 2]}', {"figure": "", "json": "r.-3"}, "no figure"),
        ('{"r": "ab"}', {"figure": "", "json": "r.*"}, "no figure"),
    ],
)
def test_a_figure_that_is_none_is_refused(
    text: str, changed: dict[str, object], problem: str
) -> None:
    import re

    values, messages = figure(text, **changed)
    assert values == []
    assert re.search(problem, messages[0])


def test_a_figure_has_its_own_unit_and_direction() -> None:
    spec = replace(SPEC, app=(LJ,))
    measurement = app.read(Benchmark("app", "lj"), b"rate: 2", spec, "here").measurements[0]
    metric = METRICS[measurement.metric]
    assert (metric.unit, metric.better) == ("ns/day", Better.HIGHER)
    assert measurement.size == 0


def test_a_command_gets_the_numbers_of_the_layout() -> None:
    tool = Tool(("lj", "-n{ranks}", "{nodes}x{ranks_per_node}", "{threads}", "{x}"), "")
    words = app.words(Benchmark("app", "lj"), tool, SPEC, Layout(2, 4, threads=3))
    assert words == ("lj", "-n8", "2x4", "3", "{x}")


def test_a_figure_is_found_among_a_hundred_thousand_lines() -> None:
    text = "".join(f"step {n}\nrate: {n + 1}\n{{{n}\n" for n in range(100_000))
    assert figure(text, take="last") == ([100_000.0], [])
    assert figure(text + '{"t": 4}', figure="", json="t") == ([4.0], [])
    values, (message,) = figure(text)
    assert values == []
    assert len(message) < 400


@given(st.lists(st.floats(1e-3, 1e6), min_size=1), st.sampled_from(["sum", "median"]))
def test_several_figures_make_one(numbers: list[float], take: str) -> None:
    values, messages = figure("\n".join(f"rate: {n!r}" for n in numbers), take=take)
    expected = sum(numbers) if take == "sum" else statistics.median(numbers)
    assert (values, messages) == ([expected], [])


@given(st.binary(max_size=300))
def test_no_output_breaks_the_reader(data: bytes) -> None:
    spec = replace(SPEC, app=(LJ, replace(LJ, name="j", figure="", json="a.b")))
    for name in ("lj", "j"):
        parsed = app.read(Benchmark("app", name), data, spec, "here")
        assert len(parsed.measurements) + len(parsed.findings) == 1


LEAVES = st.none() | st.booleans() | st.floats() | st.text()


@given(st.recursive(LEAVES, lambda c: st.lists(c) | st.dictionaries(st.text("ab"), c)))
def test_no_document_breaks_the_reader(document: object) -> None:
    takes = (replace(LJ, figure="", json="a.*.b", take="sum"),)
    spec = replace(SPEC, app=takes)
    parsed = app.read(Benchmark("app", "lj"), json.dumps(document).encode(), spec, "here")
    assert len(parsed.measurements) + len(parsed.findings) == 1


RECORDED = {  # outputs of OSU 7.4, by the benchmark that was started
    "mpich-lat_c_z": "latency",
    "mpich-bw_c": "bw",
    "mpich-mbw_mr": "mbw_mr",
    "mpich-multi_lat": "multi_lat",
    "mpich-allreduce_f_c_z": "allreduce",
    "mpich-alltoallv_f": "alltoallv",
    "mpich-barrier_f": "barrier",
    "mpich-iallreduce_f_c_z": "iallreduce",
    "mpich-put_lat": "put_latency",
    "mpich-get_acc": "get_acc_latency",
    "openmpi-acc": "acc_latency",
    "mpich-init": "init",
}


@pytest.mark.parametrize("recorded", RECORDED)
def test_what_a_program_printed_belongs_to_what_was_asked_for(recorded: str) -> None:
    asked = Benchmark("osu", RECORDED[recorded])
    data = (DATA / f"{recorded}.out").read_bytes()
    parsed = osu_programs.read(asked, data, SPEC, recorded)
    assert parsed.measurements
    assert all(asked.covers(m.benchmark) for m in parsed.measurements)
    noted = [f.code for f in parsed.findings if f.code == "osu-reduction-type"]
    assert noted == (["osu-reduction-type"] if "reduce" in asked.name else [])


def test_the_check_that_fails_without_a_fault_is_never_asked_for(tmp_path: Path) -> None:
    """Open MPI's sums of MPI_CHAR, recorded: OSU ends with an error, and no value is wrong."""
    data = (DATA / "openmpi-allreduce_f_c_z.out").read_bytes()
    assert b"MPI_CHAR" in data
    assert b"DATA VALIDATION ERROR" in data or b"Fail" in data
    words = osu_words("allreduce", NEW, tmp_path)
    assert (words[words.index("-T") + 1], "-c" in words) == ("mpi_int", True)
