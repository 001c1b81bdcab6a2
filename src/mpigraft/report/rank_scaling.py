"""Curves over the number of ranks: what a report shows of `scaling`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mpigraft.analysis import LAW_REACH, LAWS, Growth, Law, fit_growth
from mpigraft.core import numbers
from mpigraft.core.model import LAYOUT_PATTERN, EvidenceRecord, RankRecord
from mpigraft.core.serialize import plain
from mpigraft.native import STARTUP
from mpigraft.report.contents import ReportData
from mpigraft.report.findings import labels
from mpigraft.report.html.document import chart
from mpigraft.report.markup import Html, el, foreign, join
from mpigraft.report.table import Column, Figure, Table
from mpigraft.report.wording import words

if TYPE_CHECKING:
    from mpigraft.analysis import Prediction
    from mpigraft.core.serialize import Keys

    LawKeys = Annotated[dict[str, Any], Law, Keys(form=str)]
    PredictionKeys = Annotated[dict[str, Any], Prediction, Keys(predicted=Literal[True])]
    GrowthKeys = Annotated[
        dict[str, Any], Growth, Keys(law=LawKeys | None, predictions=list[PredictionKeys])
    ]

SHARED = "ranks shared cores"
STEPS = 48  # pieces of the curve of a law
PREDICTED = "predicted, not measured"
UNKNOWN = "whether ranks had a core each is not known"


def growths(data: ReportData) -> tuple[Growth, ...]:
    """Return every series that could be one: two numbers of ranks or more."""
    reasons = unclear_cores(data)
    return fit_growth(data.values, labels(data), reasons, allocations=data.allocations)


def growths_to_show(data: ReportData) -> list[Growth]:
    """Return the growths worth showing: those with a law, and start-up costs. Collectives have two
    without a law in every campaign of two layouts."""
    costs = {f"native:{name}" for name in STARTUP}
    return [one for one in growths(data) if one.law or one.benchmark in costs]


def unclear_cores(data: ReportData) -> dict[tuple[str, str], str]:
    """List (configuration, layout) whose ranks did not have a core each, or not for certain: by
    the cores of the machine and by what each rank said that it may run on, in any allocation."""
    machines = {a.id: _cpu(a.machine) for a in data.allocations}
    least = min((cores for cores, _ in machines.values() if cores), default=0)
    records: dict[tuple[str, str], list[EvidenceRecord]] = defaultdict(list)
    for record in data.evidence:
        records[record.configuration, record.layout].append(record)
    alike = next(iter(machines.values()), (0, {}))[1] if len(machines) == 1 else {}
    reasons: dict[tuple[str, str], str] = {}
    for key in {(row.configuration, row.layout) for row in data.values}:
        threads, known = _threads(key[1]), False
        shared = _too_many(key[1], least)
        for record in records[key]:
            ranks = record.evidence.ranks
            _, core_of = machines.get(record.allocation, (0, alike))
            shared = shared or overlapping(ranks, threads, core_of)
            known = known or any(rank.cores for rank in ranks)
        if shared:
            reasons[key] = SHARED
        elif not least and not known:
            reasons[key] = UNKNOWN
    return reasons


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
    match = LAYOUT_PATTERN.fullmatch(layout)
    return match is not None and 0 < cores < int(match["ranks"]) * int(match["threads"] or 1)


def _threads(layout: str) -> int:
    match = LAYOUT_PATTERN.fullmatch(layout)
    return int(match["threads"] or 1) if match else 1


def overlapping(
    ranks: Iterable[RankRecord], threads: int = 1, core_of: Mapping[int, int] | None = None
) -> bool:
    """Return whether the ranks of a machine that are confined to some cores are more than these
    serve.

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


def document(data: ReportData) -> list[GrowthKeys]:
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
    what = f"{one.benchmark}: {words.in_unit(one.metric, one.unit)}"
    size = f" at {numbers.size(one.size)}" if one.size else ""
    return f"{what}{size} against ranks, {one.series}"


