"""Numbered generations of an override: made, switched on and off by one rename, and removed.

Takes an `OverridePlan`; makes a generation of it. Writes beside the override alone, and reads what
processes of this host have mapped.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.stack.generations.commands import render_commands as render_commands
    from mpigraft.graft.stack.generations.drift import find_drift as find_drift
    from mpigraft.graft.stack.generations.drift import mapped_generations as mapped_generations
    from mpigraft.graft.stack.generations.drift import mixed_generations as mixed_generations
    from mpigraft.graft.stack.generations.drift import newer_content as newer_content
    from mpigraft.graft.stack.generations.pruning import prune as prune
    from mpigraft.graft.stack.generations.reading import GenerationRecord as GenerationRecord
    from mpigraft.graft.stack.generations.reading import Override as Override
    from mpigraft.graft.stack.generations.reading import read_override as read_override
    from mpigraft.graft.stack.generations.switching import refuse_unfit as refuse_unfit
    from mpigraft.graft.stack.generations.switching import switch_on as switch_on
    from mpigraft.graft.stack.generations.switching import undo as undo
else:
    __getattr__ = exports(__name__)
