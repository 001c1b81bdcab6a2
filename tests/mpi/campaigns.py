"""What tests of whole campaigns share: short wishes, a silent watch, doctored benchmarks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.bench import measurement, pipeline
from mpigraft.bench.schedule import campaign
from mpigraft.bench.schedule.campaign import Campaign, Step
from mpigraft.core.model import Configuration, Evidence, Layout, Look, Machine, MpiInstall
from mpigraft.native.programs import Natives
from mpigraft.native.programs import choose_natives as real_natives
from mpigraft.request.spec import CampaignSpec

SHORT = ("--benchmark", "latency", "--max", "64", "--ms-per-size", "1", "--seed", "3")
MARK = "MPIGRAFT_WITNESS="


class Silent:
    """A watch that remembers."""

    def __init__(self) -> None:
        self.outcomes: list[measurement.LaunchOutcome] = []
        self.evidence: list[Evidence] = []
        self.looks: list[tuple[int, int]] = []

    def began(self, campaign: Campaign, launches: int) -> None:
        self.launches = launches

    def proved(self, configuration: Configuration, layout: Layout, evidence: Evidence) -> None:
        self.evidence.append(evidence)

    def launched(self, step: Step, outcome: measurement.LaunchOutcome, wall_s: float) -> None:
        self.outcomes.append(outcome)

    def looked(self, look: Look, open_curves: int, launches: int) -> None:
        self.looks.append((look.rounds, open_curves))

    def grew(self, rounds: int, planned: int, launches: int) -> None:
        pass


def mpigraft(*words: object, **more: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "mpigraft.cli.main", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=300, **more)  # type: ignore[call-overload,no-any-return]


def ranks_left(scratch: Path) -> list[int]:
    """Processes that carry the witness's variable: ranks, wherever their parents went."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if f"{MARK}{scratch}".encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


def short(machine: Machine, **spec: object) -> Campaign:
    values: dict[str, object] = {
        "benchmark": ("latency",), "max_size": 64, "budget_ms": 1.0, "rounds": 6, "seed": 3,
    }  # fmt: skip
    return campaign.plan_campaign(CampaignSpec(**{**values, **spec}), machine)  # type: ignore[arg-type]


def doctored(monkeypatch: pytest.MonkeyPatch, folder: Path, behaviour: str) -> None:
    """Replace the benchmark, not the probe, by a shell script; $REAL is the benchmark."""

    def made(mpi: MpiInstall, architecture: str, build: str = "prebuilt") -> Natives:
        true = real_natives(mpi, architecture, build)
        script = folder / mpi.abi / true.bench.name
        if not script.exists():
            script.parent.mkdir()
            shutil.copy2(true.probe, script.parent)
        script.write_text(f'#!/bin/sh\nREAL="{true.bench}"\n{behaviour}\n')
        script.chmod(0o755)
        return replace(true, bench=script)

    monkeypatch.setattr(pipeline, "choose_natives", made)
