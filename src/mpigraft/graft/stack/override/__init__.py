"""What of a host MPI goes into the override of a stack, and what takes the place of one.

Takes an `MpiAbi` and a `Slot`; makes an `OverridePlan`, plain data. Reads files alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.stack.override.content import ENVIRONMENT_FILE as ENVIRONMENT_FILE
    from mpigraft.graft.stack.override.content import GENERATION as GENERATION
    from mpigraft.graft.stack.override.content import LIB as LIB
    from mpigraft.graft.stack.override.content import SETTINGS as SETTINGS
    from mpigraft.graft.stack.override.content import OverridePlan as OverridePlan
    from mpigraft.graft.stack.override.content import Source as Source
    from mpigraft.graft.stack.override.content import override_files as override_files
    from mpigraft.graft.stack.override.content import plan_override as plan_override
    from mpigraft.graft.stack.override.launcher import LAUNCHERS as LAUNCHERS
    from mpigraft.graft.stack.override.marks import generation_mark as generation_mark
    from mpigraft.graft.stack.override.marks import mapped_marks as mapped_marks
    from mpigraft.graft.stack.override.network import network_part as network_part
else:
    __getattr__ = exports(__name__)
