"""What goes into the override of a stack, and its numbered generations.

Takes an `MpiAbi` and a `Slot`; makes an `OverridePlan`, and of it a generation. Writes beside the
override alone; a generation is switched on and off by renaming one symlink.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.stack.override.content import override_files as override_files
    from mpigraft.graft.stack.override.content import plan_override as plan_override
    from mpigraft.graft.stack.override.drift import mixed_generations as mixed_generations
else:
    __getattr__ = exports(__name__)
