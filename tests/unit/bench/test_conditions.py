"""The load of a node is read where the kernel says it, and absent where it does not."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.bench.conditions import node_state
from mpigraft.bench.suites import native
from mpigraft.core.model import CpuUse, NodeState

TICK = os.sysconf("SC_CLK_TCK")
PRESSURE = (
    "some avg10=65.04 avg60=50.45 avg300=25.52 total=8187059641\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
)
FILES = {
    "proc/loadavg": "3.57 2.29 1.42 1/127 16160\n",
    "proc/pressure/cpu": PRESSURE,
    "proc/stat": f"cpu  1 2 3 4 5 6 7 {3 * TICK} 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/cpufreq/policy1/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpufreq/policy2/scaling_governor": "performance\n",
}


def node(folder: Path, **changes: str | None) -> Path:
    """A node whose kernel says FILES but for `changes`, by the name of the file; None: it is not
    there."""
    for path, text in FILES.items():
        said = changes.get(Path(path).name, text)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if said is not None:
            (folder / path).write_text(said)
    return folder


def test_the_load_of_a_node_is_what_its_kernel_says(tmp_path: Path) -> None:
    expected = NodeState((3.57, 2.29, 1.42), 65.04, 8187.059641, 3.0, "performance,powersave")
    assert node_state(node(tmp_path)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"cpu": None}, NodeState((3.57, 2.29, 1.42), None, None, 3.0, "performance,powersave")),
        ({"cpu": "full"}, NodeState((3.57, 2.29, 1.42), None, None, 3.0, "performance,powersave")),
        ({"loadavg": "odd"}, NodeState((), 65.04, 8187.059641, 3.0, "performance,powersave")),
        ({"stat": "cpu 1 2"}, NodeState((3.57, 2.29, 1.42), 65.04, 8187.059641, None,
                                        "performance,powersave")),
        ({"scaling_governor": None}, NodeState((3.57, 2.29, 1.42), 65.04, 8187.059641, 3.0, "")),
    ],
)  # fmt: skip
def test_what_a_kernel_does_not_say_is_absent(
    tmp_path: Path, changes: dict[str, str | None], expected: NodeState
) -> None:
    assert node_state(node(tmp_path, **changes)) == expected


def test_a_node_without_proc_and_sys_says_nothing(tmp_path: Path) -> None:
    assert node_state(tmp_path) == NodeState()


def test_a_file_that_refuses_to_be_read_is_absent(tmp_path: Path) -> None:
    """As PSI's does where it is turned off at boot."""
    (node(tmp_path, cpu=None) / "proc/pressure/cpu").mkdir()
    assert node_state(tmp_path).pressure is None


def test_this_node_says_its_load() -> None:
    assert len(node_state().load) == 3
    assert node_state().steal_s is not None


NODE = (
    b'{"mpigraft":"node","host":"n\\u0031","ranks":2,"cpus":4,"wall_s":1.5,"busy_s":3.0,'
    b'"steal_s":0.25,"own_s":2.5,"others":0.125,"switches":7}\n'
)


def test_what_nodes_say_comes_with_the_values_of_a_launch() -> None:
    value = (
        b'{"mpigraft":"value","benchmark":"latency","metric":"latency","unit":"us","size":8,'
        b'"value":1.5}\n'
    )
    named = NODE.replace(b'"ranks"', b'"benchmark":"bw,window=2,a=b","ranks"')
    data = b'{"mpigraft":"begin"}\n' + value + named + NODE + b'{"mpigraft":"end","values":1}\n'
    parsed = native.parse(data, source="launch")
    whole = CpuUse("n1", 2, 4, 1.5, 3.0, 0.25, 2.5, 0.125, 7)
    assert parsed.nodes == (replace(whole, benchmark="native:bw,a=b,window=2"), whole)
    assert len(parsed.measurements) == 1
    assert parsed.findings == ()
