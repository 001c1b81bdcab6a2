"""What each rank is given that is its own: the words and rows around what it runs.

`mpigraft-seat` stands right inside of the launcher. It picks the rank's GPU by its number on the
node, gives it standard input or none, and takes the words of the program percent-encoded, so that
no launcher meets one that means something to it. Outside of a container's engine, as the host's
own program: an image need not have it, and engines hand such things on.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from mpigraft.errors import UsageError
from mpigraft.knowledge.gpus import showing
from mpigraft.model import EnvRow, Placement, Scope

# Words that every launcher hands on. Not a lone colon, at which they part programs; nor a long
# option: PRRTE 3.0.13 makes --mapby of a program's own --map-by, ORTE 4.1.4 obeys its -tune.
HARMLESS = re.compile(r"-[A-Za-z0-9]|:[ -$&-~]+|[ -$&-,./0-9;-?A-~][ -$&-~]*")
PLAIN = re.compile(r"-[A-Za-z0-9]|[A-Za-z0-9_./=,+][A-Za-z0-9_./=,+@:-]*")  # by any shell too
KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./=,+@:-")
NOT_FIRST = frozenset(b"@:-")
MOST = 65536  # bytes of one encoded word: execve takes twice that
EMPTY, ON = "%", "%+"


@dataclass(frozen=True, slots=True)
class Input:
    """Who reads standard input: `whose` is 0, all or none. `folder` is the job's folder of
    records, as the seat sees it; `world` the variable with a rank's number."""

    whose: str
    world: str
    folder: str


def words(
    placement: Placement, seat: Path, local_rank: str, reads: Input | None = None
) -> tuple[str, ...]:
    """What stands before a rank's words: nothing where no GPUs were chosen and nobody sees to
    standard input. `local_rank` is the variable by which the launcher tells a rank its number on
    its node; several are parted by commas. Raises UsageError where it tells none, and for GPUs of
    a vendor of which it is not known how they are shown."""
    options: dict[str, str] = {}
    if placement.gpus:
        if not local_rank:
            raise UsageError(
                "this launcher does not tell ranks their number on their node",
                why="each is shown its own GPU by that number",
                mend="use another launcher, or leave the layout's GPUs out",
            )
        chosen = "/".join(map(str, placement.gpus))
        options["--rank"] = local_rank
        options["--set"] = f"{showing(placement.vendor).variable}={chosen}"
    if reads:
        options["--stdin"] = reads.whose
        if reads.whose != "none":
            options |= {"--world": reads.world, "--folder": reads.folder}
    if not options:
        return ()
    given = (word for name, value in options.items() for word in (name, *encoded(value)))
    return (str(seat), *given, "--")


def seated(
    front: tuple[str, ...], seat: Path, given: tuple[str, ...], program: tuple[str, ...]
) -> tuple[str, ...]:
    """A rank's words behind those that `words` gave; where these are none, behind the seat alone
    if a launcher might not hand on every word of `program`, with which they end. Of words before
    it, an engine's, only a colon is feared: long options in plenty were seen to arrive."""
    if not front and ":" not in given and all(map(HARMLESS.fullmatch, program)):
        return given
    front = front or (str(seat), "--")
    return (*front, *(part for word in given for part in encoded(word)))


# ------------------------------------------------------------------ words


def encoded(word: str) -> tuple[str, ...]:
    """A word as mpigraft-seat takes it: itself where it is plain; else %XX for the bytes of which
    not all launchers are known to hand them on, and for a first one that might make an option of
    it. One that becomes too long is several, of which each but the last ends in `%+`."""
    if not word:
        return (EMPTY,)
    if PLAIN.fullmatch(word) and len(word) <= MOST:
        return (word,)
    given = os.fsencode(word)
    units = [chr(byte) if byte in KEPT else f"%{byte:02X}" for byte in given]
    if given[0] in NOT_FIRST:
        units[0] = f"%{given[0]:02X}"
    step = MOST // 3
    pieces = ["".join(units[at : at + step]) for at in range(0, len(units), step)]
    return (*(piece + ON for piece in pieces[:-1]), pieces[-1])


def is_binary(word: str) -> bool:
    """Whether it has bytes that are no UTF-8."""
    return word != os.fsencode(word).decode("utf-8", "replace")


def decoded(word: str) -> str:
    """A word that is in one piece again. Raises ValueError for what `encoded` does not write."""
    if word == EMPTY:
        return ""
    given = os.fsencode(word)
    if re.search(rb"%(?![0-9A-F]{2})|%00", given):
        raise ValueError(f"{word!r} is no encoded word")
    return os.fsdecode(re.sub(rb"%(..)", lambda found: bytes([int(found[1], 16)]), given))


# ------------------------------------------------------------------ rows


def rows(placement: Placement) -> tuple[EnvRow, ...]:
    """What is the same for all ranks: how GPUs are counted, and variables that would choose among
    them once more."""
    if not placement.gpus:
        return ()
    how = showing(placement.vendor)
    return (
        *(EnvRow(name, value, Scope.RANK, "layout") for name, value in how.set),
        *(EnvRow(name, None, Scope.RANK, "layout") for name in how.unset),
    )


def shown(placement: Placement, local: int) -> str:
    """What the rank of this number on its node must see: `ROCR_VISIBLE_DEVICES=4`."""
    return f"{showing(placement.vendor).variable}={placement.gpus[local]}"
