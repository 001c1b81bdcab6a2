"""Which PMI, compiler run-time library and fabric belong together, and how launchers' words read.

Takes fit.toml and launcher_words.toml; makes rows and answers for a launcher and an MPI. Reads
package data alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.knowledge.fit.launcher_words import LauncherWords as LauncherWords
    from mpigraft.knowledge.fit.launcher_words import find_launcher as find_launcher
    from mpigraft.knowledge.fit.ranks import rank_variables as rank_variables
    from mpigraft.knowledge.fit.ranks import task_in as task_in
    from mpigraft.knowledge.fit.rows import PMI as PMI
    from mpigraft.knowledge.fit.rows import GpuLibraries as GpuLibraries
    from mpigraft.knowledge.fit.rows import compilers_of_libraries as compilers_of_libraries
    from mpigraft.knowledge.fit.rows import compilers_of_symbols as compilers_of_symbols
    from mpigraft.knowledge.fit.rows import fit_facts as fit_facts
    from mpigraft.knowledge.fit.rows import known_world as known_world
    from mpigraft.knowledge.fit.rows import modules_of_symbols as modules_of_symbols
    from mpigraft.knowledge.fit.rows import wireups as wireups
else:
    __getattr__ = exports(__name__)
