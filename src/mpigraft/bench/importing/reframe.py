"""ReFrame's performance log: one line for each test case that ran, with its figures.

Since 4.3 a log starts with a header, and each figure has columns of its own: `latency_value`,
`latency_unit`, `latency_ref`, thresholds. Before, and in configurations that were made then, a line
has `latency=1.5|ref=1.4 (l=null, u=0.1)|us`. Sources: `core/settings.py` and `core/logging.py` of
ReFrame 4.10, and logs that it wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mpigraft.bench.suites.base import Place, damaged, number, printed_step, text_lines
from mpigraft.core.errors import UsageError
from mpigraft.core.model import METRICS, Benchmark, Better, Finding, Measurement, metric_key

MARK = re.compile(
    rb"\A(?:[\w-]*[|,;\t])*job_completion_time[|,;\t].*_value[|,;\t]\w+_unit|^[^|\n]*\|reframe \d",
    re.MULTILINE,
)
DELIMITERS = "|;\t,"
FREE_TEXT = "descr"  # the column that may hold the delimiter
PARAMETER = re.compile(r" %([\w.$]+)=((?:[^ ]| (?![%~/@]))*)")
SOFTWARE = ("module_name", "module")  # parameters that say what was measured, as EESSI's tests have
SCALE = "scale"  # EESSI's name of a layout
INFO = re.compile(
    r"(?P<name>.*?)(?: /[0-9a-f]{6,8})? (?:@|on )(?P<system>[^:\s]+):(?P<partition>[^+\s]+)"
    r"(?:\+| using )(?P<environ>\S+)"
)
FIGURE = re.compile(r"(?P<name>\w+)=(?P<value>[^|]*)\|ref=(?P<ref>[^|]*)\|(?P<unit>[^|]*)")
THRESHOLDS = re.compile(r"l=([^,]*), u=([^)]*)")
NONE = ("", "null", "None", "nan")
TIMES = ("s", "ms", "us", "ns", "sec", "seconds", "second", "min", "minutes", "h", "hours")
RATES = re.compile(r".*/(s|sec|second|min|h|hour|day)|.*[Ff][Ll][Oo][Pp][Ss]?|[KMGT]i?[Bb]ps")


@dataclass(frozen=True, slots=True)
class ReframeCase:
    """One line of the log: a test case on one partition with one environment."""

    line: int
    text: str  # with the header, so that it can be read on its own
    measurements: tuple[Measurement, ...]
    configuration: str
    machine: str
    started: str  # when it was complete, in ISO 8601; empty: the log does not say
    header: dict[str, str] = field(default_factory=dict)  # nodes and processes, where known


def parse_log(data: bytes, source: str) -> tuple[list[ReframeCase], tuple[Finding, ...]]:
    """Return all cases with a figure, and findings: lines that cannot be read, cases without a
    figure, figures where it is unknown whether more is better. Raises UsageError for no log at
    all."""
    cases: list[ReframeCase] = []
    broken: list[tuple[str, int]] = []
    failed: list[str] = []
    unclear: dict[str, None] = {}
    columns: tuple[str, ...] = ()
    head = delimiter = ""
    for line, place, _ in text_lines(data, source):
        if names := _header(line):
            columns, head, delimiter = names[1], line, names[0]
            continue
        try:
            cells = _cells(line, columns, delimiter, place)
            case, odd = _case(cells, f"{head}\n{line}" if columns else line, place)
        except UsageError as error:
            broken.append((error.message, place.line))
            continue
        unclear |= dict.fromkeys(odd)
        if case.measurements:
            cases.append(case)
        elif not odd:
            failed.append(str(place.line))
    return cases, (*damaged(broken, source), *_notes(source, failed, list(unclear)))


def _notes(source: str, failed: list[str], unclear: list[str]) -> Iterator[Finding]:
    if failed:
        lines = ", ".join(failed[:20])
        yield Finding.of("reframe-no-figure", source=source, lines=lines)
    if unclear:
        shown = ", ".join(unclear[:10])
        yield Finding.of("reframe-no-direction", source=source, figures=shown)


def _header(line: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the delimiter and the columns, if the line is a header. One before another takes its
    place: ReFrame writes a new one when the figures of a test change."""
    for delimiter in DELIMITERS:
        names = tuple(line.split(delimiter))
        if "job_completion_time" in names and any(n.endswith("_value") for n in names):
            return delimiter, names
    return None


def _cells(line: str, columns: tuple[str, ...], delimiter: str, place: Place) -> dict[str, str]:
    """Return a line's cells by column; a description with the delimiter in it has the cells
    over."""
    if FIGURE.search(line):
        return _old(line, place)
    if not columns:
        place.refuse("neither a header nor a figure of ReFrame")
    words = line.split(delimiter)
    over = len(words) - len(columns)
    if over > 0 and FREE_TEXT in columns:
        at = columns.index(FREE_TEXT)
        words[at : at + over + 1] = [delimiter.join(words[at : at + over + 1])]
    if len(words) != len(columns):
        place.refuse(f"{len(words)} cells in a line of {len(columns)} columns")
    return dict(zip(columns, words, strict=True))


