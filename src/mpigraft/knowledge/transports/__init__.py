"""Named ways to move bytes, which row of a name is meant here, and what failed launches print.

Takes transports.toml and facts of a machine; makes `Transport` rows, or the reason why there is
none. Reads package data alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.knowledge.transports.causes import cause_table as cause_table
    from mpigraft.knowledge.transports.causes import ends_run as ends_run
    from mpigraft.knowledge.transports.fabrics import Reach as Reach
    from mpigraft.knowledge.transports.fabrics import fabric_reach as fabric_reach
    from mpigraft.knowledge.transports.match import Facts as Facts
    from mpigraft.knowledge.transports.match import matching_issues as matching_issues
    from mpigraft.knowledge.transports.match import resolve_transport as resolve_transport
    from mpigraft.knowledge.transports.match import transport_names as transport_names
    from mpigraft.knowledge.transports.match import transport_offers as transport_offers
    from mpigraft.knowledge.transports.match import transport_rows as transport_rows
else:
    __getattr__ = exports(__name__)
