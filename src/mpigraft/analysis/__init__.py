"""Stored values -> verdicts with confidence intervals.

Takes a campaign's configurations and values; makes a `Comparison` and findings. Computes alone.
Inside: `statistics`, `pairs` (of nodes), `rank_scaling`, `between_campaigns` and `overtime`.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.analysis.across import setting_arms as setting_arms
    from mpigraft.analysis.across import swap_arms as swap_arms
    from mpigraft.analysis.between_campaigns.campaigns import compare_campaigns as compare_campaigns
    from mpigraft.analysis.comparison import judge_campaign as judge_campaign
    from mpigraft.analysis.disturbance import is_disturbed as is_disturbed
    from mpigraft.analysis.findings import campaign_findings as campaign_findings
    from mpigraft.analysis.grouping import labels_of as labels_of
    from mpigraft.analysis.interim import campaign_looks as campaign_looks
    from mpigraft.analysis.interim import looks_taken as looks_taken
    from mpigraft.analysis.interim import refuse_empty_look as refuse_empty_look
    from mpigraft.analysis.interim import rounds_over as rounds_over
    from mpigraft.analysis.interim import settle_looks as settle_looks
    from mpigraft.analysis.overtime.changes import FactChange as FactChange
    from mpigraft.analysis.overtime.changes import list_changes as list_changes
    from mpigraft.analysis.overtime.changes import what_changed as what_changed
    from mpigraft.analysis.overtime.history import HistoryLine as HistoryLine
    from mpigraft.analysis.overtime.history import HistoryPoint as HistoryPoint
    from mpigraft.analysis.overtime.history import Shift as Shift
    from mpigraft.analysis.overtime.history import sort_history as sort_history
    from mpigraft.analysis.overtime.matching import labels_with_values as labels_with_values
    from mpigraft.analysis.overtime.matching import match_configurations as match_configurations
    from mpigraft.analysis.overtime.matching import unmatched as unmatched
    from mpigraft.analysis.overtime.reference_state import RECHECK as RECHECK
    from mpigraft.analysis.overtime.reference_state import last_good as last_good
    from mpigraft.analysis.overtime.reference_state import recheck_rounds as recheck_rounds
    from mpigraft.analysis.pairs.matrices import PAIRS_BENCHMARK as PAIRS_BENCHMARK
    from mpigraft.analysis.pairs.matrices import Pair as Pair
    from mpigraft.analysis.pairs.matrices import PairMatrix as PairMatrix
    from mpigraft.analysis.pairs.matrices import direction_phrase as direction_phrase
    from mpigraft.analysis.pairs.matrices import is_link as is_link
    from mpigraft.analysis.pairs.matrices import pair_matrices as pair_matrices
    from mpigraft.analysis.rank_scaling.laws import LAW_REACH as LAW_REACH
    from mpigraft.analysis.rank_scaling.laws import LAWS as LAWS
    from mpigraft.analysis.rank_scaling.laws import Law as Law
    from mpigraft.analysis.rank_scaling.scaling import Growth as Growth
    from mpigraft.analysis.rank_scaling.scaling import Prediction as Prediction
    from mpigraft.analysis.rank_scaling.scaling import fit_growth as fit_growth
    from mpigraft.analysis.ratio_attribution import StepRatio as StepRatio
    from mpigraft.analysis.ratio_attribution import judge_steps as judge_steps
    from mpigraft.analysis.reasons import reason_of as reason_of
    from mpigraft.analysis.reasons import size_bound as size_bound
    from mpigraft.analysis.reasons import too_noisy as too_noisy
    from mpigraft.analysis.routines import issues_of_profiles as issues_of_profiles
    from mpigraft.analysis.shapes import MeasuredCurve as MeasuredCurve
    from mpigraft.analysis.shapes import curve_of as curve_of
    from mpigraft.analysis.shapes import issues_of_curves as issues_of_curves
    from mpigraft.analysis.statistics.bootstrap import ratio_so_far as ratio_so_far
    from mpigraft.analysis.values import values_by_size as values_by_size
    from mpigraft.analysis.verdict_rules import MIN_ROUNDS as MIN_ROUNDS
    from mpigraft.analysis.verdict_rules import speed_of as speed_of
else:
    __getattr__ = exports(__name__)
