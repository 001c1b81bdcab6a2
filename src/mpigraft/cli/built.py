"""`mpigraft build`, from the plan on: progress, and the check of what was built."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mpigraft.cli.common import console, out, tell
from mpigraft.core.errors import MissingError
from mpigraft.core.text import fold
from mpigraft.report import build_progress, proved_transports

if TYPE_CHECKING:
    from mpigraft.build import BuildFolders, BuildPlan, BuildProgress
    from mpigraft.core.model import Machine, MpiInstall
    from mpigraft.run import TransportProof

SHOWN_IN_PIPE = ("", "kept", "configuring", "building", "installing")  # a line each


def build_all(plan: BuildPlan, folders: BuildFolders, *, check: bool) -> None:
    """Build a plan, say where it is, and prove its transports. Raises what `build` raises, and
    LaunchFailed or TransportMismatch where a transport does not work that must."""
    from mpigraft.build import build

    with _shown_progress() as show:
        try:
            build(plan, folders, os.environ, show)
        except KeyboardInterrupt:
            tell(f"what is whole stays below {folders.prefix}; the same command builds the rest")
            raise
    out(f"built: {folders.root(plan)}")
    out(f"use it: module use {folders.modules}; module load {folders.module(plan)}")
    if check:
        check_built(plan, folders)


def check_built(plan: BuildPlan, folders: BuildFolders) -> None:
    """Print what became of each transport of the MPI that was built, and write a module of settings
    for each that is proven."""
    from mpigraft.build import write_transport_modules
    from mpigraft.run import ProofOutcome, prove_transports

    with console(stderr=True).status("looking at what was built"):
        machine, mpi = _discover(plan, folders)
    proofs: list[TransportProof] = []
    out(f"transports of {mpi.id}, two ranks on this node:")
    with console(stderr=True).status("proving transports") as status:
        for proof in prove_transports(mpi, machine):
            status.update(f"proving transports: {proof.name} done")
            proofs.append(proof)
    for line in proved_transports(mpi, proofs):
        out(line)
    proven = {p.name: dict(p.settings) for p in proofs if p.outcome is ProofOutcome.PROVEN}
    if modules := write_transport_modules(plan, folders, proven):
        out(f"with the settings of one: module use {folders.settings}; module load ...")
        out("\n".join(fold(" ".join(modules), "  ")))
    failed = [p.error for p in proofs if p.error is not None]
    if failed:
        raise failed[0]
    if not proven:
        raise MissingError.of("built-nothing-proven", id=mpi.id)


def _discover(plan: BuildPlan, folders: BuildFolders) -> tuple[Machine, MpiInstall]:
    """Return the machine, and the MPI of a plan as `discover` lists it after `module use`. Raises
    MissingError where it does not list it."""
    from mpigraft.discovery import Host, discover_machine

    environ = dict(os.environ)
    before = environ.get("MODULEPATH", "")
    environ["MODULEPATH"] = ":".join(filter(None, [str(folders.modules), before]))
    machine = discover_machine(Host(environ=environ))
    root = folders.root(plan).resolve()
    for mpi in machine.mpis:
        if mpi.libmpi is not None and root in mpi.libmpi.resolve().parents:
            if mpi.usable:
                return machine, mpi
            raise MissingError.of("built-unusable", root=root, problem=mpi.reason)
    raise MissingError.of("built-unusable", root=root, problem="discover does not list it")


@contextmanager
def _shown_progress() -> Iterator[_Show]:
    """Show progress: one line that changes on a terminal, plain lines in a pipe."""
    from rich.progress import TimeElapsedColumn

    from mpigraft.cli.progress import make_bar

    bar = make_bar(TimeElapsedColumn(), transient=True)
    with bar:
        yield _Show(bar)


class _Show:
    """Takes each step of a build."""

    def __init__(self, bar: object) -> None:
        from rich.progress import Progress

        assert isinstance(bar, Progress)
        self.bar = bar
        self.task = bar.add_task("starting EasyBuild", total=None)

    def __call__(self, now: BuildProgress) -> None:
        text = build_progress(now)
        if not self.bar.disable:
            spent = now.elapsed_s / (now.elapsed_s + now.left_s) if now.left_s >= 0 else 0.0
            total = 1.0 if now.left_s >= 0 else None
            self.bar.update(self.task, description=text, completed=spent, total=total)
        elif now.phase in SHOWN_IN_PIPE:
            tell(text)
