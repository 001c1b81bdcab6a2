"""Decide when the curves of a campaign may be called before its end.

Takes a plan's looks and the rounds that are over; makes levels and due looks. Computes alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.analysis.interim.looks import FLIPS as FLIPS
    from mpigraft.analysis.interim.looks import PLANNED_ONCE as PLANNED_ONCE
    from mpigraft.analysis.interim.looks import called_curves as called_curves
    from mpigraft.analysis.interim.looks import campaign_looks as campaign_looks
    from mpigraft.analysis.interim.looks import due_looks as due_looks
    from mpigraft.analysis.interim.looks import looks_taken as looks_taken
    from mpigraft.analysis.interim.looks import refuse_empty_look as refuse_empty_look
    from mpigraft.analysis.interim.looks import rounds_over as rounds_over
    from mpigraft.analysis.interim.looks import settle_looks as settle_looks
else:
    __getattr__ = exports(__name__)
