"""Whether a launcher and an MPI find each other: two ranks are started, and have to be one world.

A wrong pair of PMIs gives every rank a world of its own, often with exit code 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from mpigraft.core import cache
from mpigraft.core.model import Configuration, Finding, Layout
from mpigraft.core.process import Completed, clean
from mpigraft.core.serialize import digest
from mpigraft.evidence import judge
from mpigraft.evidence.files.config import OWN_SURROUNDINGS, Surroundings
from mpigraft.evidence.keys import evidence_key
from mpigraft.evidence.world.witness import check_launched
from mpigraft.launch import FIX, LaunchResult
from mpigraft.native import Natives

PROBE_LIMIT_S = 60.0
Start = Callable[[Configuration, Layout, tuple[str, ...], float, bool], LaunchResult]

WORLD_CODES = ("LCH-01", "world-size", "world-ranks", "hosts")  # findings of worlds that ran
WORLD = (*WORLD_CODES, "no-witness", "witness-unreadable")
JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID", "FLUX_ENCLOSING_ID")  # each other nodes


def verify_wireup(
    configuration: Configuration,
    programs: Natives,
    start: Start,
    layout: Layout | None = None,
    *,
    keep: bool = True,
    surroundings: Surroundings = OWN_SURROUNDINGS,
) -> tuple[Finding, ...]:
    """Return what is wrong with a launcher for this configuration: two ranks are started, on two
    nodes where `layout` says so, and have to be one world. Nothing, where they were on this boot
    and of nodes that last (`keep`), and no configuration file or library has changed since."""
    pair = layout or Layout(1, 2, bind="none")
    key = _wireup_key(configuration, programs, pair, surroundings)
    if keep and cache.get("starting", key) is True:
        return ()
    words = judge.probe_program(programs, configuration.buffers)
    launched = start(configuration, pair, words, PROBE_LIMIT_S, False)
    ended = launched.completed
    all_findings = check_launched(configuration, pair, launched)
    findings = tuple(f for f in all_findings if f.code in WORLD)
    if not ended.ok and not any(f.code in WORLD_CODES for f in findings):
        findings = (*launched.nodes, _start_failure(configuration, ended))
    elif findings:
        findings = (*launched.nodes, *findings)
    if keep and not findings:
        cache.put("starting", key, True)
    return findings


def _wireup_key(
    configuration: Configuration, programs: Natives, layout: Layout, surroundings: Surroundings
) -> str:
    """Name launcher, PMI, libraries and nodes: another boot may bring another Slurm."""
    by, mpi = configuration.launcher, configuration.mpi
    return digest(
        {
            "launcher": [by.kind, by.path, by.version, by.pmi] if by else mpi and mpi.launcher,
            "libmpi": mpi and mpi.libmpi,
            "kept": evidence_key(configuration, layout, programs, surroundings=surroundings),
            "host": os.uname().nodename,
            "job": [os.environ.get(name, "") for name in JOBS],
        }
    )


def _start_failure(configuration: Configuration, ended: Completed) -> Finding:
    name = configuration.launcher.kind if configuration.launcher else "its own launcher"
    lines = [*_last(clean(ended.stderr)), *_last(clean(ended.stdout))]
    how = "did not end in time" if ended.timed_out else f"exit code {ended.code}"
    output = f": {lines[0]}" if lines else ""
    return Finding.of(
        "launcher-fails", id=configuration.id, name=name, how=how, output=output, fix=FIX
    )


def _last(text: str) -> Iterable[str]:
    """Return the last line that is not of the launcher's own clearing up."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line for line in lines if not line.startswith(("srun:", "slurmstepd"))]
    return (own or lines)[-1:]
