"""Known issues of MPIs, transports and launchers, each with what detects it: issues.toml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Self

from mpigraft.core.model import Family
from mpigraft.core.numbers import read_size
from mpigraft.knowledge.reader import Document, RowError, load_document, read_rows
from mpigraft.knowledge.transports.rows import When


class Certainty(StrEnum):
    """How sure a diagnosis is, the surest first."""

    MEASURED = "measured"  # the values themselves are what the issue is about
    MATCHES = "matches"  # a line, a fact or a step that only this issue is known to give
    POSSIBLE = "possible"  # it fits, and other causes would look the same


class Shape(StrEnum):
    """What a curve does over its sizes; better and worse are those of its metric."""

    DROP = "drop"  # flat, and then better by a step, though messages grow
    CLIFF = "cliff"  # worse by a step, and not better again at the next sizes
    HUMP = "hump"  # worse by a step for several sizes, and then as before
    ODD = "odd"  # one size is worse than both of its neighbours
    PLATEAU = "plateau"  # the same rate at the largest sizes, within `rate`


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Numbers from `low` to `high`, both included: bytes, or a rate."""

    low: float
    high: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `64..4KiB`. Raises ValueError for anything else."""
        low, dots, high = text.partition("..")
        span = cls(read_size(low), read_size(high if dots else low))
        if span.low > span.high:
            raise ValueError(f"{text!r} ends before it begins")
        return span

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high


EVERY = NumberRange(0, float("inf"))


@dataclass(frozen=True, slots=True)
class Affected(When):
    """The MPIs and machines that an issue is known of."""

    families: tuple[Family, ...] = ()


@dataclass(frozen=True, slots=True)
class MachineFact:
    """A text of a machine's description: `at` is its place, names and * with dots between them."""

    at: str
    like: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class CurveFilter:
    """The curves that a detector examines. Empty: any."""

    benchmarks: tuple[str, ...] = ()  # names without the suite, in small letters
    metric: str = ""
    device: bool = False  # only those of buffers on GPUs
    nodes: int = 0  # only those of so many
    sizes: NumberRange = EVERY  # where the step or the odd size is
    factor: float = 2.0  # how much worse or better at least


@dataclass(frozen=True, slots=True)
class CurveShape(CurveFilter):
    shape: Shape = field(kw_only=True)
    rate: NumberRange | None = None  # of a plateau

    def __post_init__(self) -> None:
        if (self.shape is Shape.PLATEAU) is not (self.rate is not None):
            raise RowError("rate", "only a plateau has one, and needs it")


class Reference(StrEnum):
    """What a curve is divided by."""

    BASELINE = "baseline"
    FEWER_RANKS = "fewer-ranks"  # the same configuration with fewer ranks on as many nodes


@dataclass(frozen=True, slots=True)
class CurveRatio(CurveFilter):
    """A curve that is worse than another one in `sizes`; `elsewhere` by less than that."""

    to: Reference = Reference.BASELINE
    elsewhere: float = 0.0  # 0: other sizes do not matter


@dataclass(frozen=True, slots=True)
class RoutineShare:
    """Routines that take a share of a program's time in its profile."""

    routines: tuple[str, ...] = ()  # without MPI_; empty: any
    share: float = 0.0  # at least, as a fraction
    grows: float = 0.0  # by this factor with the ranks; 0: it need not
    one_side: bool = False  # the profile that is the baseline does not have it


@dataclass(frozen=True, slots=True)
class Detectors:
    """What detects an issue; each alone is enough, but for `version` and `fact`, which must both
    hold of a machine where both are there."""

    text: re.Pattern[str] | None = None  # of a job's output
    version: Affected | None = None
    fact: MachineFact | None = None
    curve: CurveShape | None = None
    ratio: CurveRatio | None = None
    profile: RoutineShare | None = None
    sure: Certainty | None = None  # None: as USUAL says

    def certainty(self, kind: str) -> Certainty:
        """Return how sure a finding of one of these kinds is."""
        return self.sure or USUAL[kind]

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(kind for kind in USUAL if getattr(self, kind) is not None)


USUAL: Mapping[str, Certainty] = {
    "text": Certainty.MATCHES,
    "fact": Certainty.MATCHES,
    "curve": Certainty.POSSIBLE,
    "ratio": Certainty.POSSIBLE,
    "profile": Certainty.POSSIBLE,
    "version": Certainty.POSSIBLE,
}


@dataclass(frozen=True, slots=True)
class KnownIssue:
    id: str
    symptom: str
    affects: str
    cause: str
    fix: str
    sources: tuple[str, ...]
    evidence: tuple[str, ...]
    detect: Detectors = Detectors()
    setting: tuple[str, ...] = ()  # NAME=VALUE that mend it or work around it

    def __post_init__(self) -> None:
        for words in self.setting:
            if not re.fullmatch(r"[A-Z_][A-Za-z0-9_]*=\S*", words):
                raise RowError("setting", f"{words!r} is not NAME=VALUE")


@dataclass(frozen=True, slots=True)
class IssueMatch:
    """An issue that something detected. `kind` is a field of Detectors."""

    issue: KnownIssue
    kind: str
    message: str  # what it was detected by, with numbers and sizes
    of: str = ""  # the file, the MPI or the curve
    level: float = 0.0  # how far from what was expected, as a factor; 0: no number
    benchmark: str = ""  # of the curve

    @property
    def sure(self) -> Certainty:
        return self.issue.detect.certainty(self.kind)


@cache
def known_issues() -> tuple[KnownIssue, ...]:
    """Return every known issue of issues.toml. Raises UsageError for a wrong row."""
    return read_issues(load_document("issues.toml"))


def read_issues(data: Document, file: str = "issues.toml") -> tuple[KnownIssue, ...]:
    """Read known issues. Raises UsageError for a wrong row."""
    return read_rows(KnownIssue, "issue", data, file)
