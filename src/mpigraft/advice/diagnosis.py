"""What is known to explain what was examined, the surest first."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mpigraft.advice.examined import Examined
from mpigraft.analysis import issues_of_curves, issues_of_profiles
from mpigraft.evidence import issues_in_output, issues_of_machine
from mpigraft.knowledge import Certainty, IssueMatch, KnownIssue

ORDER = (*Certainty,)
MACHINE = ("version", "fact")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One known issue, with all that shows it, the clearest first."""

    issue: KnownIssue
    sure: Certainty
    matches: tuple[IssueMatch, ...]

    @property
    def setting(self) -> str:
        """The fix as an option of `bench` or `run` to paste; empty: it is no variable."""
        words = shlex.quote(f"{self.issue.id.lower()}:{' '.join(self.issue.setting)}")
        return f"--setting {words}" if self.issue.setting else ""

    @property
    def confirm(self) -> str:
        """Give one command that confirms or refutes it."""
        first = self.matches[0]
        if first.kind == "profile":
            return "mpigraft profile -n RANKS -- PROGRAM"
        if first.kind in MACHINE and not self.setting:
            return "mpigraft discover --full"
        words = ["mpigraft bench", *([f"--benchmark {first.benchmark}"] if first.benchmark else [])]
        return " ".join([*words, self.setting or "--rounds 6"])


def diagnose(examined: Examined) -> tuple[Diagnosis, ...]:
    """Gather the issues that curves, outputs and machines show."""
    issues: dict[str, list[IssueMatch]] = {}
    for match in _matches(examined):
        issues.setdefault(match.issue.id, []).append(match)
    return tuple(sorted(map(_diagnosis, issues.values()), key=_place))


def _matches(examined: Examined) -> Iterator[IssueMatch]:
    yield from issues_of_curves(examined.curves, examined.baseline)
    yield from issues_of_profiles(examined.profiles, examined.baseline)
    for name, text in examined.outputs:
        yield from issues_in_output(text, name)
    for machine in examined.machines:
        yield from issues_of_machine(machine)


def _diagnosis(matches: Iterable[IssueMatch]) -> Diagnosis:
    ordered = sorted(matches, key=lambda match: (ORDER.index(match.sure), -match.level))
    return Diagnosis(ordered[0].issue, ordered[0].sure, tuple(ordered))


def _place(found: Diagnosis) -> tuple[int, float, str]:
    return ORDER.index(found.sure), -found.matches[0].level, found.issue.id
