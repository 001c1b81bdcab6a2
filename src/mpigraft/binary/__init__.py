"""Programs and libraries as files: ELF, the loader's search, and file systems in images.

Knows nothing of MPI. Rooms inside: `architecture`, `elf`, `loader`, `image`.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.binary.architecture.interpreters import INTERPRETERS as INTERPRETERS
    from mpigraft.binary.architecture.levels import HERE as HERE
    from mpigraft.binary.architecture.levels import cpu_flags as cpu_flags
    from mpigraft.binary.architecture.levels import parse_flags as parse_flags
    from mpigraft.binary.elf.reader import Elf as Elf
    from mpigraft.binary.elf.reader import VersionNeed as VersionNeed
    from mpigraft.binary.elf.reader import read_elf as read_elf
    from mpigraft.binary.elf.tables import ElfError as ElfError
    from mpigraft.binary.elf.tables import Symbol as Symbol
    from mpigraft.binary.image.bound import BoundRoot as BoundRoot
    from mpigraft.binary.image.folder import FolderRoot as FolderRoot
    from mpigraft.binary.image.masked import MaskedRoot as MaskedRoot
    from mpigraft.binary.image.opening import open_root as open_root
    from mpigraft.binary.image.over import OverlayRoot as OverlayRoot
    from mpigraft.binary.image.root import Link as Link
    from mpigraft.binary.image.root import Root as Root
    from mpigraft.binary.image.root import RootEntry as RootEntry
    from mpigraft.binary.image.root import RootError as RootError
    from mpigraft.binary.image.root import host_path as host_path
    from mpigraft.binary.image.squashfs import SquashRoot as SquashRoot
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
