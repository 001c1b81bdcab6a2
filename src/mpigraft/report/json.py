"""A comparison as a document for other tools; its shape is in schemas/compare.json.

Added keys keep the schema's number. A figure that is not finite becomes null: JSON has no NaN.
"""

from __future__ import annotations

import math
from typing import Any

from mpigraft.jsonout import document, plain
from mpigraft.model import METRICS, CellGroup
from mpigraft.report import ReportData, cost, growth, matrix, stages
from mpigraft.report.alone import alone
from mpigraft.report.headline import headline
from mpigraft.report.trouble import trouble


def render(data: ReportData) -> str:
    """The whole comparison: every cell of every benchmark and configuration."""
    comparison = data.comparison
    known = cost.honesty(data)
    return document(
        campaign=comparison.campaign,
        baseline=comparison.baseline,
        across=data.across,
        name=data.campaign.name if data.campaign else None,
        origin=comparison.origin,
        rounds=comparison.rounds,
        looks=stages.document(comparison),
        margin=data.margin,
        comparisons=[_placed(data, _group(group)) for group in comparison.groups],
        alone=[_placed(data, _finite(plain(one))) for one in alone(data)],
        pairs=[_finite(plain(one)) for one in matrix.found(data)],
        growth=_finite(growth.document(data)),
        noise=[_placed(data, _finite(plain(noise))) for noise in comparison.noise],
        honesty={
            "spread": known.spread,
            "inconclusive": known.inconclusive,
            "cells": known.cells,
            "target": cost.TARGET,
            "target_rounds": known.target_rounds,
            "round_seconds": known.round_s,
            "line": known.line,
            "extension": cost.extension(data),
        },
        launches=[_placed(data, plain(count)) for count in comparison.launches],
        findings=trouble(data),
        headline=headline(comparison),
        summary=comparison.summary,
    )


def _group(group: CellGroup) -> dict[str, Any]:
    found: dict[str, Any] = _finite(plain(group))
    metric = METRICS.get(group.metric)
    return {**found, "better": metric.better.value if metric else None}


def _placed(data: ReportData, found: dict[str, Any]) -> dict[str, Any]:
    """Layouts that were compared stood in the place of configurations; here names are what they
    say. Of the baseline layout's own figures the configuration is all there is to tell."""
    if data.across != "layouts":
        return found
    layout = found.get("configuration", data.comparison.baseline)
    return {**found, "configuration": found["layout"], "layout": layout}


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, list) else value