def formula(law: Law) -> str:
    """`12 + 3.4 p^0.81`, p being ranks."""
    sign = "-" if law.b < 0 else "+"
    step = numbers.number(abs(law.b))
    match law.name:
        case "logarithm":
            return f"{numbers.number(law.a)} {sign} {step} log2 p"
        case "power":
            return f"{numbers.number(law.a)} {sign} {step} p^{law.c:g}"
    return f"{numbers.number(law.a)}, for any number of ranks"


def sentences(one: Growth) -> Iterator[str]:
    """Yield one series as sentences: what was measured, the law and why, what it predicts."""
    measured = ", ".join(f"{p.ranks}: {numbers.number(p.value)}" for p in one.points)
    yield f"{one.configuration}: {measured}" if measured else one.configuration
    if one.law is None:
        yield f"no law: {one.refused}"
        return
    yield f"law: {formula(one.law)} ({one.why})"
    predicted = ", ".join(
        f"{p.ranks}: {numbers.number(p.value)} {numbers.span((p.low, p.high))}"
        for p in one.predictions
    )
    yield f"PREDICTED, not measured: {predicted}"
    yield from _left_out(one)


def _left_out(one: Growth) -> Iterator[str]:
    return (f"left out: {layout}: {reason}" for layout, reason in one.left_out)


def figures(data: ReportData) -> tuple[Figure, ...]:
    """Give what was measured, the law, and what it predicts; why there is no law, for some."""
    plotted = count()
    return tuple(
        Figure(
            title(one),
            tuple(sentences(one)),
            partial(_html, one, next(plotted) if one.law else None),
            subject=one.configuration,
        )
        for one in growths_to_show(data)
    )


# ------------------------------------------------------------------ page


def plots(data: ReportData) -> list[dict[str, Any]]:
    """Return what the page's script draws of each series with a law. Nobody may take a prediction
    for a measurement: each point says which it is."""
    return [_plot(one, one.law) for one in growths_to_show(data) if one.law]


def _plot(one: Growth, law: Law) -> dict[str, Any]:
    measured = [(p.ranks, p.value, (p.lowest, p.highest)) for p in one.points]
    predicted = [(p.ranks, p.value, (p.low, p.high)) for p in one.predictions]
    first, last = measured[0][0], measured[-1][0]
    reach = max(ranks for ranks, *_ in (*measured, *predicted))
    steps = {first * (reach / first) ** (k / STEPS) for k in range(STEPS + 1)} | {last}
    return {
        "unit": f"{one.metric}, {one.unit}",
        "last": last,
        "law": [(p, law.at(p)) for p in sorted(steps)],
        **{
            kind: [
                (x, y, *bounds, f"{x} ranks: {numbers.number(y)} {numbers.span(bounds)}, {word}")
                for x, y, bounds in own
            ]
            for kind, own, word in (
                ("measured", measured, "measured"),
                ("predicted", predicted, PREDICTED),
            )
        },
    }


def _html(one: Growth, index: int | None) -> Html:
    """Render a chart and a table of a series with a law; else why it has none. `index` is that of
    its plot."""
    if one.law is None or index is None:
        return el("p", foreign(f"No law: {one.refused}."), class_="sub")
    caption = f"Law: {formula(one.law)} ({one.why})."
    reasons = (el("p", foreign(reason), class_="sub") for reason in _left_out(one))
    return join(chart("growth", f"{title(one)}.", caption, data_plot=index), _table(one), *reasons)


def _table(one: Growth) -> Html:
    measured = [
        (p.ranks, numbers.number(p.value), numbers.span((p.lowest, p.highest)),
         numbers.counted(p.launches, "launch"))
        for p in one.points
    ]  # fmt: skip
    predicted = [
        (p.ranks, numbers.number(p.value), numbers.span((p.low, p.high)), "predicted")
        for p in one.predictions
    ]
    heads = ("ranks", f"{one.metric}, {one.unit}", "range, or 95 % interval", "from")
    caption = f"Measured, and predicted up to {LAW_REACH} times as many ranks"
    return Table(caption, tuple(map(Column, heads)), (*measured, *predicted)).html("figures")
