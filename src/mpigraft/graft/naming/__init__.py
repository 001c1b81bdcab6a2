"""Names of private copies of a host's libraries, and of the symbols in them.

Takes `AbiObject`s; makes names. Computes alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.naming.private import Naming as Naming
    from mpigraft.graft.naming.private import names_of as names_of
else:
    __getattr__ = exports(__name__)
