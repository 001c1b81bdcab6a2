"""A software stack as a guest: its programs that need MPI, and the overrides that they search.

Takes a folder, or one program of it; makes a `Stack`. Reads files alone, and runs none of them.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.stack.values import Slot as Slot
else:
    __getattr__ = exports(__name__)
