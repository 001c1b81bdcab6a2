"""Which files of a tree need MPI, by the names that they need.

Takes what files are called and what they need; makes the names that carry MPI. Reads nothing.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.needs.names import MPI_TOOLS as MPI_TOOLS
    from mpigraft.graft.needs.names import LinkedFile as LinkedFile
    from mpigraft.graft.needs.names import mpi_carriers as mpi_carriers
else:
    __getattr__ = exports(__name__)
