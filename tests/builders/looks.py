"""Campaigns of several looks whose launches are made up, run by the pipeline itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpigraft.bench import measurement, pipeline
from mpigraft.bench.schedule import campaign
from mpigraft.bench.schedule.campaign import Campaign, Step
from mpigraft.core.model import (
    Allocation,
    Benchmark,
    CampaignRecord,
    Configuration,
    CpuUse,
    Evidence,
    Family,
    LaunchRecord,
    LaunchState,
    Layout,
    Look,
    Measurement,
    MpiInstall,
    Shard,
)
from mpigraft.core.process.command import Completed
from mpigraft.evidence.files.used import Fingerprint
from mpigraft.launch import LaunchResult
from mpigraft.native.programs import Natives
from mpigraft.request.spec import CampaignSpec
from mpigraft.selection import configurations
from mpigraft.store import Store
from tests.builders.configuration import a_machine, a_transport, an_mpi, an_offer

MACHINE = a_machine(an_mpi("openmpi@5.0.11"), an_mpi("mpich@5.0.2"))
BASE, FAST, TWIN = "mpich@5.0.2/ucx", "openmpi@5.0.11/ob1-sm", "openmpi@5.0.11/ofi-lnx"
LATENCY = Benchmark("native", "latency")
SIZES = (1, 1024)

ALL = Shard()


class Killed(BaseException):
    """What a signal is to the pipeline."""


OFFERS = {
    Family.OPENMPI: (an_offer("ob1-sm"), an_offer("ofi-lnx")),
    Family.MPICH: (an_offer("ucx"),),
}


def planned(monkeypatch: pytest.MonkeyPatch, **spec: Any) -> Campaign:
    """A campaign of BASE, FAST and TWIN that is looked at after 9, 14 and 20 rounds."""
    monkeypatch.setattr(configurations, "transport_offers", lambda mpi, _facts: OFFERS[mpi.family])
    monkeypatch.setattr(
        configurations, "resolve_transport", lambda name, _mpi, _facts: a_transport(name)
    )
    made = {"rounds": 20, "looks": (9, 14, 20), "seed": 7, "layout": ("1x2",), **spec}
    asked = CampaignSpec(benchmark=("latency",), baseline=BASE, **made)
    return campaign.plan_campaign(asked, MACHINE, _contents)


def _contents(mpi: MpiInstall) -> tuple[tuple[str, str], ...]:
    return (("libmpi", mpi.version),)


@dataclass
class Made:
    """A watch, and what stands in the place of launches. `ratios` are true ones, launches vary
    by `spread`; `before` is called before each launch with how many were made. Launches of
    `failing`, a configuration's id and a round, end without a value; of rounds that are
    `disturbed` others take half of the CPUs."""

    ratios: Mapping[str, float] = field(default_factory=dict)
    spread: float = 0.03
    before: Callable[[int], None] = lambda _: None
    failing: frozenset[tuple[str, int]] = frozenset()
    disturbed: frozenset[int] = frozenset()
    steps: list[Step] = field(default_factory=list)
    looks: list[tuple[int, int]] = field(default_factory=list)
    announced: list[int] = field(default_factory=list)

    def began(self, campaign: Campaign, launches: int) -> None:
        self.announced.append(launches)

    def proved(self, configuration: Configuration, layout: Layout, evidence: Evidence) -> None:
        pass

    def launched(self, step: Step, outcome: measurement.LaunchOutcome, wall_s: float) -> None:
        self.steps.append(step)

    def looked(self, look: Look, open_curves: int, launches: int) -> None:
        self.looks.append((look.rounds, open_curves))

    def grew(self, rounds: int, planned: int, launches: int) -> None:
        self.announced.append(launches)

    def rounds(self, configuration: str) -> list[int]:
        return [
            s.round for s in self.steps if s.configuration.id == configuration and not s.replica
        ]

    def values(self, step: Step) -> tuple[Measurement, ...]:
        """The same for the same step, whoever makes it."""
        name = [ord(c) for c in step.configuration.id]
        rng = np.random.default_rng([step.round, step.replica, *name])
        ratio = self.ratios.get(step.configuration.id, 1.0)
        launch = self.spread * rng.standard_normal()
        own = 0.3 * self.spread * rng.standard_normal(len(SIZES))
        return tuple(
            Measurement(LATENCY, "latency", size, float(ratio * math.exp(launch + one)))
            for size, one in zip(SIZES, own, strict=True)
        )


class _Outcome:
    """A launch, of the step that was recorded last."""

    findings, files = (), ()

    def __init__(self, made: Made) -> None:
        self.made = made
        self.step: Step | None = None

    @property
    def state(self) -> LaunchState:
        assert self.step is not None
        lost = (self.step.configuration.id, self.step.round) in self.made.failing
        return LaunchState.FAILED if lost else LaunchState.OK

    @property
    def nodes(self) -> tuple[CpuUse, ...]:
        assert self.step is not None
        others = 0.5 if self.step.round in self.made.disturbed else 0.0
        return (CpuUse("n1", 2, 2, 3.0, 6.0, 0.0, 5.0, others, 9),)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        assert self.step is not None
        return self.made.values(self.step) if self.state is LaunchState.OK else ()


def run(
    monkeypatch: pytest.MonkeyPatch,
    made: Made,
    folder: Path,
    asked: Campaign,
    share: Shard = ALL,
    resume: CampaignRecord | None = None,
    node: str = "",
    part: pipeline.JobPart = pipeline.ALONE,
) -> str:
    """`pipeline.bench` with the launches of `made` on `node`; shares have nodes of their own."""

    @contextmanager
    def starter(*_: object) -> Iterator[Callable[..., LaunchResult]]:
        yield lambda *_: LaunchResult(Completed(("mpiexec",), 0, b"", b"", 1.0), ())

    @contextmanager
    def unlocked(_: Allocation) -> Iterator[None]:
        yield

    def record(identity: str, allocation: str, step: Step, *rest: Any) -> LaunchRecord:
        _, ended, _ = rest
        ended.step = step
        return real_record(identity, allocation, step, *rest)

    real_record = measurement.launch_record
    nodes = Allocation((node or f"n{share.number}",), "made")
    evidence = Evidence("x", "x", (), (), ())
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "_natives", lambda *_: Natives(folder, folder, folder, "digest"))
        patch.setattr(pipeline, "launch_files", lambda *_: Fingerprint((), ()))
        patch.setattr(pipeline, "nodes_lock", unlocked)
        patch.setattr(pipeline, "make_starter", starter)
        patch.setattr(pipeline, "evidence_of", lambda *_: evidence)
        patch.setattr(pipeline, "refuse_changed_files", lambda *_: made.before(len(made.steps)))
        patch.setattr(measurement, "launch_outcome", lambda *_: _Outcome(made))
        patch.setattr(measurement, "launch_record", record)
        part = replace(part, nodes=nodes, share=share)
        return pipeline.run_campaign(asked, MACHINE, Store(folder), made, resume, part)
