"""A software stack as a guest: its programs that need MPI, and the overrides that they search.

Takes a folder, or one program of it; makes a `Stack`. Reads files alone, and runs none of them.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.stack.guest import StackGuest as StackGuest
    from mpigraft.graft.stack.guest import examine_stack as examine_stack
    from mpigraft.graft.stack.guest import stack_of_program as stack_of_program
    from mpigraft.graft.stack.injected import check_injected as check_injected
    from mpigraft.graft.stack.places import is_stack as is_stack
    from mpigraft.graft.stack.reading import read_stack as read_stack
    from mpigraft.graft.stack.targets import cpu_target as cpu_target
    from mpigraft.graft.stack.values import Fate as Fate
    from mpigraft.graft.stack.values import Slot as Slot
    from mpigraft.graft.stack.values import Stack as Stack
    from mpigraft.graft.stack.values import StackVerdict as StackVerdict
    from mpigraft.graft.stack.verdict import check_stack as check_stack
else:
    __getattr__ = exports(__name__)
