"""`mpigraft replay`: make the MPI calls of a record on an MPI of this machine."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Annotated

import typer

from mpigraft.cli import job
from mpigraft.cli.common import (
    Agent,
    DryRun,
    Environment,
    Gpus,
    Hostfile,
    Hosts,
    Json,
    flag,
    layout_option,
    option,
    out,
)
from mpigraft.core.errors import UsageError


def command(
    record: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Record of `mpigraft record -o`.", show_default=False),
    ],
    gaps: Annotated[
        str | None,
        option("FACTOR", "Factor for the time between calls, or none.", "1; none with --only"),
    ] = None,
    check: Annotated[bool, flag("Check the data that arrives, off the clock.", "--check")] = False,
    only: Annotated[
        str | None,
        option("ROUTINES", "Make these calls alone: Alltoallv, p2p, onesided.", "all"),
    ] = None,
    phase: Annotated[
        int, option("N", "Make the calls of this phase alone; `analyse` lists them.", "all", min=0)
    ] = 0,
    as_json: Json = False,
    mpi: job.Mpi = None,
    transport: job.Transport = None,
    nodes: Annotated[int | None, layout_option("nodes")] = None,
    ranks_per_node: Annotated[int | None, layout_option("ranks-per-node")] = None,
    threads: Annotated[int | None, layout_option("threads", "OMP_NUM_THREADS, or 1")] = None,
    map_by: Annotated[str | None, layout_option("map-by")] = None,
    bind_to: Annotated[str | None, layout_option("bind-to")] = None,
    gpus: Gpus = False,
    hosts: Hosts = "",
    hostfile: Hostfile = "",
    agent: Agent = "",
    launcher: job.Launcher = None,
    env: Environment = None,
    proof: job.Proof = None,
    dry_run: DryRun = False,
) -> int:
    """Make the MPI calls of a record once, and show the time of each routine beside the program's.

    \b
    Examples:
      mpigraft replay solver.record
      mpigraft replay solver.record --mpi mpich --gaps none --check
      mpigraft replay solver.record --phase 2
      mpigraft replay solver.record --only Alltoallv --transport ofi-lnx
    """
    words = [*(["--gaps", gaps] if gaps else []), *(["--check"] if check else [])]
    words += ["--only", only] if only else []
    words += [] if as_json else ["--table"]
    options = {
        **locals(), "program": _program(record, mpi, words, phase), "ranks": None, "image": None,
        "stack": "", "programs": None, "engine": None, "replace": None, "bind": None,
        "stdin": "none",
    }  # fmt: skip
    from mpigraft.trace.record import read_record_file

    options["ranks"] = len(read_record_file(record).parts)
    planned = job.decide_job(job.requested_job(options))
    if dry_run:
        from mpigraft.cli.run import rendered

        out("\n".join(rendered(planned)))
        return 0
    return job.prove_and_start(planned)


def _program(path: Path, mpi: str | None, words: list[str], phase: int) -> list[str]:
    """The command of a rank, for the ABI of the MPI; writes the file that ranks read."""
    from mpigraft.core.cache import folders
    from mpigraft.core.serialize import digest
    from mpigraft.core.write import write_whole
    from mpigraft.native import Natives
    from mpigraft.trace.record import prepare_record, read_record_file

    file = read_record_file(path)
    data = prepare_record(file, path, phase)
    prepared = folders().data / "replay" / digest({"bytes": data.hex()})
    try:
        prepared.parent.mkdir(parents=True, exist_ok=True)
        if not prepared.is_file():
            write_whole(prepared, data)
    except OSError as error:
        raise UsageError.of("record-unreadable", path=prepared, reason=error.strerror) from error
    abi = file.provenance.abi
    if mpi:
        abi = "ompi" if mpi.startswith("openmpi") else "mpich"
    return [str(Natives.replay_for(abi, platform.machine())), str(prepared), *words]
