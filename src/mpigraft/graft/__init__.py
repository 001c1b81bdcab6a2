"""The host's MPI put under a guest: the plan of it.

Takes a guest, an MPI and a machine; makes a `GraftPlan`: files, binds, environment, devices, as
plain data. Reads files alone. Rooms: `guest`, `abi`, `resolve`, `check`, `folder`, `engines`.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.assemble import GraftOptions as GraftOptions
    from mpigraft.graft.assemble import judge_pair as judge_pair
    from mpigraft.graft.assemble import plan_graft as plan_graft
    from mpigraft.graft.assemble import plan_own_mpi as plan_own_mpi
    from mpigraft.graft.assemble import reading_errors as reading_errors
    from mpigraft.graft.assemble_stack import ACCEPTED as ACCEPTED
    from mpigraft.graft.assemble_stack import due_leases as due_leases
    from mpigraft.graft.assemble_stack import plan_stack as plan_stack
    from mpigraft.graft.assemble_stack import stack_install as stack_install
else:
    __getattr__ = exports(__name__)
