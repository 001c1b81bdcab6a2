"""What job scripts share."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from mpigraft.core.errors import UsageError
from mpigraft.core.model import JobRequest

WARN_S = 60  # before its time limit a job gets a signal: enough to end a launch


def script(
    request: JobRequest,
    mark: str,
    before: Sequence[str],
    behind: Sequence[str],
    quote: Callable[[str], str] = shlex.quote,
) -> str:
    """Return a job script: directives after `mark`, the user's words among them, then the command
    in place of the shell, so that signals of the scheduler reach it. `quote` writes a word so that
    the scheduler reads it as it was. Raises UsageError for a directive that is not one line."""
    lines = [*before, *([" ".join(map(quote, request.extra))] if request.extra else []), *behind]
    if wrong := [line for line in lines if not line.isprintable()]:
        raise UsageError.of("script-line-invalid", text=wrong[0])
    exports = [f"export {name}={shlex.quote(value)}" for name, value in request.environment]
    return "\n".join(
        (
            "#!/bin/sh",
            *(f"{mark} {line}" for line in lines),
            f"cd {shlex.quote(request.folder)} || exit 3",
            *exports,
            f"exec {shlex.join(request.command)}",
            "",
        )
    )


def next_of(request: JobRequest, directive: str) -> list[str]:
    """Return the directive for `request.after`. It goes behind the user's words, which it
    overrides: with a dependency of theirs instead, two jobs of one share would run at once."""
    return [directive + request.after] if request.after else []


def last_value(words: Sequence[str], short: str, long: str = "") -> str:
    """Return the value of an option in the words of a command line, the last of several: of `-p X`,
    `-pX`, `--partition X` and `--partition=X`. Empty without one."""
    value = ""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word in (short, long or short):
            value = following
        elif long and word.startswith(f"{long}="):
            value = word.partition("=")[2]
        elif word.startswith(short):
            value = word.removeprefix(short)
    return value


def clock(seconds: int) -> str:
    """HH:MM:SS, hours beyond 24 as they are."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def warning_s(request: JobRequest) -> int:
    """Return seconds before the limit at which a job gets a signal; for a short job a quarter of
    its time."""
    return min(WARN_S, request.limit_s // 4)


def refuse_network(request: JobRequest, scheduler: str) -> None:
    """Raise UsageError for Slurm's word for a VNI, which no other scheduler has."""
    if request.network:
        raise UsageError.of("network-option-alien", network=request.network, scheduler=scheduler)
