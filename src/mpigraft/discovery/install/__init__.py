"""MPIs as wheels, each in a prefix of its own, and what programs of theirs need besides.

Takes a family and a version; makes a prefix, of which every file is checked. Fetches from the
package index by pip.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.discovery.install.fetch import MPI_OFFERS as MPI_OFFERS
    from mpigraft.discovery.install.fetch import MPI_WHEELS as MPI_WHEELS
    from mpigraft.discovery.install.fetch import OPENMP_FOLDER as OPENMP_FOLDER
    from mpigraft.discovery.install.fetch import Wheel as Wheel
    from mpigraft.discovery.install.fetch import fetch_command as fetch_command
    from mpigraft.discovery.install.fetch import fetch_home as fetch_home
    from mpigraft.discovery.install.fetch import fetch_mpi as fetch_mpi
    from mpigraft.discovery.install.fetch import fetch_openmp as fetch_openmp
    from mpigraft.discovery.install.fetch import fetched_facts as fetched_facts
    from mpigraft.discovery.install.fetch import is_tested as is_tested
else:
    __getattr__ = exports(__name__)
