"""The whole flow, read first: discover -> plan -> launch -> prove -> measure -> store.

Stages compute; this file has the effects between them: it starts what `launch` made, and hands
what came back to `prove`, `measure` and the store. `watch` hears of each thing as it happens.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from mpigraft import cache, campaign, configure, measure, prove
from mpigraft.campaign import Campaign, Step
from mpigraft.errors import LaunchFailed, MpigraftError, TransportMismatch, UsageError
from mpigraft.jsonout import plain, revive
from mpigraft.launch import prepare
from mpigraft.lock import campaign_lock
from mpigraft.model import (
    Configuration,
    Evidence,
    EvidenceRecord,
    Finding,
    LaunchState,
    Layout,
    Level,
    Machine,
    RankRecord,
)
from mpigraft.natives import Natives, natives
from mpigraft.run import Completed, run
from mpigraft.store import Store, Writer

PROBE_LIMIT_S = 60.0
SCRATCH = "mpigraft-"  # then the process id: folders of witness records
GIVE_UP_AFTER = 2  # launches in a row without a value: the configuration is not started again

Pair = tuple[str, str]  # keys of configuration and layout
Start = Callable[[Configuration, Layout, tuple[str, ...], float, bool], "Ran"]
Ran = tuple[Completed, tuple[RankRecord, ...]]


class Watch(Protocol):
    """Hears of a campaign's progress; cli shows it."""

    def began(self, campaign: Campaign, launches: int) -> None: ...
    def proved(self, configuration: Configuration, layout: Layout, evidence: Evidence) -> None: ...
    def launched(self, step: Step, outcome: measure.Outcome, wall_s: float) -> None: ...


def bench(asked: Campaign, machine: Machine, store: Store, watch: Watch, resume: str = "") -> str:
    """Run a campaign, or the rest of campaign `resume`, and return its id.

    Raises LaunchFailed or TransportMismatch when a configuration that was named did not run as
    asked, and MissingError when the store cannot be written; what was measured until then stays.
    """
    programs = {c.key: _natives(c, machine, asked) for c in asked.configurations}
    with campaign_lock(), store.writer() as writer, _starter(programs) as start:
        identity = _announce(asked, programs, store, writer, resume)
        allocation = campaign.allocation(identity, machine)
        writer.add_allocation(allocation)
        done = {measure.place(launch) for launch in store.launches(identity)} if resume else set()
        steps = [step for step in campaign.schedule(asked) if step.place not in done]
        watch.began(asked, len(steps))
        old = store.evidence(identity) if resume else ()
        refused = {(e.configuration, e.layout) for e in old if not e.evidence.ok}
        ready = set(_prove(asked, identity, refused, programs, start, writer, watch))
        failed: Counter[Pair] = Counter()
        trouble: list[MpigraftError] = []
        stamps = {c.key: _stamp(c) for c in asked.configurations}
        for step in steps:
            pair = (step.configuration.key, step.layout.key)
            if pair not in ready or failed[pair] >= GIVE_UP_AFTER:
                continue
            _refuse_changed(step.configuration, stamps)
            words = measure.program(asked.wish, asked.benchmarks, programs[pair[0]])
            ran = start(step.configuration, step.layout, words, asked.wish.limit_s, False)
            outcome = measure.outcome(step.configuration, step.layout, asked.benchmarks, *ran)
            writer.add_launch(
                measure.record(identity, allocation.id, step, ran[0], outcome),
                outcome.measurements,
                {"stdout": ran[0].stdout, "stderr": ran[0].stderr},
            )
            failed[pair] = 0 if outcome.measurements else failed[pair] + 1
            if step.configuration.named and outcome.state is not LaunchState.OK:
                trouble.append(_trouble(step.configuration, outcome))
            watch.launched(step, outcome, ran[0].wall_s)
    if trouble:
        raise trouble[0]
    return identity


def _natives(configuration: Configuration, machine: Machine, asked: Campaign) -> Natives:
    assert configuration.mpi is not None
    return natives(configuration.mpi, machine.cpu.architecture, asked.wish.native_build)


def _announce(
    asked: Campaign, programs: dict[str, Natives], store: Store, writer: Writer, resume: str
) -> str:
    """Write the configurations, then the campaign, before anything is started: a campaign that
    is there has all of them, whenever it was killed. Raises UsageError when the programs that
    would go on measuring are not those that began."""
    record = campaign.record(asked)
    identity = resume or record.id
    for old in store.configurations(resume) if resume else ():
        began = json.loads(old.provenance).get("programs")
        if old.key in programs and began != programs[old.key].digest:
            raise UsageError(
                f"cannot resume: {old.id} was measured with other benchmark programs",
                why="old and new rounds would be mixed",
                mend="start a new campaign",
            )
    for configuration in asked.configurations:
        told = configure.provenance(configuration, programs[configuration.key].digest)
        writer.add_configuration(configure.record(identity, configuration, told))
    if not resume:
        writer.add_campaign(record)
    return identity


def _stamp(configuration: Configuration) -> tuple[tuple[int, ...], ...]:
    return configure.stamp(configuration.mpi) if configuration.mpi else ()


