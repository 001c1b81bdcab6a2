"""The line at what a link can carry, and what captions say of where something was measured."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mpigraft.core.model import Origin
from mpigraft.report import hardware_peaks, software
from mpigraft.report.contents import ReportData
from mpigraft.report.curves import curves
from mpigraft.report.hardware_peaks import Peaks
from mpigraft.report.wording.counts import sections
from tests.builders.messages import shows
from tests.builders.reports import small_data


def networked(*devices: Any, layout: str = "2x1", benchmark: str = "native:bw") -> ReportData:
    """The bandwidth of `small_data` between nodes that have these network devices."""
    data = small_data()
    machine = json.loads(data.allocations[0].machine) | {"fabrics": list(devices)}
    groups = tuple(
        replace(group, layout=layout, benchmark=benchmark)
        for group in data.comparison.groups
        if group.metric == "bandwidth"
    )
    return replace(
        data,
        comparison=replace(data.comparison, groups=groups),
        allocations=(replace(data.allocations[0], machine=json.dumps(machine)),),
    )


def device(speed: str, kind: str = "cxi", state: str = "up") -> dict[str, Any]:
    return {"name": f"{kind}0", "kind": kind, "state": state, "details": [["speed", speed]]}


@pytest.mark.parametrize(
    ("speed", "megabytes"),
    [("BS_200G", 25_000), ("200 Gb/sec (4X HDR)", 25_000), ("25000 Mb/s", 3_125), ("", None)],
)
def test_a_rate_is_read_as_the_kernel_writes_it(speed: str, megabytes: float | None) -> None:
    peak = hardware_peaks.link(networked(device(speed)))
    assert (peak[0] if peak else None) == megabytes


def test_the_fastest_interface_that_is_up_is_the_bound() -> None:
    slow, down = device("25000 Mb/s", "ethernet"), device("BS_400G", state="down")
    loopback = device("BS_800G", "loopback")
    peak = hardware_peaks.link(networked(slow, down, loopback, device("BS_200G"), "no device"))
    assert peak
    assert peak[0] == 25_000
    assert shows(peak[1], "cxi0", "200 Gbit/s")


@pytest.mark.parametrize(
    ("benchmark", "layout", "megabytes"),
    [
        ("native:bw", "2x1", 25_000),
        ("osu:bibw,sync=flush", "2x1", 50_000),
        ("native:bw", "1x2", None),  # on one node nothing crosses the link
        ("native:mbw_mr", "2x8", None),  # many pairs may use several interfaces
        ("native:bw", "unknown", None),
    ],
)
def test_only_a_pair_on_two_nodes_has_the_line(
    benchmark: str, layout: str, megabytes: float | None
) -> None:
    data = networked(device("BS_200G"), layout=layout, benchmark=benchmark)
    (section,) = sections(data.comparison)
    peak = hardware_peaks.of(section, hardware_peaks.known(data))
    assert (peak[0] if peak else None) == megabytes
    (drawn,) = json.loads(json.dumps(curves(data)))["sections"]
    assert (drawn["peak"] or [None])[0] == megabytes


@pytest.mark.parametrize(
    ("layout", "benchmark", "rate", "megabytes"),
    [
        ("1x2", "native:bw", 200_000, 209_715.2),
        ("1x2", "native:bibw", 200_000, 209_715.2),  # both ways are read from one memory
        ("2x1", "native:bw", 200_000, None),  # between nodes the link counts
        ("1x4", "native:mbw_mr", 200_000, None),  # pairs of several domains
        ("1x2", "native:bw", None, None),
        ("1x2", "native:bw", "fast", None),
    ],
)
def test_a_pair_on_one_node_has_the_line_of_its_memory_where_the_firmware_says_it(
    layout: str, benchmark: str, rate: Any, megabytes: float | None
) -> None:
    data = networked(layout=layout, benchmark=benchmark)
    machine = json.loads(data.allocations[0].machine) | {"memory_read_mib_s": rate}
    data = replace(data, allocations=(replace(data.allocations[0], machine=json.dumps(machine)),))
    (section,) = sections(data.comparison)
    peak = hardware_peaks.of(section, hardware_peaks.known(data))
    assert (peak[0] if peak else None) == megabytes
    assert peak is None or shows(peak[1], "NUMA", "210 GB/s")
    assert hardware_peaks.of(replace(section, buffers="cuda"), hardware_peaks.known(data)) is None


def test_latencies_have_no_peak() -> None:
    data = small_data()
    first = sections(data.comparison)[0]
    assert first.metric == "latency"
    assert hardware_peaks.of(replace(first, layout="2x1"), Peaks((25_000, "cxi0"))) is None


@pytest.mark.parametrize("machine", ["", "[]", "null", '{"fabrics": 3}', '{"fabrics": [{"a": 1}]}'])
def test_a_machine_that_says_nothing_has_no_peak(machine: str) -> None:
    data = small_data()
    data = replace(data, allocations=(replace(data.allocations[0], machine=machine),))
    assert hardware_peaks.known(data) == Peaks()
    assert shows(software.caption(data), "Measured", "1 node")


def test_a_caption_has_node_type_network_and_versions() -> None:
    data = networked(device("BS_200G"), device("BS_200G"))
    text = software.caption(data)
    assert shows(text, "Measured", "1 node", "7763", "2", "BS_200G")
    assert shows(text, "mpich@5.0.1", "libfabric", "2.1.0")


def test_of_an_import_the_machine_is_all_that_is_known() -> None:
    data = small_data()
    plan = json.dumps({"imported": True, "machine": "olivia"})
    campaign = replace(data.campaign, origin=Origin.IMPORT, plan=plan)
    comparison = replace(data.comparison, origin=Origin.IMPORT)
    data = replace(data, campaign=campaign, comparison=comparison)
    assert shows(software.caption(data), "olivia", "imported")
    plan = json.dumps(json.loads(data.campaign.plan) | {"about": "GH200, Slingshot 11"})
    described = replace(data, campaign=replace(data.campaign, plan=plan))
    assert shows(software.caption(described), "GH200", "Slingshot 11")
