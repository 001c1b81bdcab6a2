"""Graft folders: what a plan copies, made once on a disk that all nodes see.

Takes a `GraftPlan`; makes its folder and the paths in it. Writes and removes below the user's data
folder, and starts patchelf.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.folder.folders import PLAN_FILE as PLAN_FILE
    from mpigraft.graft.folder.folders import RANKS_FOLDER as RANKS_FOLDER
    from mpigraft.graft.folder.folders import GraftFolder as GraftFolder
    from mpigraft.graft.folder.folders import disk_usage as disk_usage
    from mpigraft.graft.folder.folders import graft_environment as graft_environment
    from mpigraft.graft.folder.folders import graft_folder as graft_folder
    from mpigraft.graft.folder.folders import graft_folders as graft_folders
    from mpigraft.graft.folder.folders import materialize as materialize
    from mpigraft.graft.folder.folders import path_in_guest as path_in_guest
    from mpigraft.graft.folder.folders import paths_in_guest as paths_in_guest
    from mpigraft.graft.folder.folders import prune_grafts as prune_grafts
    from mpigraft.graft.folder.folders import remove_graft as remove_graft
else:
    __getattr__ = exports(__name__)
