"""Over nodes: sections of one benchmark on several layouts, and what of them is drawn over nodes.

A card has all layouts of a benchmark. A view has those that differ in one number only, nodes or
ranks per node, so that a curve can go through them. Each class of message sizes is shown at one
size, the one that most layouts have: over sizes that change from layout to layout, a mean would
change with them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mpigraft.core import numbers
from mpigraft.core.model import LAYOUT_PATTERN, Comparison, SeriesKey
from mpigraft.report.wording.counts import Section, Subject, sections

CLASSES = (("small", 1, 1 << 10), ("medium", 1 << 10, 1 << 16), ("large", 1 << 16, 1 << 62))


@dataclass(frozen=True, slots=True)
class View:
    """Layouts of one benchmark that differ in one number."""

    axis: str  # what it counts: nodes, ranks per node
    series: str  # what the layouts share: "128 ranks per node", "on 2 nodes"
    points: tuple[tuple[int, Section], ...]  # by number
    sizes: tuple[tuple[str, int], ...]  # (class, the size that represents it)


@dataclass(frozen=True, slots=True)
class Card(Subject):
    """One benchmark on all its layouts; `layout` is that of the first."""

    sections: tuple[Section, ...]

    @property
    def views(self) -> tuple[View, ...]:
        return _views(self.sections)


def cards(comparison: Comparison) -> tuple[Card, ...]:
    """Cards in the comparison's own order; sections keep theirs within each."""
    together: dict[SeriesKey, list[Section]] = {}
    for section in sections(comparison):
        together.setdefault(section.series._replace(layout=""), []).append(section)
    return tuple(
        Card(
            **own[0].series._asdict(),
            unit=own[0].unit,
            better=own[0].better,
            sections=tuple(own),
        )
        for own in together.values()
    )


def card_label(card: Card, every: tuple[Card, ...]) -> str:
    """Write a benchmark's name without its suite, with its metric and its buffers where there
    are more than one."""
    name = card.benchmark.partition(":")[2] or card.benchmark
    alike = [one for one in every if one.benchmark == card.benchmark]
    if len({one.metric for one in alike}) > 1:
        name += f" {card.quantity}"
    return name if len({one.buffers for one in alike}) == 1 else f"{name} {card.buffers}"


def _views(every: Sequence[Section]) -> tuple[View, ...]:
    """Cut the layouts into views: those of most layouts first, none within another."""
    groups: dict[tuple[str, str, str], dict[int, Section]] = defaultdict(dict)
    for section in every:
        for key, number in _axes(section.layout):
            groups[key][number] = section
    views: list[View] = []
    for (axis, series, _), points in sorted(groups.items(), key=lambda item: -len(item[1])):
        layouts = {section.layout for section in points.values()}
        covered = any(layouts <= {s.layout for _, s in view.points} for view in views)
        ordered = tuple(sorted(points.items()))
        sizes = _sizes([section for _, section in ordered])
        if len(points) > 1 and sizes and not covered:
            views.append(View(axis, series, ordered, sizes))
    return tuple(views)


def _axes(layout: str) -> Iterator[tuple[tuple[str, str, str], int]]:
    """Give the axes that a layout has a place on, (axis, series, options), and its place on
    each."""
    match = LAYOUT_PATTERN.fullmatch(layout)
    if match is None:
        return
    nodes, ranks = int(match["nodes"]), int(match["ranks"])
    options = layout[match.end("ranks") :]
    with_options = f" ({options})" if options else ""
    yield ("nodes", f"{numbers.counted(ranks, 'rank')} per node{with_options}", options), nodes
    yield ("ranks per node", f"on {numbers.counted(nodes, 'node')}{with_options}", options), ranks


def missing_places(view: View, layouts: Iterable[str]) -> list[int]:
    """Places between a view's at which there were launches, and nothing was compared."""
    known = [number for number, _ in view.points]
    places = (
        number
        for layout in layouts
        for (axis, series, _), number in _axes(layout)
        if (axis, series) == (view.axis, view.series) and known[0] < number < known[-1]
    )
    return sorted({*places}.difference(known))


def _sizes(every: Sequence[Section]) -> tuple[tuple[str, int], ...]:
    """Choose one size of each class: of those that most layouts have, the middle one."""
    counts = Counter(size for section in every for size in section.sizes)
    if not any(counts.keys() - {0}):
        return (("", 0),)
    chosen = []
    for name, low, high in CLASSES:
        own = {size: n for size, n in counts.items() if low <= size < high}
        most = max(own.values(), default=0)
        if most > 1:
            alike = sorted(size for size, n in own.items() if n == most)
            chosen.append((name, alike[(len(alike) - 1) // 2]))
    return tuple(chosen)
