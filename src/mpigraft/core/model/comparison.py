"""What a comparison says: cells, curves, noise, verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from mpigraft.core.model.records import Origin, SeriesKey
from mpigraft.core.model.vocabulary import Finding
from mpigraft.core.numbers import from_log

EXACT_FROM = 12  # rounds from which order statistics are about as short as Student's t


class Verdict(StrEnum):
    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    INCONCLUSIVE = "inconclusive"


class Cause(StrEnum):
    """What keeps curves from a verdict, as the headline counts them."""

    NOISE = "noise"
    LAUNCHES = "failed launches"
    MIXED = "sizes that differ in direction"
    SIZES = "single sizes that may differ"
    ROUNDS = "too few rounds"
    ORDER = "runs that did not alternate"
    MARGIN = "wide intervals"
    CHANCE = "chance not ruled out"
    LOOKS = "looks"


class NoiseKind(StrEnum):
    """How noise keeps a curve from a verdict."""

    BUSY = "disturbed rounds"  # too many for a verdict
    RESTS = "rests on disturbed rounds"
    SIZES = "sizes of the control"  # at which the baseline's two launches differ
    CONTROL = "width of the control"  # in percent


@dataclass(frozen=True, slots=True)
class NoVerdict:
    """Why a curve has no verdict."""

    cause: Cause
    text: str
    kind: NoiseKind | None = None  # None: noise is not the cause
    count: int | None = None  # of rounds, of sizes, or percent
    total: int | None = None  # what it is a part of

    @property
    def sentence(self) -> str:
        """The text that follows the curve's name."""
        match self.cause:
            case Cause.MIXED:
                return f"mixed: {self.text}"
            case Cause.SIZES:
                return self.text
        return f"no verdict: {self.text}"

    @property
    def brief(self) -> str:
        """The same where the curve's ratio and interval are shown beside it."""
        beside = self.cause in (Cause.MARGIN, Cause.CHANCE)
        return f"no verdict: {self.cause}" if beside else self.sentence


@dataclass(frozen=True, slots=True)
class Look:
    """A number of rounds after which curves are tested, and what that look may spend."""

    rounds: int  # of the campaign, from its first
    level: float  # a corrected p of at most this calls a curve
    extension: bool = False  # added by --resume --rounds, after the looks of the plan


@dataclass(frozen=True, slots=True)
class Cell:
    """One size of one comparison. `ratio` is configuration over baseline; `low` and `high`
    bound its 95 % interval and are None where a single round gives none."""

    size: int
    baseline: float
    value: float
    ratio: float
    low: float | None
    high: float | None
    verdict: Verdict
    rounds: int
    rounds_needed: int | None = None  # to decide an inconclusive cell; None: cannot be said


@dataclass(frozen=True, slots=True)
class JointBound:
    """The size that may differ most within a curve whose pooled ratio is equivalent, with bounds
    that hold for all sizes at once in 95 % of campaigns. The curve is equivalent if no size is
    `beyond`."""

    size: int
    low: float | None  # of the ratio; None: too few rounds
    high: float | None
    limit: float  # a fraction that no size may reach beyond
    beyond: tuple[int, ...] = ()  # sizes that do, or differ by more than the margin for sure


@dataclass(frozen=True, slots=True)
class Completion:
    """Launches of a curve that gave a value at each of its sizes, of those that were started."""

    completed: int
    launched: int
    baseline_completed: int
    baseline_launched: int
    p: float | None  # that chance alone parts them so; None: they are lost alike
    loser: str  # configuration or baseline, where chance does not explain it; else empty
    held: bool = False  # verdicts that rest on what the loser has left were held back


@dataclass(frozen=True, order=True, slots=True)
class LaunchCount:
    """Launches of a configuration on a layout: those that ended well, and all that ended."""

    configuration: str  # id
    layout: str
    completed: int
    launched: int


