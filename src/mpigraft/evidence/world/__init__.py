"""The world that ran: ranks, hosts, mapped libraries, bindings, from the witness's records.

Takes a folder of records; makes `RankRecord`s and findings. Reads files alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.evidence.world.bindings import BINDING_CODES as BINDING_CODES
    from mpigraft.evidence.world.failures import explain_failure as explain_failure
    from mpigraft.evidence.world.failures import used_up_memory as used_up_memory
    from mpigraft.evidence.world.mapped import LIBMPI as LIBMPI
    from mpigraft.evidence.world.networks import NETWORK_LIBRARY as NETWORK_LIBRARY
    from mpigraft.evidence.world.networks import due_networks as due_networks
    from mpigraft.evidence.world.overrides import due_mark as due_mark
    from mpigraft.evidence.world.records import read_entered as read_entered
    from mpigraft.evidence.world.records import read_witness as read_witness
    from mpigraft.evidence.world.witness import check_launched as check_launched
    from mpigraft.evidence.world.witness import check_witness as check_witness
    from mpigraft.evidence.world.witness import due_library as due_library
else:
    __getattr__ = exports(__name__)
