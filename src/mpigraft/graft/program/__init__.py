"""A program of this machine that starts where it lies, on an MPI where that is installed.

Takes a command and an MPI; makes the verdict of the pair. Reads files and the cache.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.program.host_program import HostProgram as HostProgram
    from mpigraft.graft.program.in_place import InstalledFiles as InstalledFiles
    from mpigraft.graft.program.in_place import absent_bindings as absent_bindings
else:
    __getattr__ = exports(__name__)
