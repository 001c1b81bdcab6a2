"""A campaign's progress: a bar with the time left on a terminal, plain lines in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import rich.progress
from rich.console import RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from mpigraft.bench import Campaign, LaunchOutcome, Step
from mpigraft.cli.common import console
from mpigraft.core import env
from mpigraft.core.model import Configuration, Evidence, Layout, Level, Look, ProofStatus
from mpigraft.core.numbers import counted, duration
from mpigraft.report import Provisional, effects_text, lanes


class Bar(rich.progress.Progress):
    """A bar, below what the rounds of a campaign show until now."""

    provisional: Sequence[str] = ()

    def get_renderables(self) -> Iterable[RenderableType]:
        """Give what is drawn anew, again and again, and removed at the end."""
        for line in self.provisional:
            yield Text(line, "dim", no_wrap=True, overflow="ellipsis")
        yield from super().get_renderables()


def make_bar(*columns: ProgressColumn, transient: bool = False) -> Bar:
    """Return a bar on stderr, for `with`; in a pipe nothing but what its console prints."""
    shown = console(stderr=True)
    return Bar(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        *columns,
        console=shown,
        disable=not shown.is_terminal,
        transient=transient,
    )


class Progress:
    """Show the steps of a campaign on stderr; results go to stdout elsewhere."""

    def __init__(self) -> None:
        left = TimeRemainingColumn(elapsed_when_finished=True)
        self.bar = make_bar(MofNCompleteColumn(), left, transient=True)
        self.task = self.bar.add_task("proving transports", total=None)
        self.rounds = 0
        self.launches = 0
        self.done = 0
        self.round = -1
        self.provisional = Provisional("")
        self.spent_s = 0.0  # in launches: the time that transports were proved in says nothing

    def began(self, campaign: Campaign, launches: int) -> None:
        self.rounds = campaign.spec.rounds
        self.launches = launches
        self.provisional = Provisional(campaign.baseline.id)
        arms = len(campaign.configurations)
        counts = ((arms, "configuration"), (self.rounds, "round"), (launches, "launch"))
        self._say(", ".join(counted(*count) for count in counts))
        self._say(f"baseline: {campaign.baseline.id}")

    def proved(self, configuration: Configuration, layout: Layout, evidence: Evidence) -> None:
        proven = any(one.standing is ProofStatus.PROVEN for one in evidence.proof)
        mark = "FAILED" if not evidence.ok else "proven" if proven else "nothing to prove"
        ran = lanes(evidence.ran) or "nothing ran"
        effects = effects_text(evidence)
        setting = f"; setting: {effects}" if effects else ""
        self._say(f"  {mark}: {configuration.id} {layout.key}: {ran}{setting}")
        for finding in evidence.findings:
            if finding.level is Level.ERROR:
                self._say(f"    {finding.code}: {finding.message}")

    def launched(self, step: Step, outcome: LaunchOutcome, wall_s: float) -> None:
        self.done += 1
        self.spent_s += wall_s
        self.provisional.add(
            step.configuration.id, step.layout.key, step.round, outcome.measurements
        )
        if step.round != self.round:
            if self.bar.console.is_terminal and self.round >= 0:
                width = self.bar.console.width
                self.bar.provisional = self.provisional.lines(step.round, self.rounds, width)
            self.round = step.round
            self.started_round(step.round)
        self.bar.update(
            self.task,
            total=self.launches,
            completed=self.done,
            description=f"round {step.round + 1}/{self.rounds}",
        )
        if not outcome.measurements:
            reason = outcome.findings[0].message if outcome.findings else outcome.state
            what = f"{step.configuration.id} {step.program}".rstrip()
            self._say(f"  {outcome.state}: {what}, {wall_s:.1f} s: {reason}")

    def looked(self, look: Look, open_curves: int, launches: int) -> None:
        """Curves that are called need no more launches, which shortens what is left."""
        self.launches = self.done + launches
        curves = counted(open_curves, "curve") if open_curves else "no curve"
        rest = counted(launches, "launch")
        self._say(f"look after {look.rounds} rounds: {curves} open, {rest} left")

    def grew(self, rounds: int, planned: int, launches: int) -> None:
        """Say why the campaign is longer than planned."""
        self.rounds, self.launches = rounds, self.launches + launches
        more = counted(rounds - planned, "spare round")
        self._say(f"{more}: other processes used the CPU in some of the first {planned}")

    def started_round(self, number: int) -> None:
        """In a pipe a bar is noise: one line a round, with the time left."""
        if self.bar.console.is_terminal:
            return
        left_s = self.spent_s / self.done * (self.launches - self.done)
        self._say(f"round {number + 1}/{self.rounds}, about {duration(left_s)} left")

    def _say(self, line: str) -> None:
        """Values of secrets are struck out: a configuration's id has its settings in it."""
        self.bar.console.print(env.redact(line), soft_wrap=True)
