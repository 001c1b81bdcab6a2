"""One output of several runs, cut where its layout changes.

A batch job often appends runs of 2, 4 and 8 nodes to one file. Each part is then read as a file of
its own. What cannot be separated stays in one part, and the suite's parser says why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from mpigraft.bench.suites import imb, native, osu, osu_python, osu_titles
from mpigraft.bench.suites.base import Parsed, damaged
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Finding

NPROCS = re.compile(r"nprocs: (\d+),")


@dataclass(frozen=True, slots=True)
class PrintedWorld:
    """What one set of processes printed."""

    line: int  # of the whole output, where it begins, from 1
    data: bytes
    parsed: Parsed


def read_worlds(
    suite: str, data: bytes, *, source: str
) -> tuple[tuple[PrintedWorld, ...], tuple[Finding, ...]]:
    """Read an output that somebody has kept: a part for each layout, and findings of parts in which
    nothing was measured. What is whole is taken. Raises UsageError where the suite's parser does
    so for an output of one part."""
    lines = data.split(b"\n")
    cuts: list[Cut] = [(0, {}), *CUTS[suite](lines)]
    ends = [index for index, _ in cuts[1:]] + [len(lines)]
    worlds: list[PrintedWorld] = []
    findings: tuple[Finding, ...] = ()
    for (start, header), end in zip(cuts, ends, strict=True):
        part = b"\n".join(lines[start:end]) + b"\n" * (end < len(lines))
        try:  # with as many lines before it, so that messages have the lines of the file
            parsed = READERS[suite](b"\n" * start + part, source=source)
        except UsageError as error:
            if len(cuts) == 1:
                raise
            findings += damaged([(error.message, start + 1)], source)
            continue
        if parsed.measurements or len(cuts) == 1:
            parsed = replace(parsed, header=header | parsed.header)
            worlds.append(PrintedWorld(start + 1, part, parsed))
        else:
            findings += parsed.findings
    return tuple(worlds), findings


Cut = tuple[int, dict[str, str]]


def _osu(lines: Sequence[bytes]) -> Iterator[Cut]:
    """Cut before the remarks, or the title of osu_init, that name another number."""
    known: dict[str, str] = {}
    block: dict[str, int] = {}  # keys of the remarks in a row, and their lines
    title = last = -1  # line of the last title, of the last cut
    for index, raw in enumerate(lines):
        line = raw.rstrip().decode("latin-1")
        if match := osu_python.BATCH.fullmatch(line.strip()):
            key, value = match[1].lower(), match[2]
            block = {} if key in block else block
            block[key] = index
            start = min(block.values())
            if known.get(key, value) != value and start != last:
                yield start, {k: v for k, v in known.items() if k not in block}
                last, title = start, -1
            known[key] = value
        elif osu_titles.TITLE.search(line) or osu_python.TITLE.match(raw):
            title, block = index, {}
        elif match := NPROCS.match(line.strip()):
            if known.get("processes", match[1]) != match[1] and title >= 0:
                yield title, {k: v for k, v in known.items() if k != "processes"}
                known["processes"] = match[1]
            known.setdefault("processes", match[1])
            title = -1


def _imb(lines: Sequence[bytes]) -> Iterator[Cut]:
    """Cut before the banner of a run with another number of processes."""
    starts: list[int] = []
    sizes: list[int] = []
    for index, raw in enumerate(lines):
        line = raw.rstrip().decode("latin-1")
        if imb.BANNER.match(line):
            starts.append(index)
            sizes.append(0)
        elif sizes and (size := imb.processes_in(line)):
            sizes[-1] = max(sizes[-1], size)
    last = next(iter(sizes), 0)
    for start, size in list(zip(starts, sizes, strict=True))[1:]:
        if size and last and size != last:
            yield start, {}
        last = size or last


def _native(lines: Sequence[bytes]) -> Iterator[Cut]:
    """Cut before the first record of a run with another number of ranks, where every run before
    it is over: ranks that each ran alone print the same number."""
    begun = ended = 0
    ranks: object = None
    for index, line in enumerate(lines):
        for text in line.split(native.MARK)[1:]:
            if text.startswith(b'"begin"'):
                own = _ranks(native.MARK + text)
                if begun and begun == ended and own not in (ranks, None):
                    yield index, {}
                begun, ranks = begun + 1, own if own is not None else ranks
            ended += text.startswith(b'"end"')


def _ranks(text: bytes) -> object:
    try:
        return json.JSONDecoder().raw_decode(text.decode("ascii", "replace"))[0].get("ranks")
    except (ValueError, RecursionError):
        return None


READERS: dict[str, Callable[..., Parsed]] = {
    "osu": osu.parse,
    "imb": imb.parse,
    "native": native.salvage,
}
CUTS: dict[str, Callable[[Sequence[bytes]], Iterator[Cut]]] = {
    "osu": _osu,
    "imb": _imb,
    "native": _native,
}
