"""Records of applications: what each rank called of MPI, repeats folded, the file of them all, its
phases and its all-to-all exchanges.

Takes bytes and paths; makes values and bytes. Reads files, and writes those that replays read into
the user's data folder.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.trace.record.exchanges import Exchange as Exchange
    from mpigraft.trace.record.exchanges import find_exchanges as find_exchanges
    from mpigraft.trace.record.file import RecordFile as RecordFile
    from mpigraft.trace.record.file import collect_ranks as collect_ranks
    from mpigraft.trace.record.file import read_record as read_record
    from mpigraft.trace.record.file import read_record_file as read_record_file
    from mpigraft.trace.record.file import write_record as write_record
    from mpigraft.trace.record.ladder import make_ladder as make_ladder
    from mpigraft.trace.record.phases import Phase as Phase
    from mpigraft.trace.record.phases import find_phases as find_phases
    from mpigraft.trace.record.prepared import Prepared as Prepared
    from mpigraft.trace.record.values import Provenance as Provenance
else:
    __getattr__ = exports(__name__)
