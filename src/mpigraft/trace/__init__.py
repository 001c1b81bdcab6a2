"""What an application calls of MPI: profile, record, replay.

Takes files that ranks of a traced program wrote; makes values. Reads files alone. Rooms: `profile`,
`record`.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.trace.profile.counted import Counting as Counting
    from mpigraft.trace.profile.counted import counted_profile as counted_profile
    from mpigraft.trace.profile.counted import read_counts as read_counts
    from mpigraft.trace.profile.document import render_profile as render_profile
    from mpigraft.trace.profile.reading import is_profile as is_profile
    from mpigraft.trace.profile.reading import read_profile as read_profile
    from mpigraft.trace.profile.values import OWN as OWN
    from mpigraft.trace.profile.values import PeerTraffic as PeerTraffic
    from mpigraft.trace.profile.values import Profile as Profile
    from mpigraft.trace.profile.values import RankUse as RankUse
    from mpigraft.trace.profile.values import Routine as Routine
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
