"""Starts what `launch` made, and proves it: the effects that campaigns and single jobs share."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from mpigraft import cache, evidence_json, grafts, init_failures, kept_evidence, prove
from mpigraft.answers import Nodes
from mpigraft.config_files import OURS, Surroundings, config_files
from mpigraft.errors import LaunchFailed, MissingError, MpigraftError, TransportMismatch
from mpigraft.launch import HERE, prepare
from mpigraft.launched import Launched
from mpigraft.model import (
    NOWHERE,
    Allocation,
    Configuration,
    Evidence,
    Finding,
    Launch,
    Layout,
    Level,
    Placement,
)
from mpigraft.natives import NOW, Natives
from mpigraft.run import run

PROBE_LIMIT_S = 60.0
PER_RANK_S = 0.05  # of a probe's limit more: thousands of ranks take minutes to start
EVERYWHERE = Path(
    "/"
)  # ranks start here: a folder that a node lacks would end the launch unexplained
SCRATCH = "mpigraft-"  # then host, whose processes, process id: folders of witness records
OLD_S = 7 * 86400  # longer than a job
CONFIG_FILES = "config-files"
TO_BLAME = ("setting-overrides", CONFIG_FILES)  # findings of what a user or a site set

Start = Callable[[Configuration, Layout, tuple[str, ...], float, bool], Launched]
Place = Callable[[Layout], Placement]


def _anywhere(_: Layout) -> Placement:
    return NOWHERE


@contextmanager
def starter(
    programs: dict[str, Natives],
    allocation: Allocation = HERE,
    place: Place = _anywhere,
    around: Surroundings = OURS,
) -> Iterator[Start]:
    """A function that starts a configuration's program, waits, and reads the witness.

    `programs` are ours by the configuration's key, as its ranks see them; `place` says where ranks
    are to be on a node; `around` where and with what a user's job will run, as its probe has to.
    """
    hosts = () if allocation.here else allocation.hosts
    nodes = Nodes(hosts if len(hosts) > 1 else ())
    with tempfile.TemporaryDirectory(prefix=_prefix(), dir=_swept(allocation)) as scratch:
        count = iter(range(1 << 30))
        there = around.cwd or (Path(scratch) if allocation.here else EVERYWHERE)
        prepared = partial(prepare, cwd=there, inherited=around.inherited, extra=around.binds)
        programs = {key: _preloadable(here, Path(scratch)) for key, here in programs.items()}

        def start(
            configuration: Configuration,
            layout: Layout,
            words: tuple[str, ...],
            limit_s: float,
            probe: bool,
        ) -> Launched:
            plan, placement = configuration.graft, place(layout)
            records = grafts.make(plan) / grafts.RANKS if plan else Path(scratch)
            witness = records / f"{_prefix()}{next(count)}"
            witness.mkdir()
            launch = prepared(
                configuration,
                layout,
                words,
                natives=programs[configuration.key],
                witness=witness,
                limit_s=limit_s,
                probe=probe,
                allocation=allocation,
                placement=placement,
                folder=Path(scratch),
                stdin="" if words[0] == str(programs[configuration.key].bench) else "none",
            )
            if layout.nodes > 1:
                nodes.ask(wait=not probe)
            try:
                write_files(launch)
                argv = stamped(launch.argv)
                ended = run(argv, env=dict(launch.env), cwd=launch.cwd, limit_s=limit_s + 15)
                ranks = prove.read_witness(witness)
                # PRRTE ends with code 0 when it loses a node whose ranks are still in MPI_Init.
                wrong = not ended.ok or len(ranks) < layout.ranks
                used = hosts[: layout.nodes] if wrong and layout.nodes > 1 else ()
                why = init_failures.explain(configuration, witness, len(ranks)) if wrong else ()
                return Launched(ended, ranks, placement, hosts, (*why, *nodes.trouble(used)))
            finally:
                shutil.rmtree(witness, ignore_errors=True)

        yield start


def stamped(argv: Sequence[str]) -> list[str]:
    """`argv` with the time at which it is started where a program wants to know it."""
    return [f"{time.time():.6f}" if word == NOW else word for word in argv]


def write_files(launch: Launch) -> None:
    """Write what the launcher is to read: lists of ranks, of programs."""
    for path, text in launch.files:
        path.write_text(text, encoding="utf-8", errors="surrogateescape")


def home(allocation: Allocation) -> Path:
    """Where folders of records are made: on a local disk for this host alone, else where all the
    hosts see it, which the cache in a home folder as a rule is."""
    if allocation.here:
        return Path(tempfile.gettempdir())
    home = cache.folders().cache / grafts.RANKS
    home.mkdir(parents=True, exist_ok=True)
    return home


def _prefix() -> str:
    """Of this process's folders: other hosts have processes of the same number."""
    return f"{_here()}{os.getpid()}-"


def _here() -> str:
    """Whose process numbers they are: two clusters that share a home folder may both have an n1,
    and a container may have its host's name and processes of its own."""
    counted = b""
    with contextlib.suppress(OSError):
        counted = kept_evidence.BOOT.read_bytes() + os.fsencode(
            Path("/proc/self/ns/pid").readlink()
        )
    return f"{SCRATCH}{os.uname().nodename}-{hashlib.sha256(counted).hexdigest()[:8]}-"


