"""What a host MPI's libraries promise: names, symbols, versions, files they open.

Takes an `MpiInstall`, or a saved description; makes an `MpiAbi`. Reads files and the cache.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.abi.copies import as_elf as as_elf
    from mpigraft.graft.abi.libraries import read_abi as read_abi
    from mpigraft.graft.abi.saved import abi_from_machine as abi_from_machine
    from mpigraft.graft.abi.saved import machine_content as machine_content
    from mpigraft.graft.abi.saved import read_machine as read_machine
else:
    __getattr__ = exports(__name__)
