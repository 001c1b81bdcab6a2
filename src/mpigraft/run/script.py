"""A job as a shell script: what `--dry-run` prints."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from mpigraft.launch import encode_word
from mpigraft.run.plan import Job, job_records, prepare_job


def job_script(job: Job, environ: Mapping[str, str]) -> str:
    """Write the command line of a job, and what of the environment is changed for it, as a shell
    takes them.

    They begin at the launcher, and at the files that it reads. What this command puts around it is
    of no use without it: the guard ends with the process that started it, and the folder for the
    records of ranks is made and judged for each job anew.
    """
    folder = Path(job_records(job, environ)) / f"mpigraft-{os.getpid()}-shown"
    made = prepare_job(job, folder)
    witness = str(job.natives.witness)
    given = dict(made.env)
    changed = [f"unset {name}" for name in sorted(environ.keys() - given.keys()) if _named(name)]
    changed += [
        f"export {name}={shlex.quote(value)}"
        for name, value in made.env
        if environ.get(name) != value
    ]
    folders = bool(made.files) or job.tracing is not None
    files = [shlex.join(["mkdir", str(folder)])] if folders else []
    files += [line for path, text in made.files for line in _written(path, text, witness)]
    words = made.argv[made.argv.index("--") + 1 :]
    return "\n".join([*changed, *files, shlex.join(_unwitnessed(words, witness))])


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
    preload = f"LD_PRELOAD={witness}"
    others = ("MPIGRAFT_WITNESS=", "MPIGRAFT_CONTENTS=", "MPIGRAFT_SPAWN=")
    ours = {*encode_word(preload), preload}
    before = (f"{preload}:", *(f"{word}:" for word in encode_word(preload)))
    own = [w for w in words if w not in ours and not w.startswith(others)]
    return [
        next((f"LD_PRELOAD={w.removeprefix(b)}" for b in before if w.startswith(b)), w) for w in own
    ]
