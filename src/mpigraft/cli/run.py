"""`mpigraft run`: start a program on this machine's MPI, with proof of what ran."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from mpigraft.cli import job
from mpigraft.cli.common import DryRun, flag, tell
from mpigraft.cli.options import takes_request
from mpigraft.request import Asked, RunSpec

CONTEXT = job.CONTEXT


@takes_request()
def command(
    *,
    ctx: typer.Context,
    program: job.Program,
    asked: Asked[RunSpec],
    explain: Annotated[
        bool,
        flag(
            "Print each decision and its source before the start.",
            "--explain",
            panel="Output",
        ),
    ] = False,
    dry_run: DryRun = False,
) -> int:
    """Start a program on this machine's MPI, with proof of the world that ran.

    Its output, exit code and signals pass through unchanged. The exit code is 5 where the world,
    the libmpi or the transport that ran was not the one requested.

    \b
    Examples:
      mpigraft run -n 4 -- ./app input.dat
      mpigraft run --mpi openmpi@5 --transport ob1-sm -n 2 -- ./app
      mpigraft run --image app.sif -n 4 -- /opt/app/solver input.dat
      mpigraft run -n 2 --explain --dry-run -- ./app
      mpigraft run --ranks-per-node 8 --threads 7 --map-by numa --gpus -- ./app
      mpigraft run --ranks-per-node 48 -- ./nemo : --ranks-per-node 2 ./xios
      mpigraft run --stack /opt/stack --mpi openmpi@5 -n 4 -- gmx_mpi mdrun
    """
    from mpigraft.run import decision_lines

    planned = job.decide_job(job.requested_job(asked, program))
    if explain:
        for one in decision_lines(planned):
            tell(f"mpigraft: {one.what}: {one.value}  [{one.source}]")
    if dry_run:
        return job.print_script(planned)
    keep = sys.argv[1:2] == ["run"] and not explain and not ctx.find_root().params["verbose"]
    return job.prove_and_start(planned, keep=keep)