def _old(line: str, place: Place) -> dict[str, str]:
    """Return the cells of a line without a header."""
    parts = line.split("|")
    info = next((match for part in parts if (match := INFO.fullmatch(part.strip()))), None)
    if info is None:
        place.refuse("a figure without the name of its test")
    cells = {"job_completion_time": parts[0], **info.groupdict()}
    for match in FIGURE.finditer(line):
        bounds = THRESHOLDS.search(match["ref"])
        low, high = bounds.groups() if bounds else ("", "")
        name = match["name"]
        cells |= {f"{name}_value": match["value"], f"{name}_unit": match["unit"].strip(),
                  f"{name}_lower_thres": low, f"{name}_upper_thres": high}  # fmt: skip
    return cells


def _case(cells: dict[str, str], text: str, place: Place) -> tuple[ReframeCase, list[str]]:
    name = cells.get("name") or cells.get("unique_name", "")
    if not name:
        place.refuse("a line without the name of its test")
    parameters = dict(PARAMETER.findall(name))
    software = next((parameters.pop(key) for key in SOFTWARE if key in parameters), "")
    header = _layout(cells, place)
    if header:
        parameters.pop(SCALE, None)
    benchmark = Benchmark(
        "reframe",
        _word(name.split(" ", 1)[0]),
        tuple(sorted((_word(key), _word(value)) for key, value in parameters.items())),
    )
    measurements, odd = [], []
    for column, word in cells.items():
        figure = column.removesuffix("_value")
        if figure == column or f"{figure}_unit" not in cells or word in NONE:
            continue
        metric = _metric(figure, cells)
        if metric is None:
            odd.append(f"{figure} in {cells[f'{figure}_unit'][:24]!r}")
            continue
        value = number(word, place, figure)
        step = printed_step(word)
        measurements.append(Measurement(benchmark, metric, 0, value, resolution=step))
    system, partition = cells.get("system", ""), cells.get("partition", "")
    machine = f"{system}:{partition}" if partition else system
    configuration = software or cells.get("environ", "")
    started = _moment(cells.get("job_completion_time", ""))
    return (
        ReframeCase(place.line, text, tuple(measurements), configuration, machine, started, header),
        odd,
    )


def _moment(text: str) -> str:
    """ISO 8601 of the log's time, which is local unless it has a zone: taken for UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return ""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC).isoformat(timespec="milliseconds")
    except OverflowError:
        return ""


def _word(text: str) -> str:
    """Return a name that a benchmark's key can have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-")[:80] or "x"


def _metric(figure: str, cells: dict[str, str]) -> str | None:
    """Return the metric of a figure, or None where neither its unit nor its reference say whether
    more of it is better."""
    unit = cells[f"{figure}_unit"]
    name = re.sub(r"[^a-z0-9]+", "_", figure.lower()).strip("_")[:40]
    name = name if name[:1].isalpha() else f"x_{name}"[:40]
    known = METRICS.get(name)
    if known and known.unit == unit:
        return name
    lower, upper = (cells.get(f"{figure}_{w}_thres", "") not in NONE for w in ("lower", "upper"))
    if unit in TIMES:
        better = Better.LOWER
    elif RATES.fullmatch(unit):
        better = Better.HIGHER
    elif lower != upper:  # only what is worse has a limit
        better = Better.HIGHER if lower else Better.LOWER
    else:
        return None
    try:
        return metric_key(name, unit, better)
    except ValueError:
        return None


def _layout(cells: dict[str, str], place: Place) -> dict[str, str]:
    """Return the log's numbers of nodes and processes."""
    header: dict[str, str] = {}
    counts = {
        key: int(text)
        for key in ("num_tasks", "num_tasks_per_node")
        if (text := cells.get(key, "")).isascii() and text.isdigit() and len(text) < 10
    }
    ranks, per_node = counts.get("num_tasks", 0), counts.get("num_tasks_per_node", 0)
    hosts = cells.get("job_nodelist", "")
    if ranks and per_node and ranks % per_node == 0:
        header["nodes"] = str(ranks // per_node)
    elif hosts and not re.search(r"[\[\]{}]", hosts):
        header["nodes"] = str(len(set(hosts.replace(",", " ").split())))
    if ranks:
        header["processes"] = str(ranks)
    if ranks and header.get("nodes") and ranks % int(header["nodes"]):
        place.refuse(f"{ranks} tasks on {header['nodes']} nodes")
    return header if len(header) == 2 else {}
