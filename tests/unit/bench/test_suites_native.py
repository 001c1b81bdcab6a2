"""mpigraft-bench's JSON lines amid what libraries and launchers print."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench.suites import native
from mpigraft.bench.suites.base import Parsed
from mpigraft.bench.suites.registry import SUITES
from mpigraft.core.errors import UsageError
from mpigraft.core.model import METRICS, Benchmark, Level, Measurement
from tests.builders.messages import matches, shows

BEGIN = {"mpigraft": "begin", "ranks": 2, "library": "Open MPI v5.0.11"}
VALUE: dict[str, Any] = {
    "mpigraft": "value", "benchmark": "latency", "metric": "latency", "unit": "us", "size": 8,
    "value": 0.41, "mean": 0.44, "min": 0.4, "max": 1.5, "p90": 0.5, "p99": 0.9,
    "iterations": 1000, "batch": 10, "valid": True, "samples": [0.4, 0.41],
}  # fmt: skip


def line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def end(values: int) -> bytes:
    return line({"mpigraft": "end", "values": values})


def parse(data: bytes) -> Parsed:
    return native.parse(data, source="launch")


def codes(parsed: Parsed) -> list[str]:
    return [f.code for f in parsed.findings]


def test_a_whole_run_is_read_with_all_its_numbers() -> None:
    parsed = parse(line(BEGIN) + line(VALUE) + end(1))
    assert parsed.measurements == (
        Measurement(Benchmark("native", "latency"), "latency", 8, 0.41, 0.44, 0.4, 1.5, 0.5, 0.9,
                    1000, True, (0.4, 0.41)),
    )  # fmt: skip
    assert parsed.findings == ()
    assert parsed.header == {"ranks": "2", "library": "Open MPI v5.0.11"}
    odd = BEGIN | {"library": "\ud800 v1", "buffers": "rocm", "nodes": "many"}
    assert parse(line(odd) + end(0)).header == {
        "ranks": "2", "library": "\\ud800 v1", "buffers": "rocm"
    }  # fmt: skip


def test_the_step_of_a_value_comes_with_it() -> None:
    (measured,) = parse(line(VALUE | {"resolution": 2e-4})).measurements
    assert measured.resolution == 2e-4
    with pytest.raises(UsageError, match="resolution is"):
        parse(line(VALUE | {"resolution": "fine"}))


@pytest.mark.parametrize(
    ("metric", "unit", "value", "best", "told"),
    [
        ("latency", "us", 2.1, {"min": 0.4, "max": 9}, True),
        ("latency", "us", 2.0, {"min": 0.4, "max": 9}, False),
        ("latency", "us", 0.4, {"min": 0.4, "max": 9}, False),
        ("bandwidth", "MB/s", 10, {"min": 1, "max": 51}, True),
        ("bandwidth", "MB/s", 10, {"min": 1, "max": 50}, False),
        ("bandwidth", "MB/s", 0, {"min": 0, "max": 50}, True),
        ("latency", "us", 2.1, {"min": None, "max": None}, False),
        ("overlap", "%", 5, {"min": 0, "max": 60}, False),
    ],
)
def test_a_value_far_from_its_best_sample_is_a_finding(
    metric: str, unit: str, value: float, best: dict[str, float], told: bool
) -> None:
    """One for a benchmark, the same whichever sizes have it, so that launches can be counted."""
    record = VALUE | {"metric": metric, "unit": unit, "value": value} | best
    parsed = parse(line(BEGIN) + b"".join(line(record | {"size": 2**k}) for k in range(8)) + end(8))
    assert codes(parsed) == ["samples-scattered"] * told
    for finding in parsed.findings:
        assert finding.level is Level.WARNING
        assert matches(finding, "samples-scattered", key="native:latency")
        assert len(finding.evidence) == 5
        assert shows(finding.evidence[0], "1 B", f"{value:g} {unit}")


def test_options_of_the_benchmark_stay_apart() -> None:
    value = VALUE | {"benchmark": "alltoallv,counts=skewed,datatype=indexed"}
    (measured,) = parse(line(BEGIN) + line(value) + end(1)).measurements
    assert measured.benchmark.options == (("counts", "skewed"), ("datatype", "indexed"))


def test_noise_is_kept_as_one_finding_and_costs_no_value() -> None:
    data = (
        b"libfabric:17:info\0\xff glued " + line(BEGIN)
        + b"[warn] Epoll ADD\n" + line(VALUE).rstrip() + line(VALUE | {"size": 16})
        + b"\n" + end(2) + b"bye"
    )  # fmt: skip
    parsed = parse(data)
    assert [m.size for m in parsed.measurements] == [8, 16]
    (finding,) = parsed.findings
    assert finding.level is Level.INFO
    assert matches(finding, "foreign-output", quoted="line 1: libfabric:17:info\\x00\\xff glued")
    assert "3 lines" in finding.message


@pytest.mark.parametrize("data", [b"", b"\0\0\n", b"srun: job queued\n"])
def test_no_record_is_no_result_whatever_the_exit_code_was(data: bytes) -> None:
    parsed = parse(data)
    assert codes(parsed)[0] == "no-output"
    assert parsed.findings[0].level is Level.ERROR


@pytest.mark.parametrize("cut", [0, 1, 30])
def test_a_missing_end_is_cut_short_and_what_came_before_is_kept(cut: int) -> None:
    parsed = parse(line(BEGIN) + line(VALUE) + line(VALUE)[:cut])
    assert codes(parsed)[0] == "cut-short"
    assert parsed.findings[0].level is Level.ERROR
    assert len(parsed.measurements) == 1


def test_a_missing_begin_is_cut_short() -> None:
    assert codes(parse(line(VALUE) + end(1))) == ["cut-short"]


def test_values_that_got_lost_are_missed() -> None:
    assert codes(parse(line(BEGIN) + line(VALUE) + end(2))) == ["values-lost"]


def test_ranks_that_each_made_a_world_of_their_own_are_a_finding() -> None:
    run = line(BEGIN | {"ranks": 1}) + line(VALUE) + end(1)
    assert codes(parse(run + run)) == ["several-worlds"]


def test_wrong_data_is_an_error_that_names_benchmark_and_size() -> None:
    parsed = parse(line(BEGIN) + line(VALUE | {"valid": False}) + end(1))
    assert codes(parsed) == ["validation-failed"]
    assert matches(parsed.findings[0], "validation-failed", first="native:latency at 8 B")


def test_the_probes_records_are_not_noise() -> None:
    phase = line({"mpigraft": "phase", "kind": "p2p", "bytes": 8, "ok": True})
    idle = line({"mpigraft": "idle", "seconds": 0.1, "wire": {"lo": 0}})
    assert codes(parse(line(BEGIN) + phase + idle + end(0))) == []


@pytest.mark.parametrize(
    "change",
    [
        {"value": math.nan}, {"value": math.inf}, {"value": "1"}, {"value": True}, {"value": -1},
        {"value": None}, {"p99": math.nan}, {"samples": [math.inf]}, {"samples": 3},
        {"metric": "speed"}, {"metric": "bandwidth"}, {"unit": "ms"}, {"unit": None},
        {"size": -1}, {"size": 1.5}, {"size": 2**63}, {"iterations": "x"}, {"valid": "yes"},
        {"benchmark": ""}, {"benchmark": 7}, {"benchmark": "a:b"}, {"mpigraft": "gift"},
        {"mpigraft": []},
    ],
)  # fmt: skip
def test_what_the_program_never_prints_is_refused_with_its_line(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="launch:2"):
        parse(line(BEGIN) + line(VALUE | change) + end(1))


@pytest.mark.parametrize("change", [{"ranks": "2"}, {"ranks": -1}, {"buffers": "sycl"}])
def test_a_head_that_the_program_never_prints_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="launch:1"):
        parse(line(BEGIN | change) + end(0))


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"mpigraft":"value","size":\0}',
        line(VALUE).rstrip().replace(b"0.41", b"1e999", 1),
        b'{"mpigraft":' + b"[" * 100_000,
        b'{"mpigraft":"value","value":' + b"9" * 5000 + b"}",
    ],
)
def test_a_damaged_record_in_the_middle_is_refused(damaged: bytes) -> None:
    with pytest.raises(UsageError, match="launch:2"):
        parse(line(BEGIN) + damaged + b"\n" + end(1))


NUMBERS = st.floats(min_value=0, allow_infinity=False, allow_nan=False)
ANY_METRIC = st.sampled_from(list(METRICS.values()))
ROWS = st.lists(st.tuples(ANY_METRIC, st.integers(0, 2**62), NUMBERS, st.lists(NUMBERS)))
NOISE = st.binary(max_size=40).filter(lambda b: b"\n" not in b and b"{" not in b)


@given(ROWS, NOISE)
def test_what_is_printed_is_what_is_read(rows: list[Any], noise: bytes) -> None:
    data = noise + line(BEGIN)
    for metric, size, value, samples in rows:
        record = {"mpigraft": "value", "benchmark": "bw", "metric": metric.name, "size": size,
                  "unit": metric.unit, "value": value, "samples": samples}  # fmt: skip
        data += noise + line(record)
    parsed = parse(data + noise + end(len(rows)))
    read = [(m.metric, m.size, m.value, list(m.samples)) for m in parsed.measurements]
    assert read == [(metric.name, *rest) for metric, *rest in rows]
    assert set(codes(parsed)) <= {"foreign-output"}


@given(st.sampled_from(sorted(SUITES)), st.binary(), st.integers(0, 400))
def test_no_bytes_make_a_reader_fall_over(suite: str, junk: bytes, at: int) -> None:
    good = line(BEGIN) + line(VALUE) + end(1)
    with contextlib.suppress(UsageError):
        SUITES[suite].parse(good[:at] + junk + good[at:], source="junk")
