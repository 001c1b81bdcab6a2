"""What each rank gets for itself: arguments and environment rows around its command.

`mpigraft-gpu-select` runs right inside of the launcher. It selects the rank's GPU by the rank's
number on its node, passes standard input or none, and takes the program's arguments
percent-encoded, so that no launcher interprets one. It runs outside of a container's engine, as a
program of the host: an image need not have it, and engines pass such things on.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.core.model import EnvRow, Placement, Scope
from mpigraft.knowledge import RankVariables, gpu_variables

# Words that every launcher passes on. Not a lone colon, which separates programs; nor a long
# option: PRRTE 3.0.13 makes --mapby of a program's own --map-by, ORTE 4.1.4 obeys its -tune.
HARMLESS = re.compile(r"-[A-Za-z0-9]|:[ -$&-~]+|[ -$&-,./0-9;-?A-~][ -$&-~]*")
PLAIN = re.compile(r"-[A-Za-z0-9]|[A-Za-z0-9_./=,+][A-Za-z0-9_./=,+@:-]*")  # by any shell too
PLAIN_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./=,+@:-")
NOT_FIRST = frozenset(b"@:-")
MAX_WORD = 65536  # bytes of one encoded word: execve takes twice that
EMPTY, CONTINUES = "%", "%+"


def rank_prefix(
    placement: Placement,
    path: Path,
    variables: RankVariables,
    reader: str = "",
    folder: str | Path = "",
) -> tuple[str, ...]:
    """Return the program at `path` and its options; nothing where no GPUs were chosen and standard
    input is left to the launcher. Else `reader` of it is 0, all or none, and `folder` the job's
    folder of records, as the program sees it. Raises UsageError for GPUs where no variable tells a
    rank its number on its node, and for those of an unknown vendor."""
    options: dict[str, str] = {}
    if placement.gpus:
        if not variables.node:
            raise UsageError.of("launcher-no-local-rank")
        chosen = "/".join(map(str, placement.gpus))
        options["--rank"] = ",".join(variables.node)
        options["--set"] = f"{gpu_variables(placement.vendor).variable}={chosen}"
    if reader:
        options["--stdin"] = reader
        if reader != "none":
            options |= {"--world": ",".join(variables.world), "--folder": str(folder)}
    if not options:
        return ()
    words = (word for name, value in options.items() for word in (name, *encode_word(value)))
    return (str(path), *words, "--")


def wrap_words(
    prefix: tuple[str, ...], path: Path, words: tuple[str, ...], program: tuple[str, ...]
) -> tuple[str, ...]:
    """Return a rank's words behind `prefix`, which `rank_prefix` gave. Where that is empty, they
    go behind the program at `path` only if a launcher might not pass every word of `program`, with
    which they end. Of the words before it, an engine's, only a colon is unsafe: many long options
    were tried and arrived."""
    if not prefix and ":" not in words and all(map(HARMLESS.fullmatch, program)):
        return words
    prefix = prefix or (str(path), "--")
    return (*prefix, *(part for word in words for part in encode_word(word)))


# ------------------------------------------------------------------ words


def encode_word(word: str) -> tuple[str, ...]:
    """Encode a word for mpigraft-gpu-select: itself where it is plain; else %XX for the bytes that
    some launcher might change, and for a first one that might make an option of it. One that
    becomes too long is several, and each but the last ends in `%+`."""
    if not word:
        return (EMPTY,)
    if PLAIN.fullmatch(word) and len(word) <= MAX_WORD:
        return (word,)
    data = os.fsencode(word)
    units = [chr(byte) if byte in PLAIN_BYTES else f"%{byte:02X}" for byte in data]
    if data[0] in NOT_FIRST:
        units[0] = f"%{data[0]:02X}"
    step = MAX_WORD // 3
    pieces = ["".join(units[at : at + step]) for at in range(0, len(units), step)]
    return (*(piece + CONTINUES for piece in pieces[:-1]), pieces[-1])


def is_binary(word: str) -> bool:
    """Return whether it has bytes that are not UTF-8."""
    return word != os.fsencode(word).decode("utf-8", "replace")


# ------------------------------------------------------------------ environment


def gpu_environment(placement: Placement) -> tuple[EnvRow, ...]:
    """Return the rows that are the same for all ranks: how GPUs are counted, and variables that
    would choose among them a second time."""
    if not placement.gpus:
        return ()
    variables = gpu_variables(placement.vendor)
    return (
        *(EnvRow(name, value, Scope.RANK, "layout") for name, value in variables.set),
        *(EnvRow(name, None, Scope.RANK, "layout") for name in variables.unset),
    )


def visible_gpus(placement: Placement, local: int) -> str:
    """Return what the rank of this number on its node must see: `ROCR_VISIBLE_DEVICES=4`."""
    return f"{gpu_variables(placement.vendor).variable}={placement.gpus[local]}"
