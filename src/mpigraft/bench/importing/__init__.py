"""Results that were measured elsewhere.

Takes files of OSU, IMB and ReFrame and exported campaigns, one by one or by the folder, and what
their names say; writes them to the store as launches of a campaign. Reads files.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.bench.importing.batches import ImportedFile as ImportedFile
    from mpigraft.bench.importing.batches import import_files as import_files
    from mpigraft.bench.importing.pattern import Pattern as Pattern
    from mpigraft.bench.importing.reading import ImportOptions as ImportOptions
    from mpigraft.bench.importing.sources import Unmatched as Unmatched
    from mpigraft.bench.importing.sources import collect_sources as collect_sources
else:
    __getattr__ = exports(__name__)
