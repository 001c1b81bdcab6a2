"""The programs of a suite, so that a campaign can start them.

A suite of others is a module with the functions of `ProgramSuite` and a line in the registry. It
computes: nothing is started here, and the one who starts a program hands its output to `read`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from mpigraft.bench.suites.base import Parsed
from mpigraft.bench.suites.rank_files import RankFiles
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Benchmark, EnvRow, Layout, Machine, MpiInstall
from mpigraft.request import CampaignSpec


class Ranks(StrEnum):
    """With how many ranks a benchmark can run."""

    PAIR = "exactly 2 ranks"
    EVEN = "an even number of ranks"
    SEVERAL = "2 ranks or more"
    PLANE = "ranks for a grid of 2x2 or larger"
    SPACE = "ranks for a grid of 2x2x2 or larger"
    NODES = "2 nodes or more"
    ANY = "any number of ranks"

    def fit(self, layout: Layout) -> bool:
        match self:
            case Ranks.PAIR:
                return layout.ranks == 2
            case Ranks.EVEN:
                return layout.ranks >= 2 and layout.ranks % 2 == 0
            case Ranks.SEVERAL:
                return layout.ranks >= 2
            case Ranks.PLANE:
                return count_factors(layout.ranks) >= 2
            case Ranks.SPACE:
                return count_factors(layout.ranks) >= 3
            case Ranks.NODES:
                return layout.nodes >= 2
            case Ranks.ANY:
                return True


def count_factors(number: int) -> int:
    """Count the prime factors of a number: 12 has three, so it makes a grid of 2x2x3."""
    count, divisor = 0, 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            number //= divisor
            count += 1
        divisor += 1
    return count + (number > 1)


@dataclass(frozen=True, slots=True)
class Tool:
    """A program of a suite, where ranks see it: on this machine or in a guest."""

    words: tuple[str, ...]  # what a rank starts, without options
    source: str  # where it was found, as text
    options: frozenset[str] = frozenset()  # letters that this version understands
    folder: Path | None = None  # where its ranks start; None: an empty folder
    files: tuple[Path, ...] = ()  # besides the program: what may not change while a campaign runs
    output: Path | None = None  # the file that has the figure; None: standard output
    limit_s: float = 0.0  # of one launch; 0: the campaign's
    success: str = ""  # a pattern that a launch with values has printed, or written to `output`
    rows: tuple[EnvRow, ...] = ()  # of the environment, for its ranks
    advice: str = ""  # what to do where it does not fit
    whole: bool = False  # whether a launch that failed has no value at all
    # Writes what its ranks read on a layout, unless it is there. None: they read no file of ours.
    prepare: Callable[[Layout], None] | None = field(default=None, compare=False)

    def output_on(self, layout: Layout) -> Path | None:
        """Return the file that has the figure on a layout, whose numbers its name may have."""
        return Path(filled(str(self.output), layout)) if self.output else None


def filled(text: str, layout: Layout) -> str:
    """Return a text with the numbers of the layout: {nodes}, {ranks}, {ranks_per_node}, {threads}.
    Other braces stay as they are."""
    for name in ("nodes", "ranks", "ranks_per_node", "threads"):
        text = text.replace(f"{{{name}}}", str(getattr(layout, name)))
    return text


class ProgramSuite(Protocol):
    """A suite whose benchmarks are programs of their own."""

    def names(self, spec: CampaignSpec) -> tuple[str, ...]:
        """Return every benchmark that a campaign can name."""

    def check(self, benchmark: Benchmark, spec: CampaignSpec) -> None:
        """Raise UsageError for a name or an option that the suite does not have."""

    def ranks(self, benchmark: Benchmark, spec: CampaignSpec) -> Ranks: ...

    def folders(self, spec: CampaignSpec, machine: Machine) -> tuple[str, ...]:
        """Return folders of this machine that may have its programs, for a guest that lacks
        them."""

    def tools(
        self,
        benchmark: Benchmark,
        spec: CampaignSpec,
        machine: Machine,
        files: RankFiles,
        mpi: MpiInstall,
    ) -> Iterator[Tool]:
        """Return programs that could be started, best first; whether one fits `mpi` is not known
        yet."""

    def missing(self, benchmark: Benchmark, spec: CampaignSpec) -> str:
        """Return advice for a suite without programs."""

    def words(
        self, benchmark: Benchmark, tool: Tool, spec: CampaignSpec, layout: Layout
    ) -> tuple[str, ...]:
        """Return the command line of one rank."""

    def read(self, benchmark: Benchmark, data: bytes, spec: CampaignSpec, source: str) -> Parsed:
        """Measurements of one launch. Raises UsageError for what cannot be an output of it."""


def refuse_options(benchmark: Benchmark, known: dict[str, tuple[str, ...]]) -> None:
    """Raise UsageError for an option that is not known or has another value; no values: a
    number."""
    for option, value in benchmark.options:
        number = value.isascii() and value.isdigit() and int(value) > 0
        if option not in known or not (value in known[option] or (not known[option] and number)):
            raise unknown_option(benchmark, option, value, known)


def unknown_option(
    benchmark: Benchmark,
    option: str,
    value: str,
    known: Mapping[str, Collection[str]],
    shown: str = "",
) -> UsageError:
    """Make the error of an option that a benchmark does not have, or not with this value."""
    all_of = "; ".join(f"{k}={'|'.join(v) or 'N'}" for k, v in known.items())
    word, names = (value, known[option]) if option in known else (option, known)
    return UsageError.unknown(
        "benchmark-option-unknown",
        word,
        names,
        key=benchmark.key,
        option=option,
        value=value,
        known=shown or all_of or "it has no options",
    )


def refuse_unknown(benchmark: Benchmark, names: tuple[str, ...]) -> None:
    if benchmark.name not in names:
        known = (f"{benchmark.suite}:{one}" for one in names)
        name = f"{benchmark.suite}:{benchmark.name}"
        raise UsageError.unknown("benchmark-unknown", name, known)


def refuse_absent(flag: str, paths: Iterable[str], spec: CampaignSpec) -> None:
    """Raise UsageError for a build that is not there: another one in PATH is not meant. One that
    an image may have is looked for when the image is opened."""
    for text in paths:
        if not spec.image and not Path(text).is_dir():
            raise UsageError.of("suite-folder-missing", flag=flag, path=text, where="")
