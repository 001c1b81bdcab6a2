"""Reports of other profilers, each read into a `Profile`.

Takes a report's text; makes a `Profile`. Raises UsageError with file and line for what is damaged.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.trace.profile.reports.report import REPORTS as REPORTS
else:
    __getattr__ = exports(__name__)
