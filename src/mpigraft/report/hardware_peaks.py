"""The most that a link or a memory can carry, where the machine's document says how fast it is.

A benchmark of one pair of nodes uses one network interface at a time, so the fastest interface
that is up is the bound. A pair on one node reads the sender's bytes from a NUMA domain's memory, or
from caches, which are faster: of it the line is a measure and no bound. Nothing is drawn for what
nothing is known of.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mpigraft.core.model import LAYOUT_PATTERN
from mpigraft.core.serialize import parse_object
from mpigraft.report.contents import ReportData
from mpigraft.report.wording.counts import Section

# "200 Gb/sec (4X HDR)" of InfiniBand, "BS_200G" of Slingshot, "25000 Mb/s" of a network device
SPEED = re.compile(r"(?P<number>\d{1,7})\s*(?P<unit>[GM])(?:b|$|\W)")
PAIR = frozenset(("bw", "bibw", "put_bw", "get_bw", "put_bibw"))  # one pair of ranks alone
BOTH_WAYS = frozenset(("bibw", "put_bibw"))

Peak = tuple[float, str]  # MB/s, and what it is


@dataclass(frozen=True, slots=True)
class Peaks:
    link: Peak | None = None
    memory: Peak | None = None


def link(data: ReportData) -> Peak | None:
    """Find the fastest interface of the first allocation that says so."""
    for allocation in data.allocations:
        speeds = [found for device in _devices(allocation.machine) if (found := _speed(device))]
        if speeds:
            return max(speeds)
    return None


def memory(data: ReportData) -> Peak | None:
    """Find how fast a NUMA domain reads its memory, of the first allocation that says so."""
    for allocation in data.allocations:
        rate = parse_object(allocation.machine).get("memory_read_mib_s")
        if isinstance(rate, int) and rate > 0:
            megabytes = rate * (1 << 20) / 1e6
            return megabytes, f"a NUMA domain's memory, {megabytes / 1000:.0f} GB/s"
    return None


def known(data: ReportData) -> Peaks:
    return Peaks(link(data), memory(data))


def of(section: Section, peaks: Peaks) -> Peak | None:
    """Choose what carries a section's bytes: of bandwidths of one pair, the link between two nodes
    or the memory of one."""
    match = LAYOUT_PATTERN.fullmatch(section.layout)
    name = section.benchmark.partition(":")[2].partition(",")[0]
    if match is None or name not in PAIR or section.metric != "bandwidth":
        return None
    if int(match["nodes"]) < 2:
        return peaks.memory if section.buffers == "host" else None
    if peaks.link is None:
        return None
    peak = peaks.link
    ways = 2 if name in BOTH_WAYS else 1
    return peak[0] * ways, peak[1] + (" both ways" if ways == 2 else "")


def _devices(machine: str) -> list[dict[str, Any]]:
    listed = parse_object(machine).get("fabrics")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _speed(device: dict[str, Any]) -> Peak | None:
    details = device.get("details")
    if device.get("kind") == "loopback" or device.get("state") != "up":
        return None
    pairs = [pair for pair in details or () if isinstance(pair, list) and len(pair) == 2]
    text = next((str(value) for key, value in pairs if key == "speed"), "")
    match = SPEED.search(text)
    if match is None:
        return None
    bits = int(match["number"]) * (1000 if match["unit"] == "G" else 1)
    name = f"{device.get('name', 'the link')}, {bits / 1000:g} Gbit/s"
    return (bits / 8, name) if bits else None
