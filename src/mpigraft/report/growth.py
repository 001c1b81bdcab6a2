"""Curves over the number of ranks: what a report shows of `scaling`."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mpigraft.jsonout import plain
from mpigraft.laws import LAWS, REACH, Law
from mpigraft.layouts import GRAMMAR
from mpigraft.model import EvidenceRecord, RankRecord
from mpigraft.natives import STARTUP
from mpigraft.report import ReportData, words
from mpigraft.report.markup import Html, el, foreign, join, table
from mpigraft.report.trouble import labels
from mpigraft.scaling import Growth, growth

SHARED = "ranks shared cores"
UNKNOWN = "whether ranks had a core each is not known"
WIDE, HIGH, EDGE = 560, 260, 46  # of the picture, in its own units
STEPS = 48


def growths(data: ReportData) -> tuple[Growth, ...]:
    """Every series that could be one: two numbers of ranks or more."""
    return growth(data.values, labels(data), crowded(data))


def shown(data: ReportData) -> list[Growth]:
    """Those for a person: collectives have two in every campaign of two layouts, and that those
    have no law need not be said; of a start-up cost it is what was asked for."""
    costs = {f"native:{name}" for name in STARTUP}
    return [one for one in growths(data) if one.law or one.benchmark in costs]


def crowded(data: ReportData) -> dict[tuple[str, str], str]:
    """(configuration, layout) whose ranks did not have a core each, or not for certain: by the
    cores of the machine and by what each rank said that it may run on, in any allocation."""
    machines = {a.id: _cpu(a.machine) for a in data.allocations}
    least = min((cores for cores, _ in machines.values() if cores), default=0)
    seen: dict[tuple[str, str], list[EvidenceRecord]] = defaultdict(list)
    for record in data.evidence:
        seen[record.configuration, record.layout].append(record)
    alike = next(iter(machines.values()), (0, {}))[1] if len(machines) == 1 else {}
    found: dict[tuple[str, str], str] = {}
    for key in {(row.configuration, row.layout) for row in data.values}:
        threads, told = _threads(key[1]), False
        shared = _too_many(key[1], least)
        for record in seen[key]:
            ranks = record.evidence.ranks
            _, core_of = machines.get(record.allocation, (0, alike))
            shared = shared or overlapping(ranks, threads, core_of)
            told = told or any(rank.cores for rank in ranks)
        if shared:
            found[key] = SHARED
        elif not least and not told:
            found[key] = UNKNOWN
    return found


def _cpu(machine: str) -> tuple[int, dict[int, int]]:
    """Cores of an allocation's machine, 0 where it did not say; and the core of each CPU, as two
    hardware threads are one core."""
    try:
        cpu = json.loads(machine)["cpu"]
        cores = cpu.get("core_cpus") or ()
        return int(cpu["cores"]), {cpu: n for n, own in enumerate(cores) for cpu in own}
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0, {}


def _too_many(layout: str, cores: int) -> bool:
    found = GRAMMAR.fullmatch(layout)
    return found is not None and 0 < cores < int(found["ranks"]) * int(found["threads"] or 1)


def _threads(layout: str) -> int:
    found = GRAMMAR.fullmatch(layout)
    return int(found["threads"] or 1) if found else 1


def overlapping(
    ranks: Iterable[RankRecord], threads: int = 1, core_of: Mapping[int, int] | None = None
) -> bool:
    """Whether the ranks of a machine that are confined to some cores are more than these serve.

    Nodes that are containers or namespaces of one machine have one kernel, hence one boot, and
    their CPUs of one number are the same. `core_of` has the core of each CPU; without it a CPU
    counts as one.
    """
    cores = core_of or {}
    masks: dict[str, list[frozenset[int]]] = defaultdict(list)
    for rank in ranks:
        if rank.cores:
            # CPUs that nobody described count by themselves, and as none of the others
            own = frozenset(cores.get(cpu, -1 - cpu) for cpu in rank.cores)
            masks[rank.boot or rank.host].append(own)
    return any(
        sum(inner <= mask for inner in own) * threads > len(mask)
        for own in masks.values()
        for mask in set(own)
    )


def document(data: ReportData) -> list[dict[str, Any]]:
    """For JSON: each series, its law written out, and predictions marked as such."""
    return [
        {
            **plain(one),
            "law": None if one.law is None else {**plain(one.law), "form": LAWS[one.law.name]},
            "predictions": [{**plain(p), "predicted": True} for p in one.predictions],
        }
        for one in growths(data)
    ]


# ------------------------------------------------------------------ words


def title(one: Growth) -> str:
    what = f"{one.benchmark}: {one.metric} in {one.unit}"
    size = f" at {words.size(one.size)}" if one.size else ""
    return f"{what}{size} against ranks, {one.series}"


def formula(law: Law) -> str:
    """`12 + 3.4 p^0.81`, p being ranks."""
    sign = "-" if law.b < 0 else "+"
    step = words.number(abs(law.b))
    match law.name:
        case "logarithm":
            return f"{words.number(law.a)} {sign} {step} log2 p"
        case "power":
            return f"{words.number(law.a)} {sign} {step} p^{law.c:g}"
    return f"{words.number(law.a)}, whatever the ranks"


def told(one: Growth) -> Iterator[str]:
    """One series as sentences: what was measured, the law and why, what it predicts."""
    measured = ", ".join(f"{p.ranks}: {words.number(p.value)}" for p in one.points)
    yield f"{one.configuration}: {measured}" if measured else one.configuration
    if one.law is None:
        yield f"no law: {one.refused}"
        return
    yield f"law: {formula(one.law)} ({one.why})"
    foreseen = ", ".join(
        f"{p.ranks}: {words.number(p.value)} {words.span((p.low, p.high))}" for p in one.predictions
    )
    yield f"PREDICTED, not measured: {foreseen}"
    for layout, reason in one.left_out:
        yield f"left out: {layout}: {reason}"


def lines(data: ReportData) -> list[tuple[str, list[str]]]:
    """Title and sentences of each series, alike ones under one title."""
    found: dict[str, list[str]] = {}
    for one in shown(data):
        found.setdefault(title(one), []).extend(told(one))
    return list(found.items())


# ------------------------------------------------------------------ page


def html(data: ReportData) -> list[Html]:
    """A picture and a table for each series with a law; why not, for the others."""
    parts: list[Html] = []
    for one in shown(data):
        parts.append(el("h3", foreign(f"{title(one)}: {one.configuration}")))
        if one.law is None:
            parts.append(el("p", foreign(f"No law: {one.refused}."), class_="sub"))
            continue
        caption = f"Law: {formula(one.law)}. {one.why}. Dashed: predicted, not measured."
        parts += [el("figure", _picture(one), el("figcaption", foreign(caption))), _table(one)]
    return parts


def _table(one: Growth) -> Html:
    measured = [
        _row(
            p.ranks,
            words.number(p.value),
            words.span((p.lowest, p.highest)),
            f"{p.launches} launches",
        )
        for p in one.points
    ]
    foreseen = [
        _row(p.ranks, words.number(p.value), words.span((p.low, p.high)), "predicted")
        for p in one.predictions
    ]
    heads = ("ranks", f"{one.metric}, {one.unit}", "range, or 95 % interval", "from")
    return table(
        f"Measured, and predicted up to {REACH} times as many ranks", heads, measured + foreseen
    )


def _row(ranks: int, value: str, bounds: str, source: str) -> Html:
    return el("tr", el("th", ranks, scope="row"), *(el("td", x) for x in (value, bounds, source)))


def _picture(one: Growth) -> Html:
    """Ranks on a logarithmic axis, values from 0; the law dashed where nothing was measured."""
    assert one.law is not None
    law, last = one.law, one.points[-1].ranks
    reach = max(p.ranks for p in one.predictions)
    first = one.points[0].ranks
    steps = [first * (reach / first) ** (k / STEPS) for k in range(STEPS + 1)]
    highs = [*(p.highest for p in one.points), *(p.high for p in one.predictions)]
    top = max(highs) * 1.05 or 1.0

    def at(ranks: float, value: float) -> tuple[float, float]:
        along = math.log(ranks / first) / math.log(reach / first)
        inside = min(max(value / top, 0.0), 1.0)
        return EDGE + along * (WIDE - EDGE - 12), HIGH - EDGE - inside * (HIGH - EDGE - 12)

    known = [at(p, law.at(p)) for p in steps if p <= last] + [at(last, law.at(last))]
    ahead = [at(last, law.at(last)), *(at(p, law.at(p)) for p in steps if p > last)]
    full, hollow = "currentColor", "none"
    seen = [(p.ranks, p.value, p.lowest, p.highest, full) for p in one.points]
    seen += [(p.ranks, p.value, p.low, p.high, hollow) for p in one.predictions]
    marks = [_mark(at(p, v), at(p, low), at(p, high), fill) for p, v, low, high, fill in seen]
    ticks = [_tick(at(p, 0), str(p)) for p in dict.fromkeys(place[0] for place in seen)]
    axis = _line([(EDGE, 12), (EDGE, HIGH - EDGE), (WIDE - 12, HIGH - EDGE)], 1)
    label = el("text", f"{words.number(top)} {one.unit}", x=4, y=10, font_size=11,
               fill="currentColor")  # fmt: skip
    alt = f"{title(one)}. The table that follows has the same figures."
    return el(
        "svg", axis, label, *ticks, _line(known, 2), _line(ahead, 2, dashes="6 5"), *marks,
        viewBox=f"0 0 {WIDE} {HIGH}", role="img", aria_label=alt, width="100%",
        style=f"max-width:{WIDE}px",
    )  # fmt: skip


def _line(places: Iterable[tuple[float, float]], width: int, *, dashes: str = "") -> Html:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return el("polyline", points=points, fill="none", stroke="currentColor", stroke_width=width,
              stroke_dasharray=dashes or None)  # fmt: skip


def _mark(
    middle: tuple[float, float], low: tuple[float, float], high: tuple[float, float], fill: str
) -> Html:
    dot = el("circle", cx=f"{middle[0]:.1f}", cy=f"{middle[1]:.1f}", r=4, fill=fill,
             stroke="currentColor")  # fmt: skip
    return join(_line((low, high), 1), dot)


def _tick(place: tuple[float, float], text: str) -> Html:
    return el("text", text, x=f"{place[0]:.1f}", y=f"{place[1] + 16:.1f}", font_size=11,
              text_anchor="middle", fill="currentColor")  # fmt: skip
