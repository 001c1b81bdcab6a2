"""How precise a campaign is, and what more precision would cost.

An interval shrinks with the square root of the rounds, so a half-width `spread` at R rounds
needs about R x (spread / target)^2 rounds for `target`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from mpigraft.analysis import MIN_ROUNDS
from mpigraft.core import numbers
from mpigraft.core.model import CellGroup, LaunchRecord, Origin, Verdict
from mpigraft.report.contents import ReportData
from mpigraft.report.wording.counts import cells, count

TARGET = 0.05  # the precision that most choices between two MPIs need
UNKNOWN = 1.0  # half-width from which on a value is not known, nor are the rounds for TARGET


@dataclass(frozen=True, slots=True)
class Precision:
    """How precise a campaign is. Fractions are of the ratio; None where the data cannot say."""

    rounds: int
    cells: int
    inconclusive: int
    spread: float | None  # half-width of a typical cell's 95 % interval
    false_verdicts: int  # cells of the control that would have been called
    aa_cells: int
    target_rounds: int | None  # rounds for TARGET
    round_s: float | None
    single: bool  # no cell has an interval

    @property
    def line(self) -> str:
        """One sentence, most important limit first."""
        if not self.cells:
            return self._uncompared
        if self.single:
            return (
                f"{numbers.counted(self.rounds, 'round')}: values have no interval, "
                f"so all {self.cells} cells are inconclusive"
            )
        parts, wild = (
            [numbers.counted(self.rounds, "round")],
            self.spread is not None and self.spread > UNKNOWN,
        )
        if wild:
            parts.append("the ratio at a typical size is uncertain by more than ±100 %")
        elif self.spread is not None:
            parts.append(
                f"the ratio at a typical size is uncertain by ±{numbers.percent(self.spread)}"
            )
        parts.append(f"{self.inconclusive} of {self.cells} cells inconclusive")
        if self.aa_cells:
            parts.append(
                "control (baseline against itself): "
                f"{self.false_verdicts} of {self.aa_cells} false verdicts"
            )
        return "; ".join(parts if wild else [*parts, *self._cost])

    @property
    def _uncompared(self) -> str:
        """What is known where only the baseline has values."""
        parts = [f"{numbers.counted(self.rounds, 'round')}; nothing to compare"]
        if self.spread is not None and self.spread > UNKNOWN:
            parts.append("values vary too much from round to round to compare others with them")
        elif self.spread is not None:
            known = numbers.percent(self.spread)
            parts.append(f"a ratio to the baseline would be known to ±{known}")
            parts += self._cost
        return "; ".join(parts)

    @property
    def _cost(self) -> list[str]:
        """What the target would take, where it was missed."""
        if self.target_rounds is None or self.target_rounds <= self.rounds:
            return []
        cost = f"±{numbers.percent(TARGET)} needs about {self.target_rounds} rounds"
        return [cost + _took(self.target_rounds, self.round_s)]


def precision(data: ReportData) -> Precision:
    comparison = data.comparison
    every = cells(comparison)
    spreads = [n.spread for n in comparison.noise if math.isfinite(n.spread) and n.spread > 0]
    spread = median(spreads) if spreads else None
    needed = None
    if spread is not None and comparison.rounds > 0:
        needed = math.ceil(comparison.rounds * (spread / TARGET) ** 2 - 1e-9)
    return Precision(
        rounds=comparison.rounds,
        cells=len(every),
        inconclusive=count(every)[Verdict.INCONCLUSIVE],
        spread=spread,
        false_verdicts=sum(n.false_verdicts for n in comparison.noise),
        aa_cells=sum(n.cells for n in comparison.noise),
        target_rounds=needed,
        round_s=round_seconds(data.launches),
        single=comparison.origin is Origin.IMPORT or all(c.low is None for c in every),
    )


def round_seconds(launches: tuple[LaunchRecord, ...]) -> float | None:
    """Median over the rounds of the wall time that a round's launches took together."""
    totals: dict[tuple[str, int], float] = {}
    for launch in launches:
        place = (launch.allocation, launch.round)
        totals[place] = totals.get(place, 0.0) + launch.wall_s
    total = median(totals.values()) if totals else 0.0
    return total if total > 0 else None


def deciding(data: ReportData) -> str:
    """Return how many rounds would decide the inconclusive cells; empty when nothing can be said.

    Two marks rather than one: the last few cells lie on the margin itself and would ask for
    more rounds than anyone will run.
    """
    if (needed := _needed(data)) is None:
        return ""
    half, most = needed
    if most == half:
        return _half(half, data)
    took = _took(most, round_seconds(data.launches))
    return f"{_half(half, data)}, {most} rounds{took} nine in ten"


def extension(data: ReportData) -> str:
    """Write the command that measures the rounds that would decide half of the inconclusive
    cells, or those that are planned and not measured yet; empty where nothing would."""
    needed, campaign = _needed(data), data.campaign
    if needed is None or campaign.origin is not Origin.RUN:
        return ""
    command = f"mpigraft {'submit' if data.submitted else 'bench'} --resume {campaign.id[:8]}"
    return command if needed[0] <= campaign.rounds else f"{command} --rounds {needed[0]}"


def next_step(data: ReportData) -> tuple[str, str] | None:
    """Return how many rounds would decide half of the inconclusive cells, and the command that
    measures them; None where nothing would."""
    needed, command = _needed(data), extension(data)
    if needed is None or not command:
        return None
    return _half(needed[0], data), command


def _half(rounds: int, data: ReportData) -> str:
    took = _took(rounds, round_seconds(data.launches))
    return f"{rounds} rounds{took} would decide half of the inconclusive cells"


def _needed(data: ReportData) -> tuple[int, int] | None:
    """List rounds that would decide half of the inconclusive cells, and nine in ten. Those of
    what a look has ended are not measured again."""
    if data.comparison.rounds < MIN_ROUNDS:
        return None  # few rounds do not say how many more decide: a finding has the number
    stops = sum(not look.extension for look in data.comparison.looks) > 1
    needed = sorted(
        c.rounds_needed
        for group in data.comparison.groups
        if (not stops or group.look is None or group.withheld) and not _loses_launches(group)
        for c in group.cells
        if c.verdict is Verdict.INCONCLUSIVE and c.rounds_needed is not None
    )
    if not needed:
        return None
    return needed[(len(needed) - 1) // 2], needed[(len(needed) * 9 - 1) // 10]


def _loses_launches(group: CellGroup) -> bool:
    """Return whether launches that failed hold it back, which more rounds do not mend."""
    return group.completion is not None and bool(group.completion.loser)


def _took(rounds: int, round_s: float | None) -> str:
    return f" ({numbers.duration(rounds * round_s)})" if round_s else ""
