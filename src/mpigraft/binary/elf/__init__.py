"""ELF files as values.

Takes a path or bytes; makes an `Elf`: needs, symbols, versions, search paths. Raises ElfError.
Reads regular files alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.binary.elf.reader import Elf as Elf
    from mpigraft.binary.elf.reader import VersionNeed as VersionNeed
    from mpigraft.binary.elf.reader import parse_with as parse_with
    from mpigraft.binary.elf.reader import read_elf as read_elf
    from mpigraft.binary.elf.tables import ElfError as ElfError
    from mpigraft.binary.elf.tables import Symbol as Symbol
else:
    __getattr__ = exports(__name__)
