"""Compare campaigns that were measured at different times.

Takes what the store has of two or more campaigns; makes a `Comparison`, the list of what changed
between them, and the changes of a history. Computes alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.analysis.overtime.changes import Change as Change
    from mpigraft.analysis.overtime.changes import list_changes as list_changes
    from mpigraft.analysis.overtime.changes import what_changed as what_changed
    from mpigraft.analysis.overtime.good import RECHECK as RECHECK
    from mpigraft.analysis.overtime.good import last_good as last_good
    from mpigraft.analysis.overtime.good import recheck_rounds as recheck_rounds
    from mpigraft.analysis.overtime.history import Line as Line
    from mpigraft.analysis.overtime.history import Shift as Shift
    from mpigraft.analysis.overtime.history import sort_history as sort_history
    from mpigraft.analysis.overtime.matching import Pair as Pair
    from mpigraft.analysis.overtime.matching import labels_with_values as labels_with_values
    from mpigraft.analysis.overtime.matching import match_configurations as match_configurations
else:
    __getattr__ = exports(__name__)
