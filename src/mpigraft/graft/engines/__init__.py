"""Container engines: how each one starts a rank inside a guest.

Takes a `GraftPlan` and an `EngineContext`; makes argument lists, CDI documents and wrapper scripts.
May ask an engine for its version. One module for each engine.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.engines.cdi import cdi_document as cdi_document
    from mpigraft.graft.engines.options import options_by_engine as options_by_engine
    from mpigraft.graft.engines.options import with_engine_options as with_engine_options
    from mpigraft.graft.engines.registry import DEFAULT_ENGINES as DEFAULT_ENGINES
    from mpigraft.graft.engines.registry import ENGINES as ENGINES
    from mpigraft.graft.engines.registry import engine_words as engine_words
    from mpigraft.graft.engines.registry import find_engine as find_engine
    from mpigraft.graft.engines.registry import same_paths_inside as same_paths_inside
    from mpigraft.graft.engines.registry import select_engine as select_engine
    from mpigraft.graft.engines.registry import visible_folders as visible_folders
    from mpigraft.graft.engines.registry import wrap_program as wrap_program
    from mpigraft.graft.engines.wrapper import wrapper_script as wrapper_script
else:
    __getattr__ = exports(__name__)
