"""What this machine has: MPIs, networks, CPUs, GPUs, launchers, schedulers.

Takes this host's files and commands; makes a `Machine`. May start probes in children and fetch
MPIs as wheels from the package index. `sources/` has a module for each way to find an MPI.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.discovery.install.fetch import MPI_OFFERS as MPI_OFFERS
    from mpigraft.discovery.install.fetch import MPI_WHEELS as MPI_WHEELS
    from mpigraft.discovery.install.fetch import OPENMP_FOLDER as OPENMP_FOLDER
    from mpigraft.discovery.install.fetch import Wheel as Wheel
    from mpigraft.discovery.install.fetch import fetch_command as fetch_command
    from mpigraft.discovery.install.fetch import fetch_mpi as fetch_mpi
    from mpigraft.discovery.install.fetch import fetch_openmp as fetch_openmp
    from mpigraft.discovery.install.fetch import is_tested as is_tested
    from mpigraft.discovery.install.offers import FetchOffer as FetchOffer
    from mpigraft.discovery.install.offers import fetch_offers as fetch_offers
    from mpigraft.discovery.inventory import discover_machine as discover_machine
    from mpigraft.discovery.inventory import with_places as with_places
    from mpigraft.discovery.known import known_mpis as known_mpis
    from mpigraft.discovery.modules import module_mpis as module_mpis
    from mpigraft.discovery.modules import row_content as row_content
    from mpigraft.discovery.modules import rows_of_modules as rows_of_modules
    from mpigraft.discovery.sources.candidate import Host as Host
    from mpigraft.discovery.sources.given import is_at as is_at
    from mpigraft.discovery.sources.given import is_place as is_place
    from mpigraft.discovery.sources.install import network_library as network_library
    from mpigraft.discovery.sources.interfaces import binding_files as binding_files
    from mpigraft.discovery.sources.interfaces import read_for_machine as read_for_machine
    from mpigraft.discovery.sources.interfaces import regular_files as regular_files
else:
    __getattr__ = exports(__name__)
