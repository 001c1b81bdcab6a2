"""Find what the values and launches of a campaign show besides its comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mpigraft.analysis.bimodality import bimodality_findings
from mpigraft.analysis.cut import cut_findings, cut_tables
from mpigraft.analysis.disturbance import disturbance_findings
from mpigraft.analysis.drift import drift_findings
from mpigraft.analysis.pairs.matrices import pair_findings, pair_matrices
from mpigraft.core.model import Finding, LaunchRecord, ValueRow


def campaign_findings(
    values: Sequence[ValueRow],
    links: Sequence[ValueRow],
    launches: Sequence[LaunchRecord],
    labels: Mapping[str, str],
) -> tuple[Finding, ...]:
    """Find load, drift, two groups, cut tables, and slow nodes and links; `labels` has ids by key.

    `values` are those that configurations are compared by, `links` those of single links.
    """
    return (
        *disturbance_findings(launches, labels),
        *drift_findings(values, labels),
        *bimodality_findings(values, labels),
        *cut_findings(cut_tables(launches, labels)),
        *(f for matrix in pair_matrices(links, labels) for f in pair_findings(matrix)),
    )
