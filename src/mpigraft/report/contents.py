"""The results of a campaign for readers and programs: terminal, markdown, json, html.

Each form is a function from `ReportData` to text; the same input gives the same text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mpigraft.core.model import (
    CampaignRecord,
    Comparison,
    Measured,
    ValueRow,
)

if TYPE_CHECKING:
    from mpigraft.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportData(Measured):
    """What was measured and what a comparison makes of it: all that a report shows. A table of
    the store that is empty is left out, and the report says so where it matters (no evidence is
    never a pass)."""

    comparison: Comparison
    links: tuple[ValueRow, ...] = ()  # of single pairs of nodes, which nothing is compared by
    margin: float = 0.03  # the fixed one, for "equivalent"
    across: str = "configurations"  # what was compared: or layouts, or an option of benchmarks
    submitted: bool = False  # jobs of a scheduler measured it


def load_report(
    store: Store,
    name: str | None = None,
    *,
    baseline: str | None = None,
    margin: float = 0.03,
    across: str = "",
    partial: bool = False,
) -> ReportData:
    """Read a campaign (id, unique prefix or name; None: the latest) from the store and compare.

    `baseline` is an id or the beginning of one; `across` layouts, settings, or an option of
    benchmarks, these are compared, and it is one of them; by default settings where some were
    measured and no baseline is named, else configurations. With `partial`, tables that may be
    cut count as whole.
    Raises UsageError for names that fit nothing or several things, MissingError for no values, and
    what else the store raises.
    """
    from mpigraft import analysis
    from mpigraft.analysis import rounds_over

    campaign = store.campaign(name)
    configurations = tuple(store.configurations(campaign.id))
    settings = not baseline and analysis.setting_arms(configurations)
    across = across or ("settings" if settings else "configurations")
    allocations = tuple(store.allocations(campaign.id))
    launches = tuple(store.launches(campaign.id))  # before the values: what is over has them
    values, links = _values(store, campaign)
    labels = analysis.labels_of(configurations, (*values, *links))
    judged = tuple(x.without("maybe-cut") for x in launches) if partial else launches
    side = Measured(campaign, configurations, allocations, launches, values)
    comparison = analysis.judge_campaign(
        analysis.swap_arms(across, side),
        baseline=baseline,
        margin=margin,
        over=rounds_over(launches, allocations),
    )
    evidence = tuple(store.evidence(campaign.id))
    # Last: files are read as they are asked for, and what could not be read may be missing here.
    shown = analysis.campaign_findings(values, links, judged, labels)
    findings = (*comparison.findings, *shown, *store.findings)
    return ReportData(
        comparison=replace(comparison, findings=findings),
        campaign=campaign,
        configurations=configurations,
        evidence=evidence,
        allocations=allocations,
        launches=launches,
        values=values,
        links=links,
        margin=margin,
        across=across,
        submitted=any(one.campaign == campaign.id for one in store.submissions()),
    )


def _values(
    store: Store, campaign: CampaignRecord
) -> tuple[tuple[ValueRow, ...], tuple[ValueRow, ...]]:
    """Return values that configurations are compared by, and values of single links."""
    from mpigraft.analysis import is_link

    every = store.values(campaign.id)
    return tuple(row for row in every if not is_link(row)), tuple(filter(is_link, every))


def load_measured(store: Store, name: str | None) -> Measured:
    """Read a campaign (id, its beginning or name) as the store has it. Raises UsageError for a
    name that fits none or several, MissingError for an empty store."""
    from mpigraft.analysis import is_link

    campaign = store.campaign(name)
    return Measured(
        campaign,
        tuple(store.configurations(campaign.id)),
        tuple(store.allocations(campaign.id)),
        tuple(store.launches(campaign.id)),
        tuple(row for row in store.values(campaign.id) if not is_link(row)),
        tuple(store.evidence(campaign.id)),
    )
