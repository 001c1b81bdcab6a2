"""A comparison cut into sections: what shares a benchmark, layout and buffers is shown together."""

from __future__ import annotations

from dataclasses import dataclass

from mpigraft.core.model import (
    METRICS,
    Better,
    Cell,
    CellGroup,
    Comparison,
    Noise,
    SeriesKey,
    Verdict,
    metric_name,
)


@dataclass(frozen=True, slots=True)
class Subject:
    """What values of one section share."""

    benchmark: str
    metric: str
    unit: str
    better: Better
    layout: str
    buffers: str

    @property
    def series(self) -> SeriesKey:
        return SeriesKey(self.benchmark, self.metric, self.layout, self.buffers)

    @property
    def quantity(self) -> str:
        """The metric's readable name."""
        return metric_name(self.metric)

    @property
    def place(self) -> str:
        """Layout and buffers for a headline; buffers only where they are not the host's."""
        return self.layout if self.buffers == "host" else f"{self.layout}, {self.buffers} buffers"


@dataclass(frozen=True, slots=True)
class Section(Subject):
    """All configurations on one benchmark, layout and kind of buffers."""

    groups: tuple[CellGroup, ...]
    noise: Noise | None

    @property
    def repeats(self) -> str:
        """That this is a measurement which another metric has already; else empty."""
        metric = next((g.repeats for g in self.groups if g.repeats), "")
        return f"the same measurement as its {metric}, counted once" if metric else ""

    def of(self, configuration: str) -> CellGroup | None:
        """Return a configuration's curve; None: it has none."""
        return next((g for g in self.groups if g.configuration == configuration), None)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(sorted({cell.size for group in self.groups for cell in group.cells}))

    @property
    def baseline(self) -> dict[int, float]:
        """The baseline's value at each size, from the configuration that shares most rounds."""
        values: dict[int, float] = {}
        cells = (cell for group in self.groups for cell in group.cells)
        for cell in sorted(cells, key=lambda cell: -cell.rounds):
            values.setdefault(cell.size, cell.baseline)
        return dict(sorted(values.items()))


def sections(comparison: Comparison) -> tuple[Section, ...]:
    """Sections in the comparison's own order; configurations keep theirs within each."""
    noise = {(n.benchmark, n.layout): n for n in comparison.noise}
    together: dict[SeriesKey, list[CellGroup]] = {}
    for group in comparison.groups:
        together.setdefault(group.series, []).append(group)
    return tuple(
        Section(
            **key._asdict(),
            unit=groups[0].unit,
            better=METRICS[key.metric].better if key.metric in METRICS else Better.LOWER,
            groups=tuple(groups),
            noise=noise.get((key.benchmark, key.layout)),
        )
        for key, groups in together.items()
    )


def distinct_curves(comparison: Comparison) -> list[CellGroup]:
    """Give the curves that are measurements of their own: two metrics of one count once."""
    return [group for group in comparison.groups if not group.repeats]


def cells(comparison: Comparison) -> list[Cell]:
    """Give the cells of these."""
    return [cell for group in distinct_curves(comparison) for cell in group.cells]


def tally(comparison: Comparison) -> str:
    """`2 faster, 5 slower, 0 equivalent, 39 inconclusive cells; chance alone would call about 0.4`:
    what single cells are worth."""
    counts = count(cells(comparison))
    text = ", ".join(f"{number} {verdict}" for verdict, number in counts.items()) + " cells"
    if not counts[Verdict.FASTER] + counts[Verdict.SLOWER]:
        return text
    chance = sum(group.by_chance for group in distinct_curves(comparison))
    about = f"about {chance:.1f}" if chance >= 0.05 else "fewer than 0.1"
    return f"{text}; chance alone would call {about}"


def count(cells: list[Cell]) -> dict[Verdict, int]:
    """Return how many cells have each verdict, every verdict named."""
    return {verdict: sum(c.verdict is verdict for c in cells) for verdict in Verdict}


def completed_counts(comparison: Comparison) -> tuple[tuple[str, str, str], ...]:
    """List (configuration, layout, `17 of 20`) of all, if any launch of any was lost; else
    nothing."""
    counts = comparison.launches
    if all(count.completed == count.launched for count in counts):
        return ()
    return tuple((c.configuration, c.layout, f"{c.completed} of {c.launched}") for c in counts)
