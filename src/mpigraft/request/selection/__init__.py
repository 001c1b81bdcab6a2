"""Which MPI, transport, guest and layout a request means on this machine.

Takes a request and a `Machine`; makes `Configuration`s and layouts. Reads files alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.request.selection.configurations import choose_baseline as choose_baseline
    from mpigraft.request.selection.configurations import library_digests as library_digests
    from mpigraft.request.selection.configurations import make_configuration as make_configuration
    from mpigraft.request.selection.configurations import make_configurations as make_configurations
    from mpigraft.request.selection.configurations import reached_nodes as reached_nodes
    from mpigraft.request.selection.layouts import requested_layouts as requested_layouts
    from mpigraft.request.selection.mpi import MpiSelection as MpiSelection
    from mpigraft.request.selection.mpi import first_mpi as first_mpi
    from mpigraft.request.selection.mpi import mpi_for_guest as mpi_for_guest
    from mpigraft.request.selection.mpi import select_mpis as select_mpis
    from mpigraft.request.selection.program import mpi_for_programs as mpi_for_programs
    from mpigraft.request.selection.program import mpi_under_program as mpi_under_program
else:
    __getattr__ = exports(__name__)
