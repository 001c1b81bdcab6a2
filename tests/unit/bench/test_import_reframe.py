"""ReFrame's performance logs, as ReFrame wrote them, and what is done with odd lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench import ImportedFile, ImportOptions, import_files
from mpigraft.bench.importing.reading import ImportSource
from mpigraft.bench.importing.reframe import parse_log
from mpigraft.core.errors import UsageError
from mpigraft.store import Store
from tests.builders.messages import matches

LOGS = Path(__file__).parents[2] / "data/reframe"
HEAD = (
    "result|job_completion_time|descr|environ|job_nodelist|name|num_tasks|num_tasks_per_node|"
    "partition|bw_value|bw_unit|bw_ref|bw_lower_thres|bw_upper_thres|system\n"
)
LINE = "pass|2026-01-02T03:04:05|{d}|gnu|n1,n2|t|4|{k}|cpu|{v}|{u}|1|{low}|{high}|lumi\n"


def line(**changes: str) -> str:
    usual = {"d": "", "k": "2", "v": "2.5", "u": "GB/s", "low": "None", "high": "None"}
    return LINE.format_map({**usual, **changes})


def bring(store: Path, *paths: Path, **options: str) -> list[ImportedFile]:
    sources = [ImportSource.of(path) for path in paths]
    return list(import_files(Store(store), sources, ImportOptions(**options)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("log", "configuration", "benchmark", "layout", "machine"),
    [
        ("osu_like.log", "builtin", "reframe:osu_like,size=8", "1x1", "generic:default"),
        ("eessi.log", "OSU-Micro-Benchmarks/7.2-gompi-2023b",
         "reframe:EESSI_OSU_pt2pt_CPU,benchmark_info=mpi.pt2pt.osu_latency", "2x1",
         "generic:default"),
        ("old-format.log", "OSU-Micro-Benchmarks/7.2-gompi-2023b",
         "reframe:EESSI_OSU_pt2pt_CPU,benchmark_info=mpi.pt2pt.osu_latency,scale=2_nodes",
         "unknown", "cluster:rome"),
    ],
)  # fmt: skip
def test_logs_of_reframe_are_imported(
    tmp_path: Path, log: str, configuration: str, benchmark: str, layout: str, machine: str
) -> None:
    (done,) = bring(tmp_path, LOGS / log)
    assert done.error is None
    store = Store(tmp_path)
    campaign = store.campaign()
    assert campaign.name == machine
    assert configuration in {c.id for c in store.configurations(campaign.id)}
    values = store.values(campaign.id)
    assert {(v.metric, v.value) for v in values} <= {("latency", 1.5), ("bandwidth", 200.25)}
    assert (benchmark, layout) in {(v.benchmark, v.layout) for v in values}
    assert {launch.started[:10] for launch in store.launches(campaign.id)} == {"2026-11-23"}


def test_a_log_that_grew_adds_its_new_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(HEAD + line())
    assert bring(tmp_path / "store", path)[0].rounds == (0,)
    assert bring(tmp_path / "store", path)[0].state == "known"
    path.write_text(HEAD + line() + line(v="2.75"))
    (done,) = bring(tmp_path / "store", path)
    assert (done.state, done.rounds, done.values) == ("stored", (1,), 1)
    copy = tmp_path / "b.log"
    copy.write_text(HEAD + line(v="2.75"))
    assert bring(tmp_path / "store", copy)[0].state == "known"


def test_a_test_without_a_figure_is_reported(tmp_path: Path) -> None:
    (done,) = bring(tmp_path, LOGS / "fails.log")
    assert done.error
    assert matches(done.error, "import-no-value", problem="test cases without a figure: lines 2")


def test_flags_come_before_what_the_log_says(tmp_path: Path) -> None:
    bring(tmp_path, LOGS / "osu_like.log", configuration="mine", machine="m", campaign="c")
    store = Store(tmp_path)
    assert [c.id for c in store.configurations(store.campaign("c").id)] == ["mine"]
    (done,) = bring(tmp_path, LOGS / "osu_like.log", configuration="mine", machine="other",
                    campaign="c")  # fmt: skip
    assert done.error


@pytest.mark.parametrize(
    ("changes", "metric"),
    [
        ({"u": "GB/s"}, "bw [GB/s] higher"),
        ({"u": "s"}, "bw [s] lower"),
        ({"u": "ns/day"}, "bw [ns/day] higher"),
        ({"u": "Gflops"}, "bw [Gflops] higher"),
        ({"u": "parrots", "low": "-0.1"}, "bw [parrots] higher"),
        ({"u": "parrots", "high": "0.1"}, "bw [parrots] lower"),
        ({"u": "parrots"}, None),
        ({"u": "parrots", "low": "-0.1", "high": "0.1"}, None),
    ],
)
def test_a_direction_comes_from_the_unit_or_from_the_reference(
    changes: dict[str, str], metric: str | None
) -> None:
    cases, findings = parse_log((HEAD + line(**changes)).encode(), "log")
    assert [m.metric for case in cases for m in case.measurements] == [metric] * bool(metric)
    assert [f.code for f in findings] == [] if metric else ["reframe-no-direction"]


def test_a_description_may_hold_the_delimiter_and_a_line_may_be_cut() -> None:
    text = HEAD + line(d="a | b | c") + line()[:40] + "\n" + line(v="nan") + line(v="-3") + "junk\n"
    cases, findings = parse_log(text.encode(), "log")
    assert [case.line for case in cases] == [2]
    assert cases[0].header == {"nodes": "2", "processes": "4"}
    assert {f.code for f in findings} == {"damaged-lines", "reframe-no-figure"}
    damage = next(f for f in findings if f.code == "damaged-lines")
    assert damage.evidence == ("lines 3, 5, 6",)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_sites_choose_their_own_delimiter(delimiter: str) -> None:
    text = (HEAD + line()).replace("n1,n2", "n1 n2").replace("|", delimiter)
    (case,), findings = parse_log(text.encode(), "log")
    assert (case.machine, case.configuration, findings) == ("lumi:cpu", "gnu", ())


WORDS = st.sampled_from(
    [*HEAD.split("|"), *line().split("|"), "|", "\n", "x=1|ref=2|us", "%a=b", "@a:b+c"]
)


@given(st.lists(WORDS | st.text(max_size=5)), st.sampled_from(["", HEAD, HEAD + line()]))
def test_no_log_makes_the_reader_fall_over(words: list[str], head: str) -> None:
    data = (head + "|".join(words)).encode("utf-8", "surrogatepass")
    try:
        cases, _ = parse_log(data, "log")
    except UsageError:
        return
    assert all(m.value >= 0 for case in cases for m in case.measurements)
