"""What a campaign may say of a mini-app, and how its program is started."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.bench.schedule.again import repeated_spec
from mpigraft.bench.schedule.benchmarks import requested_benchmarks
from mpigraft.bench.schedule.campaign import (
    campaign_record,
    completed_spec,
    resume_campaign,
)
from mpigraft.bench.suites import app, mini
from mpigraft.bench.suites.programs import Tool
from mpigraft.bench.suites.rank_files import RankFiles
from mpigraft.binary import FolderRoot
from mpigraft.core.errors import UsageError
from mpigraft.core.model import METRICS, Benchmark, Better, Layout, MpiInstall
from mpigraft.core.serialize import plain
from mpigraft.native import Natives, programs
from mpigraft.request import CampaignSpec, asked_campaign, override_spec, read_spec
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.messages import matches
from tests.builders.two_mpis import MACHINE, contents, make_up_transports, planned

SPEC = CampaignSpec(budget_ms=20)


@pytest.mark.parametrize("key", [
    "mini:dirac,partition=blocks", "mini:dirac,halo=indexed,partition=blocks",
    "mini:dirac,local=4,partition=blocks,seed=7",
    "mini:ocean,every=5,io=2,size=90x60",
    "mini:particles,density=3,depth=1,every=5,pme=1,size=9x8x7",
    "mini:transpose,percent=40,size=20x30x40", "mini:halo,depth=3,fields=2,halo=indexed",
    "mini:dirac,partition=blocks,size=8x8x8x16,unknowns=12",
])  # fmt: skip
def test_options_of_a_mini_app(key: str) -> None:
    benchmark = Benchmark.parse(key)
    mini.check(benchmark, SPEC)
    words = mini.words(benchmark, Tool(("mpigraft-mini",), "here"), SPEC, Layout(1, 2))
    assert words[:3] == ("mpigraft-mini", "--app", benchmark.name)
    for option, value in benchmark.options:
        if option == "partition":
            continue  # the program's own
        assert words[words.index(f"--{option}") + 1] == value
    assert words[-4:] == ("--budget", "500", "--buffers", "host")


@pytest.mark.parametrize("key", [
    "mini:transpose,halo=packed", "mini:halo,unknowns=3", "mini:particles,io=1",
    "mini:none", "mini:dirac,halo=round", "mini:dirac,halo", "mini:dirac,size=0",
    "mini:dirac,size=8x8x8x8x8", "mini:dirac,size=", "mini:dirac,budget=5",
    "mini:dirac,size=4,local=4", "mini:dirac,partition=/etc/passwd",
])  # fmt: skip
def test_what_no_mini_app_has_is_refused(key: str) -> None:
    with pytest.raises(UsageError):
        mini.check(Benchmark.parse(key), SPEC)


def test_a_part_is_a_metric_of_its_own() -> None:
    line = (
        '{"mpigraft":"begin","ranks":2}\n'
        '{"mpigraft":"value","benchmark":"dirac,halo=packed","metric":"spmv","unit":"us",'
        '"size":0,"value":5.5,"valid":true}\n{"mpigraft":"end","values":1}\n'
    )
    benchmark = Benchmark.parse("mini:dirac")
    (measured,) = mini.read(benchmark, line.encode(), SPEC, "launch").measurements
    assert benchmark.covers(measured.benchmark)
    assert METRICS[measured.metric].unit == "us"
    assert METRICS[measured.metric].better is Better.LOWER
    assert measured.metric == "spmv [us] lower"
    with pytest.raises(UsageError):
        mini.read(benchmark, line.replace("spmv", "latency").encode(), SPEC, "launch")


@pytest.mark.parametrize("key", ["mini:halo", "app:solver.record"])
def test_a_build_by_the_wrapper_of_an_mpi_is_taken_for_it(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for the native benchmarks; the prebuilt ones are not."""
    made: list[str] = []

    def build(mpi: MpiInstall, _architecture: str, build: str) -> Natives:
        assert build == "mpicc"
        made.append(mpi.id)
        return Natives(tmp_path / "mpigraft-bench", tmp_path / "w", tmp_path / "g", "digest")

    monkeypatch.setattr(programs, "choose_natives", build)
    for name in ("mpigraft-mini", "mpigraft-replay"):
        (tmp_path / name).touch(mode=0o755)
    benchmark, mpi = Benchmark.parse(key), an_mpi()
    suite = mini if benchmark.suite == "mini" else app
    files = RankFiles.of_host(FolderRoot(Path("/")), mpi)
    spec = replace(SPEC, native_build="mpicc")
    (tool,) = suite.tools(benchmark, spec, a_machine(), files, mpi)
    assert Path(tool.words[0]).parent == tmp_path
    assert made == [mpi.id]
    prebuilt = [*suite.tools(benchmark, SPEC, a_machine(), files, mpi)]
    assert not [one for one in prebuilt if Path(one.words[0]).parent == tmp_path]
    assert len(made) == 1


SMALL = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2.0\n"


def test_a_matrix_that_no_benchmark_reads_is_refused_wherever_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By flags, by a file, by the campaign that is repeated, and by the plan that goes on."""
    make_up_transports(monkeypatch)
    matrix = tmp_path / "m.mtx"
    matrix.write_text(SMALL)
    names = "latency,mini:dirac,partition=blocks"
    flags = asked_campaign({"benchmark": [names], "matrix": str(matrix)})
    spec = override_spec(CampaignSpec(), flags)
    (tmp_path / "night.toml").write_text(f'benchmark = ["{names}"]\nmatrix = "m.mtx"\n')
    file = read_spec(tmp_path / "night.toml")
    latency = campaign_record(planned(benchmark=("latency",)))
    stored = json.loads(latency.plan)
    record = replace(latency, plan=json.dumps(stored | {"wish": plain(completed_spec(spec))}))
    assert [b.name for b in requested_benchmarks(spec)] == ["latency", "dirac"]
    for good in (file, repeated_spec(record)):
        assert requested_benchmarks(good) == requested_benchmarks(spec)
        less = override_spec(good, asked_campaign({"benchmark": ["bw"]}))
        assert [b.name for b in requested_benchmarks(less)] == ["bw"]
    stored["wish"]["matrix"] = str(matrix)
    with pytest.raises(UsageError) as error:
        resume_campaign(json.dumps(stored), MACHINE, contents)
    assert matches(error.value, "matrix-idle", path=matrix)
    alone = asked_campaign({"matrix": str(matrix)})
    for bad in (
        override_spec(CampaignSpec(), alone),
        override_spec(repeated_spec(latency), alone),
        override_spec(file, asked_campaign({"benchmark": ["bw"], "matrix": str(matrix)})),
        replace(file, benchmark=()),
    ):
        with pytest.raises(UsageError) as error:
            completed_spec(bad)
        assert matches(error.value, "matrix-idle", path=matrix)
