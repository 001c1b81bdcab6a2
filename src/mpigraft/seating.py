"""How each rank of a node is shown its own GPU: the words and rows around what it runs.

Environment that differs from rank to rank is no launcher's matter, so `mpigraft-seat` stands
right inside of the launcher and picks by the rank's number on its node. Outside of a container's
engine, as the host's own program: an image need not have it, and engines hand such variables on.
"""

from __future__ import annotations

from pathlib import Path

from mpigraft.errors import UsageError
from mpigraft.knowledge.gpus import showing
from mpigraft.model import EnvRow, Placement, Scope


def words(placement: Placement, seat: Path, local_rank: str) -> tuple[str, ...]:
    """What stands before a rank's words: nothing where no GPUs were chosen. `local_rank` is the
    variable by which the launcher tells a rank its number; several are parted by commas. Raises
    UsageError where it tells none, and for GPUs of a vendor of which it is not known how they
    are shown."""
    if not placement.gpus:
        return ()
    if not local_rank:
        raise UsageError(
            "this launcher does not tell ranks their number on their node",
            why="each is shown its own GPU by that number",
            mend="use another launcher, or leave the layout's GPUs out",
        )
    chosen = "/".join(map(str, placement.gpus))
    given = f"{showing(placement.vendor).variable}={chosen}"
    return (str(seat), "--rank", local_rank, "--set", given, "--")


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
