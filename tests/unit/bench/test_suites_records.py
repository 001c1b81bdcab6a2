"""Records as benchmarks: what a campaign may say of them, and under which names they measure."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.bench.suites import app
from mpigraft.bench.suites.programs import Tool
from mpigraft.core.errors import UsageError
from mpigraft.core.model import METRICS, Benchmark, Better, Layout
from mpigraft.request import CampaignSpec
from mpigraft.trace import Provenance, read_record_file, write_record
from mpigraft.trace.record.rank_file import write_rank
from mpigraft.trace.record.values import Leaf, Loop, RankCalls, RecordedRoutine

SPEC = CampaignSpec()
OUTPUT = b"""{"mpigraft":"begin","ranks":2,"buffers":"host"}
{"mpigraft":"value","benchmark":"replay","metric":"time [ms] lower","unit":"ms","size":0,\
"value":9.0,"min":1.0,"max":9.0,"valid":null,"samples":[]}
{"mpigraft":"value","benchmark":"replay,routine=Barrier","metric":"time [ms] lower","unit":"ms",\
"size":0,"value":4.5,"min":0.5,"max":9.0,"valid":null,"samples":[]}
{"mpigraft":"end","values":2,"phases":0}
"""


@pytest.fixture
def solver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    nodes = (Loop(3, (Leaf(0, 3, 5, 7),)),)
    routines = (RecordedRoutine("Barrier", "c"),)
    parts = [
        write_rank(RankCalls(rank, 2, routines, (b"\x00\x01",), nodes, events=3))
        for rank in range(2)
    ]
    path = tmp_path / "solver.record"
    path.write_bytes(write_record(parts, Provenance("./solver", "openmpi@5.0.11", "ompi")))
    return path


def words(key: str, layout: Layout) -> tuple[str, ...]:
    benchmark = Benchmark.parse(key)
    app.check(benchmark, SPEC)
    return app.words(benchmark, Tool(("mpigraft-replay",), "here"), SPEC, layout)


def test_a_record_is_replayed_by_as_many_ranks(solver: Path) -> None:
    plain = words("app:solver.record", Layout(1, 2))
    assert plain[0] == "mpigraft-replay"
    assert plain[1].endswith(".prepared")
    assert plain == words(f"app:{solver}", Layout(2, 1))
    chosen = words("app:solver.record,gaps=0.5,only=Barrier+p2p", Layout(1, 2))
    assert chosen[2:] == ("--gaps", "0.5", "--only", "Barrier,p2p")
    with pytest.raises(UsageError) as error:
        words("app:solver.record", Layout(1, 3))
    assert error.value.code == "replay-other-ranks"


@pytest.mark.parametrize("key", [
    "app:none.record", "app:solver.record,gaps=slow", "app:solver.record,only=a;b",
    "app:solver.record,ranks=2", "app:solver.records", "app:solver.record,only=Alltoallv",
])  # fmt: skip
@pytest.mark.usefixtures("solver")
def test_what_no_record_has_is_refused(key: str) -> None:
    with pytest.raises(UsageError):
        app.check(Benchmark.parse(key), SPEC)


def test_another_file_of_that_name_is_another_benchmark(solver: Path) -> None:
    benchmark = Benchmark.parse("app:solver.record,gaps=none")
    parsed = app.read(benchmark, OUTPUT, SPEC, "launch")
    whole, barrier = (one.benchmark for one in parsed.measurements)
    assert benchmark.covers(whole)
    assert dict(barrier.options).keys() == {"gaps", "record", "routine"}
    assert not parsed.findings  # the least and the most are of ranks
    (metric,) = {one.metric for one in parsed.measurements}
    assert METRICS[metric].better is Better.LOWER
    parts = read_record_file(solver).parts
    solver.write_bytes(write_record(parts, Provenance("./solver", "mpich@5.0.2", "mpich")))
    (other, _) = (one.benchmark for one in app.read(benchmark, OUTPUT, SPEC, "l").measurements)
    assert other != whole
