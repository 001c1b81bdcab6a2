"""Numbers, sizes and names as a report writes them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.model import Better, Evidence
from mpigraft.report import words
from mpigraft.report.sections import sections
from tests.unit.report_samples import BASELINE, small_data


@given(st.floats(min_value=1e-9, max_value=1e9))
def test_a_ratio_is_short_and_says_what_it_is(value: float) -> None:
    text = words.ratio(value)
    assert float(text) == pytest.approx(value, rel=0.051)
    if 0.01 <= value < 1000:
        assert len(text) <= 5


def test_ratios_and_numbers_as_they_are_read() -> None:
    ratios = {0.17: "0.170", 0.9996: "1.00", 9.996: "10.0", 0.0241: "0.024", 123.4: "123"}
    assert {v: words.ratio(v) for v in ratios} == ratios
    numbers = {0.29: "0.290", 1306.4: "1306", 5_100_000: "5.1M", 99.96: "100", 0.0: "0"}
    assert {v: words.number(v) for v in numbers} == numbers
    assert words.ratio(float("nan")) == "-"


ANN = "/".join(("", "home", "ann"))


@pytest.mark.parametrize(
    ("home", "text", "said"),
    [
        ("/ann", "/ann/mpi/lib:/ann", "~/mpi/lib:~"),
        ("/ann", "/opt/ann/lib /anna /ann-2", "/opt/ann/lib /anna /ann-2"),
        ("/cluster/h/ann", "-L/cluster/h/ann/lib", "-L~/lib"),
        ("/cluster/h/ann", "/cluster/h/anna/lib", "/cluster/h/anna/lib"),
        ("/ann", f"{ANN}/lib -I{ANN} file:///Users/bo.b/x", "~/lib -I~ file://~/x"),
        ("/root", "https://a.org/home/page /opt/home/x", "https://a.org/home/page /opt/home/x"),
        ("/", "/usr/lib", "/usr/lib"),
    ],
)
def test_homes_are_not_named(
    monkeypatch: pytest.MonkeyPatch, home: str, text: str, said: str
) -> None:
    monkeypatch.setenv("HOME", home)
    assert words.homeless(text) == said


def test_sizes_as_they_are_read() -> None:
    sizes = {0: "-", 8: "8 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1 << 22: "4 MiB"}
    assert {s: words.size(s) for s in sizes} == sizes
    assert [words.short_size(s) for s in (0, 512, 1 << 17, 1 << 30)] == ["-", "512", "128K", "1G"]


def test_crossings_name_the_one_that_is_ahead() -> None:
    section = sections(small_data().comparison)[0]
    group = next(g for g in section.groups if g.configuration == "openmpi@5.0.11/ob1-tcp")
    found = words.crossings(group, BASELINE, Better.LOWER)
    assert [(c.size, c.ahead) for c in found] == [(1 << 22, BASELINE)]
    assert words.crossings(group, BASELINE, Better.HIGHER)[0].ahead == group.configuration


def test_what_the_ranks_sent_themselves_is_told_beside_what_crossed() -> None:
    told = words.counted("e0", 1_100_000, "netdev", 1_000_000, due=True, own=1_000_123)
    assert told.endswith(
        "(netdev, which does not see RDMA), 1,000,123 by the ranks' own connections"
    )
    assert "own" not in words.counted("e0", 9, "netdev", 9, due=False)
    assert words.counted("e0", 9, "", 0, due=False, own=0).endswith(
        "0 by the ranks' own connections"
    )


def test_only_interfaces_of_the_kernel_carry_connections() -> None:
    counters = (("e0", "netdev"), ("e1", "netdev"), ("cxi0", "cxi telemetry"))
    found = Evidence("x", "x", (), (), (), counters=counters, own=(("e0", 7),))
    names = ("e0", "e1", "cxi0", "e9")
    assert [words.own_through(found, name) for name in names] == [7, 0, None, None]
    assert words.own_through(replace(found, own=None), "e0") is None