@dataclass(frozen=True, slots=True)
class CellGroup:
    """All sizes of one benchmark for one configuration against the baseline."""

    benchmark: str
    metric: str
    unit: str
    layout: str
    buffers: str
    configuration: str  # id
    cells: tuple[Cell, ...]
    curve: Verdict  # joint test over the sizes
    curve_p: float | None  # of that test, corrected for the campaign's curves
    pooled: float  # geometric mean of the ratios, at the sizes in `pooled_sizes`
    pooled_low: float | None
    pooled_high: float | None
    crossovers: tuple[int, ...] = ()  # sizes from which the better one changes
    curve_p_alone: float | None = None  # as if this were the campaign's only curve
    by_chance: float = 0.0  # faster and slower cells to expect of a curve without a difference
    repeats: str = ""  # metric of the same measurement that counts in its place
    joint: JointBound | None = None  # where the pooled ratio is equivalent
    autocorrelation: float | None = None  # of neighbouring rounds; None: not known
    effective_rounds: float | None = None  # what they are worth; None: as many as there are
    completion: Completion | None = None  # None: launches are not known
    look: int | None = None  # rounds of the look that called the curve; None: none has
    pooled_sizes: tuple[int, ...] = ()  # those that have every round; empty: all
    no_verdict: NoVerdict | None = None  # why the curve has none; None: it has one

    @property
    def series(self) -> SeriesKey:
        return SeriesKey(self.benchmark, self.metric, self.layout, self.buffers)

    @property
    def withheld(self) -> str:
        """Why noise leaves the curve without a verdict; empty: it does not."""
        reason = self.no_verdict
        return reason.text if reason and reason.cause is Cause.NOISE else ""

    @property
    def used_sizes(self) -> tuple[int, ...]:
        """Sizes that `pooled` is over."""
        return self.pooled_sizes or tuple(cell.size for cell in self.cells)

    def ratio_over(self, sizes: tuple[int, ...]) -> float:
        """Compute the geometric mean of the ratios at some sizes."""
        if sizes == self.used_sizes:
            return self.pooled
        logs = [math.log(cell.ratio) for cell in self.cells if cell.size in sizes]
        return from_log(sum(logs) / len(logs))


def common_sizes(groups: Iterable[CellGroup]) -> tuple[int, ...]:
    """Return the sizes that all of these curves have. Over other sizes, means shown side by side
    would differ because their sizes do."""
    sizes = [set(group.used_sizes) for group in groups]
    return tuple(sorted(set.intersection(*sizes))) if sizes else ()


def shared_reason(groups: Iterable[CellGroup]) -> str:
    """Return why a campaign can have no verdict at all: the one reason of all its curves, if it is
    the number or the order of its runs. Else empty."""
    reasons = {group.no_verdict for group in groups}
    reason = reasons.pop() if len(reasons) == 1 else None
    return reason.text if reason and reason.cause in (Cause.ROUNDS, Cause.ORDER) else ""


@dataclass(frozen=True, slots=True)
class Value:
    """One configuration at one size of one series, in the metric's unit."""

    value: float
    rounds: tuple[float, ...]  # the value of each
    launches: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of this machine, by the baseline's two launches per round, per benchmark."""

    benchmark: str
    layout: str
    margin: float  # max(3 %, median over sizes of |median ratio of the control - 1|)
    spread: float  # half-width of a typical cell's 95 % interval, as a fraction
    false_verdicts: int  # cells of the control that would have been called
    cells: int


@dataclass(frozen=True, slots=True)
class Comparison:
    campaign: str
    baseline: str  # id
    origin: Origin
    rounds: int
    groups: tuple[CellGroup, ...]
    noise: tuple[Noise, ...]
    findings: tuple[Finding, ...]
    summary: tuple[str, ...] = field(default=())  # readable lines, most useful first
    launches: tuple[LaunchCount, ...] = ()
    looks: tuple[Look, ...] = ()  # all that are planned
    taken: int = 0  # how many of them: their rounds are over


@dataclass(frozen=True, slots=True)
class AcrossRule:
    """How two campaigns are compared with each other."""

    margin: float = 0.03
    level: float = 0.04  # of the joint test
    chosen: tuple[str, ...] = ()  # OLD=NEW of configurations that are matched by hand
    partial: bool = False  # imported tables that may be cut count as whole


@dataclass(frozen=True, slots=True)
class CurveLevel:
    """The level of a curve in one campaign."""

    key: SeriesKey
    configuration: str  # key
    logs: dict[int, float]  # median of the logarithms at each size
    error: float  # standard error of their mean, by the launches
    rounds: int
