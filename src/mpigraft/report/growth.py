"""Curves over the number of ranks: what a report shows of `scaling`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mpigraft.jsonout import plain
from mpigraft.laws import LAWS, REACH, Law
from mpigraft.layouts import GRAMMAR
from mpigraft.model import EvidenceRecord, RankRecord
from mpigraft.natives import STARTUP
from mpigraft.report import ReportData, words
from mpigraft.report.growth_picture import picture
from mpigraft.report.markup import Html, el, foreign, table
from mpigraft.report.trouble import labels
from mpigraft.scaling import Growth, growth

SHARED = "ranks shared cores"
UNKNOWN = "whether ranks had a core each is not known"


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
    yield from _left_out(one)


def _left_out(one: Growth) -> Iterator[str]:
    return (f"left out: {layout}: {reason}" for layout, reason in one.left_out)


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
        alt = f"{title(one)}. The table that follows has the same figures."
        caption = el("figcaption", foreign(f"Law: {formula(one.law)} ({one.why})."))
        parts += [el("figure", picture(one, alt), caption), _table(one)]
        parts += [el("p", foreign(said), class_="sub") for said in _left_out(one)]
    return parts


def _table(one: Growth) -> Html:
    measured = [
        _row(
            p.ranks,
            words.number(p.value),
            words.span((p.lowest, p.highest)),
            words.many(p.launches, "launch"),
        )
        for p in one.points
    ]
    foreseen = [
        _row(p.ranks, words.number(p.value), words.span((p.low, p.high)), "predicted")
        for p in one.predictions
    ]
    heads = ("ranks", f"{one.metric}, {one.unit}", "range, or 95 % interval", "from")
    caption = f"Measured, and predicted up to {REACH} times as many ranks"
    return table(caption, heads, measured + foreseen, class_="figures")


def _row(ranks: int, value: str, bounds: str, source: str) -> Html:
    return el("tr", el("th", ranks, scope="row"), *(el("td", x) for x in (value, bounds, source)))
