"""Stored values -> verdicts with confidence intervals.

Takes a campaign's configurations and values; makes a `Comparison` and findings. Computes alone.
Rooms inside: `interim` (looks), `pairs` (of nodes), `growth` (over nodes).
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.analysis.across import swap_arms as swap_arms
    from mpigraft.analysis.comparison import judge_campaign as judge_campaign
    from mpigraft.analysis.decision import MIN_ROUNDS as MIN_ROUNDS
    from mpigraft.analysis.disturbance import is_disturbed as is_disturbed
    from mpigraft.analysis.findings import campaign_findings as campaign_findings
    from mpigraft.analysis.grouping import labels_of as labels_of
    from mpigraft.analysis.reasons import reason_of as reason_of
    from mpigraft.analysis.reasons import size_bound as size_bound
    from mpigraft.analysis.steps import judge_steps as judge_steps
    from mpigraft.analysis.unpaired.campaigns import compare_campaigns as compare_campaigns
    from mpigraft.analysis.unpaired.levels import curve_levels as curve_levels
    from mpigraft.analysis.values import values_by_size as values_by_size
else:
    __getattr__ = exports(__name__)
