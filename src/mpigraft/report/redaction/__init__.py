"""What is struck out of a text that leaves the site.

Takes text, and a campaign whose hosts and users it may name; makes text. Computes alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.report.redaction.rules import hide_folders as hide_folders
    from mpigraft.report.redaction.rules import hosts_of as hosts_of
    from mpigraft.report.redaction.rules import redactor as redactor
    from mpigraft.report.redaction.rules import users_of as users_of
else:
    __getattr__ = exports(__name__)
