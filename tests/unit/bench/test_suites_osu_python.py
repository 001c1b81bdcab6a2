"""mpi4py's osu_*.py: the title says what a value is, since the header does not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench.suites import osu, osu_programs, osu_python
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Benchmark
from mpigraft.request import CampaignSpec

HEADER = "# Size [B]        Latency [us]\n"
DEMO = {
    "MPI Latency Test": ("latency", "latency"),
    "MPI Multi Latency Test": ("multi_lat", "latency"),
    "MPI Bandwidth Test": ("bw", "bandwidth"),
    "MPI Bi-Directional Bandwidth Test": ("bibw", "bandwidth"),
    "MPI Allgather Latency Test": ("allgather", "latency"),
    "MPI All-to-All Latency Test": ("alltoall", "latency"),
    "MPI Alltoallv Latency Test": ("alltoallv", "latency"),
    "MPI Barrier Latency Test": ("barrier", "latency"),
    "MPI Broadcast Latency Test": ("bcast", "latency"),
    "MPI Gather Latency Test": ("gather", "latency"),
    "MPI Scatter Latency Test": ("scatter", "latency"),
}


@pytest.mark.parametrize("title", DEMO)
def test_each_title_is_a_program_and_a_metric(title: str) -> None:
    text = f"# {title}\n{HEADER}         1                1.25\n         2               11.50\n"
    parsed = osu.parse(text.encode(), source="demo")
    assert parsed.findings == ()
    name, metric = DEMO[title]
    assert [(m.benchmark.name, m.metric, m.size, m.value) for m in parsed.measurements] == [
        (name, metric, 1, 1.25),
        (name, metric, 2, 11.5),
    ]
    assert {m.benchmark.options for m in parsed.measurements} == {(("binding", "mpi4py"),)}


def test_a_cut_table_and_noise_are_findings() -> None:
    text = (
        f"# MPI Latency Test\n{HEADER}warning: x\n         1                1.25\n    2       3.1"
    )
    parsed = osu.parse(text.encode(), source="demo")
    assert [m.size for m in parsed.measurements] == [1]
    assert {f.code for f in parsed.findings} == {"cut-short", "foreign-output"}
    empty = osu.parse(f"# MPI Latency Test\n{HEADER}".encode(), source="demo")
    assert [f.code for f in empty.findings] == ["empty-table"]


def test_osus_own_output_is_read_as_before() -> None:
    text = b"# OSU MPI Latency Test v5.9\n# MPI Odd Test\n"
    assert osu.parse(text, source="c").findings[0].code == "empty-table"


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    try:
        osu_python.parse(b"# MPI Latency Test\n" + data, source="demo")
    except UsageError:
        return


def test_sizes_outside_the_campaign_are_cut() -> None:
    """The programs have no option for sizes."""
    data = (
        "# MPI Latency Test\n# Size [B]        Latency [us]\n"
        + "".join(f"{size:<10}{1.0:20.2f}\n" for size in (0, 1, 8, 64, 128))
    ).encode()
    spec = replace(CampaignSpec(), min_size=8, max_size=64)
    parsed = osu_programs.read(Benchmark("osu", "latency"), data, spec, "x")
    assert [m.size for m in parsed.measurements] == [0, 8, 64]
    c = data.replace(b"# MPI Latency Test", b"# OSU MPI Latency Test v7.4")
    c = c.replace(b"# Size [B]        Latency [us]", b"# Size          Latency (us)")
    assert len(osu_programs.read(Benchmark("osu", "latency"), c, spec, "x").measurements) == 5
