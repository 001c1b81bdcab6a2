"""Feed damaged files to a reader of results until the time is over, or one falls over.

    tools/fuzz_parsers.py osu|imb|native|reframe|app|csv|json|parquet [--minutes 10] [--seed N]

Starts from the recorded files of tests/data, damages each in a few places, and checks that the
reader takes it or refuses it with a UsageError, in a second; that values are numbers which stand in
the file; and that no message can move a cursor. The first input that breaks this is written to
fuzz-PARSER.bin, with exit code 1.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from mpigraft.bench import write_export  # noqa: E402
from mpigraft.bench.exchange.reading import export_format, read_export  # noqa: E402
from mpigraft.bench.importing.reframe import parse_log  # noqa: E402
from mpigraft.bench.suites.base import Parsed  # noqa: E402
from mpigraft.bench.suites.registry import PROGRAM_SUITES, SUITES  # noqa: E402
from mpigraft.bench.suites.worlds import read_worlds  # noqa: E402
from mpigraft.core.errors import UsageError  # noqa: E402
from mpigraft.core.model import Benchmark, Measurement  # noqa: E402
from mpigraft.request import App, CampaignSpec  # noqa: E402
from mpigraft.store import Store  # noqa: E402

DATA = ROOT / "tests/data"
LONGEST_S = 1.0  # of processor time, for one input
MOST_FINDINGS = 2000
CORPORA = {
    "osu": ("osu-7.4/*.out", "archer2/*/*8nodes*", "olivia/*.txt"),
    "imb": ("imb/*.out",),
    "native": (),
    "app": ("osu-7.4/*.out",),
    "reframe": ("reframe/*.log",),
}
WORDS = (
    b"nan", b"inf", b"-1", b"1e999", b"0", b"9" * 25, b"1_0", b"\xff\xfe", b"\0", b"\x1b[31m",
    b"0e999", b"\r", b"\n", b"|", b",", b'"', b"'", b"{", b"}", b"[", b"]", b"# ", b"# Size",
    b"Pass", b"Fail", b"==", b"# OSU MPI Latency Test v7.5\n", b"== Nodes = 3\n", b"#bytes",
    b"# Benchmarking PingPong\n", b"# #processes = 4\n", b"t_avg[usec]", b"\xd9\xa1", b"=1+1",
    b"null", b"true", b"1e5000", b"\t", b'{"mpigraft":"begin","ranks":2}\n', b'"launch":',
    b"mpigraft_export", b"  Avg Latency(us)", b"job_completion_time", b"|x_value|x_unit",
    b"x=1|ref=2 (l=0, u=None)|us", b"%a=b", b"@a:b+c", b"\n== Processes = 8\n", b"\n== Nodes = 2\n",
    b"\n# MPI Latency Test\n# Size [B]  Latency [us]\n", b"\nnprocs: 4, min: 1 ms, max: 2 ms, ",
    b"# Intel(R) MPI Benchmarks 2021.7, MPI-1 part\n", b'{"mpigraft":"begin","ranks":4}\n',
)  # fmt: skip
APPS = (
    App(figure=r"Performance:\s+([\d.e+-]+)", metric="performance", unit="ns/day", better="higher"),
    App(figure=r"(\S+)$", take="last", metric="time", unit="s", better="lower"),
    App(json="results.0.performance", take="first", metric="x", unit="y", better="higher"),
)
FIGURES = b'Performance: 12.5 ns/day\n{"results":[{"performance":3.5,"name":"x"}]}\n'
NATIVE = (
    b'{"mpigraft":"begin","ranks":2,"buffers":"host"}\n{"mpigraft":"value","benchmark":"bw",'
    b'"metric":"bandwidth","unit":"MB/s","size":8,"value":1.5,"samples":[1,2]}\n'
    b'{"mpigraft":"end","values":1}\n'
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parser", choices=sorted({*CORPORA, *EXPORTS}))
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    rng = random.Random(given.seed)  # noqa: S311  no secret comes of it
    corpus = list(seeds(given.parser))
    check = CHECKS.get(given.parser) or suite(given.parser)
    end = time.monotonic() + 60 * given.minutes
    inputs = taken = 0
    while time.monotonic() < end:
        data = damaged(rng, rng.choice(corpus), corpus)
        inputs += 1
        began = time.process_time()
        try:
            taken += check(data)
            if (spent := time.process_time() - began) > LONGEST_S:
                raise AssertionError(f"it took {spent:.1f} s")
        except Exception:  # whatever it is, it is the result
            traceback.print_exc()
            Path(f"fuzz-{given.parser}.bin").write_bytes(data)
            print(f"{given.parser}: input {inputs} of seed {given.seed} is in fuzz-*.bin")
            return 1
    summary = f"{inputs} inputs, {taken} with values, seed {given.seed}"
    print(f"{given.parser}: {summary}: nothing fell over")
    return 0


# ------------------------------------------------------------------ inputs


def seeds(parser: str) -> Iterator[bytes]:
    """Whole files of a parser."""
    if parser == "native":
        yield NATIVE
    if parser == "app":
        yield FIGURES
    for pattern in CORPORA.get(parser, ()):
        yield from (path.read_bytes() for path in DATA.glob(pattern))
    if parser in EXPORTS:
        for version in ("version2-ranks", "version3", "version5"):
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                (folder / f"{version}.sqlite").write_bytes(
                    (DATA / f"store/{version}.sqlite").read_bytes()
                )
                with (folder / "export").open("wb") as file:
                    store = Store(folder)
                    write_export(store, store.campaign(), parser, file)
                yield (folder / "export").read_bytes()


def damaged(rng: random.Random, data: bytes, corpus: list[bytes]) -> bytes:
    """The same with a few bytes, words, lines or parts changed, moved, repeated or lost."""
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        data = rng.choice(DAMAGES)(rng, data, corpus)
    return data[: 1 << 20]


def _byte(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + rng.randrange(2) :]


def _word(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(WORDS) + data[at + rng.choice((0, 0, 1, 4)) :]


def _number(rng: random.Random, data: bytes, _: list[bytes]) -> bytes:
    found = list(re.finditer(rb"\d+(?:\.\d+)?", data))
    if not found:
        return data
    match = rng.choice(found)
    return data[: match.start()] + rng.choice(WORDS[:7]) + data[match.end() :]


def _line(rng: random.Random, data: bytes, corpus: list[bytes]) -> bytes:
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    match rng.randrange(5):
        case 0:
            del lines[at]
        case 1:
            lines.insert(rng.randrange(len(lines)), lines[at])
        case 2:
            lines[at] += lines.pop(rng.randrange(len(lines))) if len(lines) > at + 1 else b""
        case 3:
            lines.insert(at, rng.choice(rng.choice(corpus).split(b"\n")))
        case _:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
    return b"\n".join(lines)


def _part(rng: random.Random, data: bytes, corpus: list[bytes]) -> bytes:
    start, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    match rng.randrange(4):
        case 0:
            return data[:start]
        case 1:
            return data[:start] + data[end:]
        case 2:
            return data + data[start:end]
        case _:
            return data[:start] + rng.choice(corpus)[start:]


DAMAGES: tuple[Callable[[random.Random, bytes, list[bytes]], bytes], ...] = (
    _byte, _word, _word, _number, _line, _line, _part,
)  # fmt: skip


# ------------------------------------------------------------------ checks


def suite(name: str) -> Callable[[bytes], bool]:
    def check(data: bytes) -> bool:
        numbers = {number(word) for word in re.findall(rb"[-+.\w]+", data)}
        taken = False
        for read in (log,) if name == "reframe" else (SUITES[name].parse, worlds):
            try:
                parsed = read(data, source="file")
            except UsageError as error:
                show(error.message)
                continue
            for m in parsed.measurements:
                sound(m)
                if m.value not in numbers:
                    raise AssertionError(f"{m.value} does not stand in the file")
            if len(parsed.findings) > MOST_FINDINGS:
                raise AssertionError(f"{len(parsed.findings)} findings")
            for finding in parsed.findings:
                show(finding.message)
            taken = taken or bool(parsed.measurements)
        return taken

    def worlds(data: bytes, *, source: str) -> Parsed:
        every, findings = read_worlds(name, data, source=source)
        for world in every:
            findings += world.parsed.findings
        return Parsed(tuple(m for world in every for m in world.parsed.measurements), findings)

    return check


def log(data: bytes, *, source: str) -> Parsed:
    cases, findings = parse_log(data, source)
    for case in cases:
        show(case.configuration + case.machine + case.started)
    return Parsed(tuple(m for case in cases for m in case.measurements), findings)


def number(word: bytes) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan


def exported(data: bytes) -> bool:
    form = export_format(data[:4096])
    if not form:
        return False
    launches = 0
    with tempfile.NamedTemporaryFile(suffix=form) as file:
        Path(file.name).write_bytes(data)
        try:
            for launched in read_export(Path(file.name), form, "file"):
                launches += 1
                for m in launched.measurements:
                    sound(m)
        except UsageError as error:
            show(error.message)
            return False
    return launches > 0


def application(data: bytes) -> bool:
    """A figure by each way to name one."""
    taken = False
    for app in APPS:
        spec = CampaignSpec(app=(replace(app, name="x"),))
        parsed = PROGRAM_SUITES["app"].read(Benchmark("app", "x"), data, spec, "file")
        for m in parsed.measurements:
            sound(m)
            taken = True
        for finding in parsed.findings:
            show(finding.message)
    return taken


EXPORTS = ("csv", "json", "parquet")
CHECKS: dict[str, Callable[[bytes], bool]] = {
    **dict.fromkeys(EXPORTS, exported),
    "app": application,
}


def sound(m: Measurement) -> None:
    figures = (m.value, m.mean, m.minimum, m.maximum, m.p90, m.p99, m.resolution, *m.samples)
    if not all(f is None or (math.isfinite(f) and f >= 0) for f in figures):
        raise AssertionError(f"a figure of {m}")
    if not 0 <= m.size < 2**63 or not m.benchmark.key.isprintable():
        raise AssertionError(f"size or key of {m}")


def show(message: str) -> None:
    if not message.replace("\t", "").isprintable():
        raise AssertionError(f"{message!r} could move a cursor")


if __name__ == "__main__":
    sys.exit(main())
