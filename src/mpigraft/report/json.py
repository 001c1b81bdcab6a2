"""A comparison as a document for other tools; its shape is in report/schemas/compare.json.

Added keys keep the schema's number. A figure that is not finite becomes null: JSON has no NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from mpigraft.core.model import METRICS, CellGroup, Finding, LaunchCount, Origin
from mpigraft.core.serialize import document, map_leaves, plain, row_of
from mpigraft.report import looks, node_pairs, precision, rank_scaling
from mpigraft.report.baseline_only import baseline_series
from mpigraft.report.contents import ReportData
from mpigraft.report.findings import report_findings
from mpigraft.report.headline import headline

if TYPE_CHECKING:
    from mpigraft.analysis import PairMatrix
    from mpigraft.core.model import Better, Noise
    from mpigraft.core.serialize import Keys
    from mpigraft.report.baseline_only import BaselineSeries
    from mpigraft.report.looks import LookKeys
    from mpigraft.report.rank_scaling import GrowthKeys


def finite(value: Any) -> Any:
    """Give a document in which figures that are not finite are null."""
    return map_leaves(
        value, lambda one: None if isinstance(one, float) and not math.isfinite(one) else one
    )


if TYPE_CHECKING:
    GroupKeys = Annotated[
        dict[str, Any], CellGroup, Keys(withheld=str, better=Better | None), finite
    ]
    SeriesKeys = Annotated[dict[str, Any], BaselineSeries, finite]
    MatrixKeys = Annotated[dict[str, Any], PairMatrix, finite]
    CostKeys = Annotated[dict[str, Any], GrowthKeys, finite]
    NoiseKeys = Annotated[dict[str, Any], Noise, finite]


class PrecisionRow(TypedDict):
    """What a campaign can say. Fractions are of the ratio."""

    spread: float | None  # half-width of a typical cell's 95 % interval
    inconclusive: int
    cells: int
    target: float  # a precision to plan for
    target_rounds: int | None  # rounds that it takes
    round_seconds: float | None
    line: str
    extension: str  # command whose rounds would decide half of the inconclusive cells


class ComparisonDocument(TypedDict):
    """A campaign compared with its baseline."""

    campaign: str  # id
    baseline: str  # id of the configuration, or the layout, that the others are compared with
    across: str  # what is compared: configurations, layouts, or an option of benchmarks
    name: str | None
    origin: Origin
    rounds: int  # that gave values
    looks: list[LookKeys]
    margin: float  # fraction that counts as equivalent
    comparisons: list[GroupKeys]  # one per benchmark, layout, kind of buffers and configuration
    baseline_only: list[SeriesKeys]  # if there is nothing to compare with the baseline
    pairs: list[MatrixKeys]
    growth: list[CostKeys]  # against the number of ranks
    noise: list[NoiseKeys]
    precision: PrecisionRow
    launches: list[LaunchCount]
    findings: Sequence[Finding]
    headline: Sequence[str]
    summary: Sequence[str]


def render_json(data: ReportData) -> str:
    """Write the whole comparison: every cell of every benchmark and configuration."""
    comparison = data.comparison
    known = precision.precision(data)
    keys = row_of(
        ComparisonDocument,
        comparison,
        across=data.across,
        name=data.campaign.name,
        looks=looks.document(comparison),
        margin=data.margin,
        comparisons=[_placed(data, group_keys(group)) for group in comparison.groups],
        baseline_only=[_placed(data, finite(plain(one))) for one in baseline_series(data)],
        pairs=[finite(plain(one)) for one in node_pairs.matrices(data)],
        growth=finite(rank_scaling.document(data)),
        noise=[_placed(data, finite(plain(noise))) for noise in comparison.noise],
        precision=row_of(
            PrecisionRow,
            known,
            target=precision.TARGET,
            round_seconds=known.round_s,
            extension=precision.extension(data),
        ),
        launches=[_placed(data, plain(count)) for count in comparison.launches],
        findings=report_findings(data),
        headline=headline(data),
    )
    return document(**keys)


def group_keys(group: CellGroup) -> GroupKeys:
    """Give a curve with what follows from its values."""
    row: dict[str, Any] = finite(plain(group))
    metric = METRICS.get(group.metric)
    return {**row, "withheld": group.withheld, "better": metric.better.value if metric else None}


def _placed(data: ReportData, row: dict[str, Any]) -> Any:
    """Name layouts by `layout` again: for a comparison they were in the place of configurations.
    The baseline layout's own figures have only their configuration."""
    if data.across != "layouts":
        return row
    layout = row.get("configuration", data.comparison.baseline)
    return {**row, "configuration": row["layout"], "layout": layout}
