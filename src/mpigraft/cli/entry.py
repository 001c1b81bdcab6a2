"""The console script: `run` of a job that was started before goes the short way, past Typer and
everything else that takes time to import; all other commands go to `main`."""

from __future__ import annotations

import os
import sys

JOBS = (
    "run",
    "profile",
    "record",
    "replay",
)  # commands that start a job on this process's own streams
SIZES = (  # of knowledge/ranks.toml
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "FLUX_JOB_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "SLURM_STEP_NUM_TASKS",
)


def _judge(key: str, folder: str, failed: int) -> bool:
    from mpigraft.cli.job import judge

    return judge(key, folder, failed)


def _refused_again() -> int | None:
    """Say again what was refused before of the same words; its exit code, None where nothing
    was."""
    from mpigraft.run import kept_refusal

    if (refusal := kept_refusal(sys.argv[2:], os.environ)) is None:
        return None
    from mpigraft.cli.common import tell_error

    return tell_error(*refusal)


def warn_of_copies() -> None:
    """Say it where a launcher started this command in several tasks: each starts a whole job."""
    if all(os.environ.get(name, "1") == "1" for name in SIZES):
        return  # the table costs some milliseconds
    from mpigraft.knowledge import task_in

    if (task := task_in(os.environ)) and task[1] == "0":
        from mpigraft.cli.job import tell_finding
        from mpigraft.core.model import Finding

        tell_finding(Finding.of("job-in-task", launcher=task[0], size=task[2]))


def collect_seldom() -> None:
    """Switch the garbage collector off: what a command makes lives until its end. To look for
    garbage among the symbols of a whole image took a third of the time of a check."""
    import gc

    gc.set_threshold(100_000, 20, 100)


def main() -> None:
    """Run the command of this process's arguments and end with its exit code."""
    try:
        _main()
    except KeyboardInterrupt:  # before a command could rule its own signals
        sys.stderr.write("mpigraft: interrupted\n")
        sys.exit(130)


def _main() -> None:
    if "_MPIGRAFT_COMPLETE" in os.environ:
        from mpigraft.cli.complete import answer

        answer()
        return
    if sys.argv[1:2] and sys.argv[1] in JOBS:
        from mpigraft.core.process import ensure_stdin

        ensure_stdin()
    if sys.argv[1:2] and sys.argv[1] in (*JOBS, "bench"):
        warn_of_copies()
    if sys.argv[1:2] == ["run"]:
        from mpigraft.run import start_kept

        try:
            code = start_kept(sys.argv[2:], os.environ, _judge)
            code = _refused_again() if code is None else code
        except KeyboardInterrupt:
            code = 130
        if code is not None:
            sys.exit(code)
    from mpigraft.cli import main as commands

    collect_seldom()
    commands.main()


if __name__ == "__main__":
    main()
