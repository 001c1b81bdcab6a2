"""Tables of runs that ended early: their values are left out, or marked as perhaps too few.

A run that died says so below its table, or stops in the middle of a row. One that was killed with
SIGKILL says nothing: its table is only shorter than most others of its benchmark.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from mpigraft.bench.importing.reading import ImportTable
from mpigraft.core.model import Benchmark, Finding, layout_order

OSU_MEMORY = 512 << 20  # bytes of all ranks' blocks, where OSU's programs end unless -M says more
BLOCKS = re.compile(r"i?(?:neighbor_)?(?:all)?(?:gather|scatter|toall)[vw]?(?:_persistent)?")
SIBLINGS = 2  # longer tables, at least, before text below a short one is taken for last words


class Census:
    """How far the tables of each benchmark go, of all files of an import that were read so far."""

    def __init__(self) -> None:
        self._largest: defaultdict[str, Counter[int]] = defaultdict(Counter)

    def add(self, tables: Iterable[ImportTable]) -> None:
        for table in tables:
            for span in table.parsed.tables:
                if not (span.died or span.explained):
                    for benchmark, size in _largest(table, span.start, span.stop).items():
                        self._largest[benchmark.key][size] += 1

    def judge(self, table: ImportTable) -> ImportTable:
        """Take out of a table what runs measured that died. What may be cut stays in it, and its
        findings name the benchmark."""
        lost: set[int] = set()
        findings = list(table.parsed.findings)
        for span in table.parsed.tables:
            known = span.died or span.explained
            largest = {} if known else _largest(table, span.start, span.stop)
            short = {
                one.key: size
                for one, size in largest.items()
                if self._longer(one.key, size) and not _is_full(one, size, table.layout)
            }
            if span.followed and any(self._longer(*item) >= SIBLINGS for item in short.items()):
                lines = f"{span.place}: the table ends at {max(short.values())} B, before others do"
                findings.append(Finding.of("program-failed", source=table.name, lines=lines))
                short, span.died = {}, True
            if span.died:
                lost.update(range(span.start, span.stop))
            for key, size in short.items():
                usual = max(self._largest[key])
                findings.append(
                    Finding.of(
                        "maybe-cut", place=span.place, benchmark=key, size=size, usual=usual,
                        evidence=(key,),
                    )
                )  # fmt: skip
        kept = [m for n, m in enumerate(table.parsed.measurements) if n not in lost]
        parsed = replace(table.parsed, measurements=tuple(kept), findings=tuple(findings))
        return replace(table, parsed=parsed, lost=len(lost))

    def _longer(self, benchmark: str, size: int) -> int:
        """Return how many other tables of a benchmark go beyond a size; 0 unless most of them
        do."""
        sizes = self._largest[benchmark]
        longer = sum(count for largest, count in sizes.items() if largest > size)
        return longer if 2 * longer > sizes.total() - 1 else 0


def _largest(table: ImportTable, start: int, stop: int) -> dict[Benchmark, int]:
    """Return the largest size of each benchmark in a part of a table."""
    largest: dict[Benchmark, int] = {}
    for m in table.parsed.measurements[start:stop]:
        largest[m.benchmark] = max(m.size, largest.get(m.benchmark, 0))
    return largest


def _is_full(benchmark: Benchmark, size: int, layout: str) -> bool:
    """Return whether OSU's program goes no further on so many ranks: the blocks of all would have
    more memory than it takes."""
    partial, nodes, per_node, *_ = layout_order(layout)
    stated = re.search(r"(\d+)ranks", layout)
    ranks = int(stated[1]) if stated else 0 if partial else nodes * per_node
    scaled = benchmark.suite == "osu" and BLOCKS.fullmatch(benchmark.name)
    return bool(scaled) and 2 * size * ranks > OSU_MEMORY
