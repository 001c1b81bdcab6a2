"""A campaign as an archive for a paper or a vendor's ticket, with nothing private in it.

Takes a store and names of campaigns; makes files by name, and an archive of them. Writes that
archive, and no results.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.report.bundle.contents import Choice as Choice
    from mpigraft.report.bundle.contents import write_bundle as write_bundle
else:
    __getattr__ = exports(__name__)
