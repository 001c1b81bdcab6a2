"""What a campaign found, for a person or another program: terminal, markdown, json, html.

Each form is a function from `ReportData` to text; the same input gives the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpigraft.errors import UsageError
from mpigraft.model import (
    AllocationRecord,
    CampaignRecord,
    Comparison,
    ConfigurationRecord,
    EvidenceRecord,
    LaunchRecord,
    ValueRow,
)

if TYPE_CHECKING:
    from mpigraft.store import Store


@dataclass(frozen=True, slots=True)
class ReportData:
    """All that a report shows. Only `comparison` is needed; what is not there is left out, and
    the report says so where it matters (no evidence is never a pass)."""

    comparison: Comparison
    campaign: CampaignRecord | None = None
    configurations: tuple[ConfigurationRecord, ...] = ()
    evidence: tuple[EvidenceRecord, ...] = ()
    allocations: tuple[AllocationRecord, ...] = ()
    launches: tuple[LaunchRecord, ...] = ()
    values: tuple[ValueRow, ...] = ()
    margin: float = 0.03  # the fixed one, for "equivalent"


def load(
    store: Store, wish: str | None = None, *, baseline: str | None = None, margin: float = 0.03
) -> ReportData:
    """Read a campaign (id, unique prefix or name; None: the latest) from the store and compare.

    Raises what the store and the comparison raise, and UsageError for a baseline that names no
    configuration or more than one.
    """
    from mpigraft.compare import compare

    campaign = store.campaign(wish)
    configurations = tuple(store.configurations(campaign.id))
    values = store.values(campaign.id)
    chosen = pick(configurations, baseline) if baseline else None
    comparison = compare(
        campaign, configurations, values, baseline=chosen.id if chosen else None, margin=margin
    )
    return ReportData(
        comparison=comparison,
        campaign=campaign,
        configurations=configurations,
        evidence=tuple(store.evidence(campaign.id)),
        allocations=tuple(store.allocations(campaign.id)),
        launches=tuple(store.launches(campaign.id)),
        values=tuple(values),
        margin=margin,
    )


def pick(configurations: Sequence[ConfigurationRecord], wish: str) -> ConfigurationRecord:
    """The configuration that `wish` names: an id, a key, or the beginning of exactly one id."""
    exact = [c for c in configurations if wish in (c.id, c.key)]
    hits = exact or [c for c in configurations if c.id.startswith(wish)]
    if len(hits) == 1:
        return hits[0]
    known = ", ".join(sorted(c.id for c in hits or configurations)) or "none"
    seen = "begins more than one configuration" if hits else "is no configuration of this campaign"
    raise UsageError(
        f"baseline {wish!r} {seen}: {known}", mend="name one of them, or its beginning"
    )
