"""Reports of LSF, which are above the output of their job unless it was written while the job ran:
how it ended is about the last table below, not the one above.

Sources: outputs of jobs, with "The output (if any) follows:" or "... is above this job summary.".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from mpigraft.bench.suites.base import Parsed
from mpigraft.core.model import Finding
from mpigraft.knowledge import ends_run

HEAD = re.compile(rb"(?m)^Sender: LSF System ")
FOLLOWS = b"The output (if any) follows:"
RULE = "-" * 60  # below the job's command, which may have any words

Deaths = dict[range, str]  # lines of a job's output -> what was said of its end, with the line


def take_reports(data: bytes) -> tuple[bytes, Deaths]:
    """Blank the reports above outputs, so that all lines keep their numbers; and say which of the
    outputs are of jobs that died."""
    starts = [0, *(match.start() for match in HEAD.finditer(data))]
    parts: list[bytes] = []
    deaths: Deaths = {}
    line = 1
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        part = data[start:end]
        report, follows, output = part.partition(FOLLOWS)
        lines = range(line, line + part.count(b"\n") + 1)
        if follows and start in starts[1:]:
            texts = report.decode("latin-1").split("\n")
            script = max((n for n, text in enumerate(texts) if text == RULE), default=0)
            for number, text in enumerate(texts[script:], line + script):
                if lines not in deaths and ends_run(text):
                    deaths[lines] = f"line {number}: {text.strip()}"
            part = b"\n" * report.count(b"\n") + output
        parts.append(part)
        line = lines[-1]
    return b"".join(parts), deaths


def mark_dead(outputs: Sequence[Parsed], deaths: Deaths, source: str) -> list[Parsed]:
    """Mark the last table of each job that died, and say so; where a job has no table, the first
    output says so."""
    marked = list(outputs)
    for lines, text in deaths.items():
        tables = [
            (n, span)
            for n, parsed in enumerate(outputs)
            for span in parsed.tables
            if span.place.line in lines
        ]
        for _, span in tables[-1:]:
            span.died = True
        n = tables[-1][0] if tables else 0
        words = Finding.of("program-failed", source=source, lines=text)
        marked[n : n + 1] = [
            replace(parsed, findings=(words, *parsed.findings)) for parsed in marked[n : n + 1]
        ]
    return marked
