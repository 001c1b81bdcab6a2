"""Where the MPI time of one run went.

Takes the files that traced ranks wrote, or another tool's report; makes a `Profile`. Reads files
alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.trace.profile.counted import Counting as Counting
    from mpigraft.trace.profile.counted import counted_profile as counted_profile
    from mpigraft.trace.profile.counted import read_counts as read_counts
    from mpigraft.trace.profile.document import render_profile as render_profile
    from mpigraft.trace.profile.reading import is_profile as is_profile
    from mpigraft.trace.profile.reading import read_profile as read_profile
    from mpigraft.trace.profile.values import OWN as OWN
    from mpigraft.trace.profile.values import Peer as Peer
    from mpigraft.trace.profile.values import Profile as Profile
    from mpigraft.trace.profile.values import RankUse as RankUse
    from mpigraft.trace.profile.values import Routine as Routine
    from mpigraft.trace.profile.worlds import sort_counts as sort_counts
else:
    __getattr__ = exports(__name__)