def _refuse_changed(
    configuration: Configuration, stamps: dict[str, tuple[tuple[int, ...], ...]]
) -> None:
    """Raise UsageError when libraries were replaced since the campaign looked at them."""
    if _stamp(configuration) != stamps[configuration.key]:
        raise UsageError(
            f"the libraries of {configuration.id} were replaced during the campaign",
            why="its rounds would be of two different MPIs under one name",
            mend="start a new campaign",
        )


@contextmanager
def _starter(programs: dict[str, Natives]) -> Iterator[Start]:
    """A function that starts a configuration's program, waits, and reads the witness."""
    _sweep()
    with tempfile.TemporaryDirectory(prefix=f"{SCRATCH}{os.getpid()}-") as scratch:
        count = iter(range(1 << 30))
        programs = {key: _preloadable(here, Path(scratch)) for key, here in programs.items()}

        def start(
            configuration: Configuration,
            layout: Layout,
            words: tuple[str, ...],
            limit_s: float,
            probe: bool,
        ) -> Ran:
            witness = Path(scratch) / f"witness-{next(count)}"
            witness.mkdir()
            launch = prepare(
                configuration,
                layout,
                words,
                natives=programs[configuration.key],
                witness=witness,
                limit_s=limit_s,
                cwd=Path(scratch),
                probe=probe,
            )
            ended = run(launch.argv, env=dict(launch.env), cwd=launch.cwd, limit_s=limit_s + 15)
            return ended, prove.read_witness(witness)

        yield start


def _preloadable(programs: Natives, scratch: Path) -> Natives:
    """LD_PRELOAD takes no path with a blank or a colon in it: such a witness gets another one."""
    if not re.search(r"[\s:]", str(programs.witness)):
        return programs
    copy = scratch / f"{programs.digest[:16]}.so"
    shutil.copy(programs.witness, copy)
    return replace(programs, witness=copy)


def _sweep() -> None:
    """Remove what campaigns of this user left that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH}[0-9]*-*"):
        pid = folder.name.removeprefix(SCRATCH).partition("-")[0]
        with contextlib.suppress(OSError):
            if folder.stat().st_uid == os.getuid() and not Path("/proc", pid).exists():
                shutil.rmtree(folder)


def _prove(
    asked: Campaign,
    identity: str,
    refused: set[Pair],
    programs: dict[str, Natives],
    start: Start,
    writer: Writer,
    watch: Watch,
) -> Iterator[Pair]:
    """Probe every configuration on every layout, or take the evidence of an earlier probe of
    the same contents on this boot of this host; yield the pairs that run as asked."""
    for configuration in asked.configurations:
        for layout in asked.layouts:
            if (configuration.key, layout.key) in refused:
                continue  # refused when the campaign began: its rounds would lack a first half
            evidence = _evidence(configuration, layout, programs[configuration.key], start)
            writer.add_evidence(EvidenceRecord(identity, configuration.key, layout.key, evidence))
            watch.proved(configuration, layout, evidence)
            if evidence.ok:
                yield configuration.key, layout.key
            elif configuration.named:
                raise _refusal(configuration, evidence)


def _evidence(
    configuration: Configuration, layout: Layout, programs: Natives, start: Start
) -> Evidence:
    """The evidence of an earlier probe, else of one that is started now, and once more where
    chance may have spoken against it."""
    key = prove.evidence_key(configuration, layout, programs)
    kept = cache.get("evidence", key)
    with contextlib.suppress(ValueError, TypeError, KeyError):  # kept by another version
        if kept is not None:
            return revive(Evidence, kept)  # type: ignore[no-any-return]
    words = prove.probe_program(programs, configuration.buffers)
    for _ in range(2):
        ran = start(configuration, layout, words, PROBE_LIMIT_S, True)
        evidence = prove.judge(configuration, layout, *ran)
        if not prove.worth_repeating(evidence):
            break
    if evidence.ok and all(f.code != "wire-unclear" for f in evidence.findings):
        cache.put("evidence", key, plain(evidence))
    return evidence


def _refusal(configuration: Configuration, evidence: Evidence) -> MpigraftError:
    """The error for a named configuration whose probe failed: 5 when something else ran than
    was asked for, 4 when nothing ran."""
    kind = TransportMismatch if evidence.ran else LaunchFailed
    return _error(kind, f"{configuration.id}: {evidence.ran or 'nothing'} ran", evidence.findings)


def _trouble(configuration: Configuration, outcome: measure.Outcome) -> MpigraftError:
    """The error for a named configuration of which a launch went wrong."""
    kind = TransportMismatch if outcome.state is LaunchState.MISMATCH else LaunchFailed
    return _error(kind, configuration.id, outcome.findings)


def _error(kind: type[MpigraftError], what: str, findings: tuple[Finding, ...]) -> MpigraftError:
    worst = [f for f in findings if f.level is Level.ERROR] or [*findings]
    if not worst:
        return kind(what)
    asked = [f for f in findings if f.code == "setting-overrides"]
    mend = "; ".join(f"{f.seen}: {f.mend}" for f in asked) or worst[0].mend
    return kind(f"{what}: {worst[0].seen}", why=worst[0].why, mend=mend)
