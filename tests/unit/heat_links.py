"""Links between nodes, for the heat map's tests."""

from __future__ import annotations

from dataclasses import replace

from mpigraft.model import ValueRow
from mpigraft.report import ReportData
from tests.unit.report_samples import BASELINE, small_data


def links(nodes: list[str], slow: dict[tuple[int, int], float] | None = None) -> ReportData:
    """One launch of bandwidth between all nodes: 100 MB/s, less by the factors of `slow`."""
    slower = slow or {}
    rows = tuple(
        ValueRow(f"key:{BASELINE}", "9x1", "a1", 0, 0, f"native:pairs,from={a},to={b}",
                 "bandwidth", 1 << 20, 100.0 / slower.get((i, j), 1.0), "host")
        for i, a in enumerate(nodes)
        for j, b in enumerate(nodes)
        if i != j
    )  # fmt: skip
    return replace(small_data(), links=rows)


def named(count: int) -> list[str]:
    return [f"nid{k:06d}" for k in range(1, count + 1)]
