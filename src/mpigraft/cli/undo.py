"""`mpigraft undo`: back to what a stack had before an injection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import Json, flag, option, out, refuse_alone, tell
from mpigraft.cli.inject import choose_slot
from mpigraft.core.errors import UsageError
from mpigraft.core.text import printable
from mpigraft.report import generation_lines, generations_document

if TYPE_CHECKING:
    from mpigraft.core.model import Finding


def command(
    stack: Annotated[str, typer.Argument(help="Folder of a software stack, or a program of it.")],
    slot: Annotated[
        str,
        option("FOLDER", "Override to use, of several that programs search.", "the one in use"),
    ] = "",
    to: Annotated[
        int | None,
        option("N", "Generation to switch to; 0: the stack's own.", "the one before"),
    ] = None,
    prune: Annotated[
        bool, flag("Remove generations that are not on; switch nothing.", "--prune")
    ] = False,
    keep: Annotated[
        float | None,
        option("DAYS", "With --prune: keep what others may use for DAYS.", "14", min=0),
    ] = None,
    list_: Annotated[bool, flag("List the generations; change nothing.", "--list")] = False,
    as_json: Json = False,
) -> None:
    """Switch a stack back to the generation before, or to its own MPI.

    The switch is one rename. Programs that run go on with what they started with, as long as its
    generation is there. --prune keeps a generation that is on, that a job has a lease of, or that
    a process of this host has mapped; where processes may not be read, also what was switched off
    less than --keep days ago.

    \b
    Examples:
      mpigraft undo ~/stack --list
      mpigraft undo ~/stack
      mpigraft undo ~/stack --to 0
      mpigraft undo ~/stack --prune
      mpigraft undo ~/stack --prune --keep 0
    """
    from mpigraft.cli.check_stack import read_named_stack
    from mpigraft.graft import prune as remove
    from mpigraft.graft import read_override, undo

    if prune and to is not None:
        raise UsageError.of("undo-both")
    if not prune:
        refuse_alone("--prune", keep=keep is not None)
    there = read_named_stack(stack)
    overrides = [read_override(one) for one in there.slots]
    used = [o.slot for o in overrides if o.current] or [o.slot for o in overrides if o.generations]
    chosen = choose_slot(there, slot, used or there.slots)
    removed: tuple[int, ...] = ()
    kept: tuple[tuple[int, Finding], ...] = ()
    if prune:
        removed, kept = remove(chosen, keep, _notice)
    elif not list_:
        undo(chosen, to)
    override = read_override(chosen)
    if as_json:
        out(generations_document(override, removed, kept))
    else:
        out("\n".join(generation_lines(override, removed, kept, pruned=prune)))
        for other in overrides:
            if other.current and other.slot != chosen:
                out(printable(f"also on, and not changed: {other.link}; --slot names it"))


def _notice(finding: Finding) -> None:
    tell(printable(f"mpigraft: {finding.message}") + "\n" + printable(f"what to do: {finding.fix}"))
