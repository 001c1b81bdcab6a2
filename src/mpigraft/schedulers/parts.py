"""What job scripts share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from mpigraft.errors import UsageError
from mpigraft.model import JobWish

WARN_S = 60  # before the time limit a job is told: enough to end a launch, too short to miss


def script(
    wish: JobWish,
    mark: str,
    before: Sequence[str],
    behind: Sequence[str],
    quote: Callable[[str], str] = shlex.quote,
) -> str:
    """A job script: directives after `mark`, the user's words among them, then the command in
    place of the shell, so that signals of the scheduler reach it. `quote` writes a word so that
    the scheduler reads it as it was. Raises UsageError for a directive that is not one line."""
    lines = [*before, *([" ".join(map(quote, wish.extra))] if wish.extra else []), *behind]
    if wrong := [line for line in lines if not line.isprintable()]:
        raise UsageError(f"{wrong[0]!r} cannot stand in a job script: it is not one line of text")
    exports = [f"export {name}={shlex.quote(value)}" for name, value in wish.environment]
    return "\n".join(
        (
            "#!/bin/sh",
            *(f"{mark} {line}" for line in lines),
            f"cd {shlex.quote(wish.folder)} || exit 3",
            *exports,
            f"exec {shlex.join(wish.command)}",
            "",
        )
    )


def next_of(wish: JobWish, directive: str) -> list[str]:
    """The directive for `wish.after`, to stand behind the user's words, which would win over it:
    with a dependency of theirs instead, two jobs of one share would run at once."""
    return [directive + wish.after] if wish.after else []


def clock(seconds: int) -> str:
    """HH:MM:SS, hours beyond 24 as they are."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def warning_s(wish: JobWish) -> int:
    """Seconds before the limit at which a job is told; a short job has a quarter of its time."""
    return min(WARN_S, wish.limit_s // 4)


def refuse_network(wish: JobWish, scheduler: str) -> None:
    """Raise UsageError for Slurm's word for a VNI, which no other scheduler has."""
    if wish.network:
        raise UsageError(
            f"--network {wish.network} is a flag of Slurm's; {scheduler} has none like it",
            mend="leave it out, or give this scheduler's own flags after --",
        )
