"""What brings an MPI or its launcher to programs of a stack without an injection of ours: modules
of Lmod and of environment modules, and Spack's externals.

Takes an MPI or an override; makes text, and the check of what it would do. Reads files alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.stack.external.in_place import check_module as check_module
    from mpigraft.graft.stack.external.in_place import check_splice as check_splice
    from mpigraft.graft.stack.external.in_place import search_folders as search_folders
    from mpigraft.graft.stack.external.rendering import ModuleFile as ModuleFile
    from mpigraft.graft.stack.external.rendering import module_of_launcher as module_of_launcher
    from mpigraft.graft.stack.external.rendering import module_of_mpi as module_of_mpi
    from mpigraft.graft.stack.external.rendering import render_module as render_module
    from mpigraft.graft.stack.external.rendering import render_spack as render_spack
else:
    __getattr__ = exports(__name__)
