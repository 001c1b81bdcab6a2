"""The files behind a launch: programs, libraries, configuration files.

Takes a configuration; makes lists of files and their fingerprints. Reads files and the cache.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.evidence.files.config import OWN_SURROUNDINGS as OWN_SURROUNDINGS
    from mpigraft.evidence.files.config import Surroundings as Surroundings
    from mpigraft.evidence.files.config import mpi_config_files as mpi_config_files
    from mpigraft.evidence.files.used import Fingerprint as Fingerprint
    from mpigraft.evidence.files.used import changed_files as changed_files
    from mpigraft.evidence.files.used import fingerprint_files as fingerprint_files
    from mpigraft.evidence.files.used import image_lists as image_lists
    from mpigraft.evidence.files.used import launcher_files as launcher_files
    from mpigraft.evidence.files.used import mpi_libraries as mpi_libraries
    from mpigraft.evidence.files.used import opened_libraries as opened_libraries
    from mpigraft.evidence.files.used import plugin_folders as plugin_folders
    from mpigraft.evidence.files.used import used_files as used_files
else:
    __getattr__ = exports(__name__)
