"""What the dynamic loader would map and bind, without running anything.

Takes a program, an environment and a root; makes its `closure` with the rule of each hit, and the
symbols and versions that stay unbound. Reads files; asks this host's loader for its defaults.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.binary.loader.dependencies import closure as closure
    from mpigraft.binary.loader.dependencies import closure_digests as closure_digests
    from mpigraft.binary.loader.dependencies import closures as closures
    from mpigraft.binary.loader.guest import ForeignLoader as ForeignLoader
    from mpigraft.binary.loader.guest import glibc_version as glibc_version
    from mpigraft.binary.loader.host import LOADER_VARIABLES as LOADER_VARIABLES
    from mpigraft.binary.loader.search import Resolved as Resolved
    from mpigraft.binary.loader.search import Rule as Rule
    from mpigraft.binary.loader.symbols import UnboundSymbol as UnboundSymbol
    from mpigraft.binary.loader.symbols import UnmetVersion as UnmetVersion
    from mpigraft.binary.loader.symbols import unbound_symbols as unbound_symbols
    from mpigraft.binary.loader.symbols import unmet_versions as unmet_versions
else:
    __getattr__ = exports(__name__)
