"""A campaign's progress: a bar with the time left on a terminal, plain lines in a pipe."""

from __future__ import annotations

from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from mpigraft import env
from mpigraft.campaign import Campaign, Step
from mpigraft.cli.common import console
from mpigraft.measure import Outcome
from mpigraft.model import Configuration, Evidence, Layout, Level, Look, Standing
from mpigraft.report import words


class Progress:
    """Hears what pipeline.bench does and shows it on stderr; results go to stdout elsewhere."""

    def __init__(self) -> None:
        self.console = console(stderr=True)
        self.live = self.console.is_terminal
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=self.console,
            disable=not self.live,
            transient=True,
        )
        self.task = self.bar.add_task("proving transports", total=None)
        self.rounds = 0
        self.launches = 0
        self.done = 0
        self.round = -1
        self.spent_s = 0.0  # in launches: the time that transports were proved in says nothing

    def __enter__(self) -> Progress:
        self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bar.stop()

    def began(self, campaign: Campaign, launches: int) -> None:
        self.rounds = campaign.wish.rounds
        self.launches = launches
        arms = len(campaign.configurations)
        counts = ((arms, "configuration"), (self.rounds, "round"), (launches, "launch"))
        self._say(", ".join(words.many(*count) for count in counts))
        self._say(f"baseline: {campaign.baseline.id}")

    def proved(self, configuration: Configuration, layout: Layout, evidence: Evidence) -> None:
        proven = any(one.standing is Standing.PROVEN for one in evidence.proof)
        mark = "FAILED" if not evidence.ok else "proven" if proven else "nothing to prove"
        self._say(f"  {mark}: {configuration.id} {layout.key}: {evidence.ran or 'nothing ran'}")
        for finding in evidence.findings:
            if finding.level is Level.ERROR:
                self._say(f"    {finding.code}: {finding.seen}")

    def launched(self, step: Step, outcome: Outcome, wall_s: float) -> None:
        self.done += 1
        self.spent_s += wall_s
        if step.round != self.round:
            self.round = step.round
            self.started_round(step.round)
        self.bar.update(
            self.task,
            total=self.launches,
            completed=self.done,
            description=f"round {step.round + 1}/{self.rounds}",
        )
        if not outcome.measurements:
            reason = outcome.findings[0].seen if outcome.findings else outcome.state
            self._say(f"  {outcome.state}: {step.configuration.id}, {wall_s:.1f} s: {reason}")

    def looked(self, look: Look, open_curves: int, launches: int) -> None:
        """Curves that are called need no more launches, which shortens what is left."""
        self.launches = self.done + launches
        curves = words.many(open_curves, "curve") if open_curves else "no curve"
        rest = words.many(launches, "launch")
        self._say(f"look after {look.rounds} rounds: {curves} open, {rest} left")

    def started_round(self, number: int) -> None:
        """In a pipe a bar is noise: one line a round, with the time left."""
        if self.live:
            return
        left = self.spent_s / self.done * (self.launches - self.done)
        self._say(f"round {number + 1}/{self.rounds}, about {words.duration(left)} left")

    def _say(self, line: str) -> None:
        """Values of secrets are struck out: a configuration's id has its settings in it."""
        self.bar.console.print(env.redact(line), soft_wrap=True)
