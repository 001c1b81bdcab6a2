"""From a recipe to an MPI that is built for this machine.

Takes a request and what this machine offers; makes a `BuildPlan`: packages in order, each with its
version, sources, options, and why. Writes easyconfigs below the prefix, and EasyBuild builds them;
a Spack environment is text. Touches nothing outside the prefix.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.build.describe import FORMS as FORMS
    from mpigraft.build.describe import render_plan as render_plan
    from mpigraft.build.easybuild import build as build
    from mpigraft.build.folders import BuildFolders as BuildFolders
    from mpigraft.build.host import HostOptions as HostOptions
    from mpigraft.build.host import build_host as build_host
    from mpigraft.build.host import check_sources as check_sources
    from mpigraft.build.plan import plan_system as plan_system
    from mpigraft.build.progress import BuildProgress as BuildProgress
    from mpigraft.build.settings import write_transport_modules as write_transport_modules
    from mpigraft.build.values import BuildPlan as BuildPlan
    from mpigraft.build.values import BuildRequest as BuildRequest
else:
    __getattr__ = exports(__name__)