def _preloadable(programs: Natives, scratch: Path) -> Natives:
    """LD_PRELOAD takes no path with a blank or a colon in it: such a witness gets another one."""
    if not BLANK.search(str(programs.witness)):
        return programs
    copy = scratch / f"{programs.digest[:16]}.so"
    if not copy.exists():  # another job's ranks may have it mapped: never written to again
        begun = scratch / f".{copy.name}.{os.getpid()}"
        shutil.copy(programs.witness, begun)
        begun.rename(copy)
    return replace(programs, witness=copy)


BLANK = re.compile(r"[\s:]")


def preloadable(programs: Natives) -> Natives:
    """Programs whose witness can be preloaded as often as a kept job is started: a copy in the
    cache where mpigraft lies in a folder with a blank or a colon. Raises MissingError where the
    cache does too."""
    if not BLANK.search(str(programs.witness)):
        return programs
    folder = cache.folders().cache / "native"
    if BLANK.search(str(folder)):
        raise MissingError(
            f"{programs.witness} cannot be preloaded",
            why="LD_PRELOAD takes no path with a blank or a colon in it, and the cache has one too",
            mend="set MPIGRAFT_HOME to a folder without them",
        )
    folder.mkdir(parents=True, exist_ok=True)
    return _preloadable(programs, folder)


def _swept(allocation: Allocation) -> Path:
    base = home(allocation)
    _sweep(base)
    return base


def _sweep(home: Path) -> None:
    """Remove what campaigns of this user left that were killed on this host: at once those of
    processes that it can see to be gone, after OLD_S those of an earlier boot."""
    here = _here()
    for folder in home.glob(f"{SCRATCH}{os.uname().nodename}-*-*"):
        with contextlib.suppress(OSError):
            found = folder.stat()
            if folder.name.startswith(here):
                pid = folder.name.removeprefix(here).partition("-")[0]
                gone = pid.isdecimal() and not Path("/proc", pid).exists()
            else:
                gone = time.time() - found.st_mtime > OLD_S
            if gone and found.st_uid == os.getuid():
                shutil.rmtree(folder)


def lasting(nodes: Allocation) -> bool:
    """Whether what is proven of these nodes may be kept: of this one, and for as long as a job."""
    return nodes.here or bool(nodes.job)


def evidence_of(
    configuration: Configuration,
    layout: Layout,
    programs: Natives,
    start: Start,
    nodes: Allocation = HERE,
    around: Surroundings = OURS,
) -> Evidence:
    """The evidence of an earlier probe, else of one that is started now, and once more where
    chance may have spoken against it. Nodes that no scheduler handed out may have booted since, or
    have got other networks: what was proven of those holds for this time alone."""

    def now() -> str:
        return kept_evidence.evidence_key(configuration, layout, programs, nodes, around)

    key = now()
    kept = cache.get("evidence", key) if lasting(nodes) else None
    with contextlib.suppress(ValueError, TypeError, KeyError):  # kept by another version
        if kept is not None:
            return evidence_json.revived(kept)
    words = prove.probe_program(programs, configuration.buffers)
    limit_s = PROBE_LIMIT_S + PER_RANK_S * layout.ranks
    for _ in range(2):
        ran = start(configuration, layout, words, limit_s, True)
        evidence = prove.judge(configuration, layout, *ran)
        if not prove.worth_repeating(evidence):
            break
    if not evidence.ok:
        evidence = replace(
            evidence, findings=(*evidence.findings, *_config_files(configuration, around))
        )
    clear = evidence.ok and all(f.code != "wire-unclear" for f in evidence.findings)
    if clear and lasting(nodes) and now() == key:  # else a file changed while it ran
        cache.put("evidence", key, evidence_json.flat(evidence))
    return evidence


def _config_files(configuration: Configuration, around: Surroundings) -> Iterator[Finding]:
    """What may be to blame and stands in no command line."""
    if files := config_files(configuration, around).with_settings():
        yield Finding(
            Level.WARNING,
            CONFIG_FILES,
            f"settings are read from {', '.join(files)}",
            mend="look whether one of them selects another transport",
        )


def refusal(configuration: Configuration, evidence: Evidence) -> MpigraftError:
    """The error for a named configuration whose probe failed: 5 when something else ran than
    was asked for, 4 when nothing ran."""
    kind = TransportMismatch if evidence.ran else LaunchFailed
    return error_of(kind, f"{configuration.id}: {evidence.ran or 'nothing'} ran", evidence.findings)


def error_of(kind: type[MpigraftError], what: str, findings: tuple[Finding, ...]) -> MpigraftError:
    """An error that tells the worst of what was found, with the settings that may be to blame."""
    worst = [f for f in findings if f.level is Level.ERROR] or [*findings]
    if not worst:
        return kind(what)
    asked = [f for f in findings if f.code in TO_BLAME]
    mend = "; ".join(f"{f.seen}: {f.mend}" for f in asked) or worst[0].mend
    return kind(f"{what}: {worst[0].seen}", why=worst[0].why, mend=mend)
