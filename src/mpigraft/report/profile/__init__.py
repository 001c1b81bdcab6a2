"""A profile for people: text of 80 columns and an HTML page; and a record's exchanges.

Takes a `Profile` or exchanges; makes text of them. Prints nothing itself.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.report.profile.exchanges import exchange_lines as exchange_lines
    from mpigraft.report.profile.exchanges import phase_lines as phase_lines
    from mpigraft.report.profile.ladder import ladder_lines as ladder_lines
    from mpigraft.report.profile.page import render_profile_page as render_profile_page
    from mpigraft.report.profile.text import profile_lines as profile_lines
else:
    __getattr__ = exports(__name__)
