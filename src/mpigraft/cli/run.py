"""`mpigraft run`: start a program on this machine's MPI, with proof of what ran."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from mpigraft.cli import job
from mpigraft.cli.common import (
    DryRun,
    flag,
    out,
    tell,
)
from mpigraft.cli.options import takes_request
from mpigraft.request import Asked, RunSpec

if TYPE_CHECKING:
    from mpigraft.run import Job

CONTEXT = job.CONTEXT


@takes_request()
def command(
    *,
    program: job.Program,
    asked: Asked[RunSpec],
    explain: Annotated[
        bool, flag("Print each decision and its source, then start the program.", "--explain")
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
    planned = job.decide_job(job.requested_job(asked, program))
    if explain:
        for line in explained(planned):
            tell(line)
    if dry_run:
        out("\n".join(rendered(planned)), exact=True)
        return 0
    return job.prove_and_start(planned, keep=sys.argv[1:2] == ["run"] and not explain)


def explained(planned: Job) -> list[str]:
    """Return one line per decision: what, which, and by whom."""
    return [f"mpigraft: {one.what}: {one.value}  [{one.source}]" for one in planned.lines]


def rendered(planned: Job) -> list[str]:
    """Return the command line that would be started, and what of the environment is changed for it:
    lines that a shell takes as they are.

    They begin at the launcher, and at the files that it reads. What this command puts around it is
    of no use without it: the guard ends with the process that started it, and the folder for the
    records of ranks is made and judged for each job anew.
    """
    from mpigraft.run import job_records, prepare_job

    folder = Path(job_records(planned, os.environ)) / f"mpigraft-{os.getpid()}-shown"
    made = prepare_job(planned, folder)
    witness = str(planned.natives.witness)
    given = dict(made.env)
    changed = [f"unset {name}" for name in sorted(os.environ.keys() - given.keys()) if _named(name)]
    changed += [
        f"export {name}={shlex.quote(value)}"
        for name, value in made.env
        if os.environ.get(name) != value
    ]
    folders = made.files or planned.tracing
    files = [shlex.join(["mkdir", str(folder)])] if folders else []
    files += [line for path, text in made.files for line in _written(path, text, witness)]
    words = made.argv[made.argv.index("--") + 1 :]
    return [*changed, *files, shlex.join(_unwitnessed(words, witness))]


def _written(path: Path, text: str, witness: str) -> list[str]:
    """Return what makes a file that the launcher reads; scripts of programs as they are without the
    witness."""
    lines = text.splitlines()
    if text.startswith("exec "):
        lines = [shlex.join(_unwitnessed(shlex.split(text), witness))]
    return [f"cat >{shlex.quote(str(path))} <<'END OF FILE'", *lines, "END OF FILE"]


def _named(variable: str) -> bool:
    """Return whether a shell can name it: functions that bash exports are no names."""
    return variable.isascii() and variable.isidentifier()


def _unwitnessed(words: Sequence[str], witness: str) -> list[str]:
    """Return the words of a launch without what makes ranks write records: a user's own LD_PRELOAD
    stays."""
    from mpigraft.launch import encode_word

    preload = f"LD_PRELOAD={witness}"
    others = ("MPIGRAFT_WITNESS=", "MPIGRAFT_CONTENTS=", "MPIGRAFT_SPAWN=")
    ours = {*encode_word(preload), preload}
    before = (f"{preload}:", *(f"{word}:" for word in encode_word(preload)))
    own = [w for w in words if w not in ours and not w.startswith(others)]
    return [
        next((f"LD_PRELOAD={w.removeprefix(b)}" for b in before if w.startswith(b)), w) for w in own
    ]
