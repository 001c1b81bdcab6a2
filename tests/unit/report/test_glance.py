"""The page's first table: verdicts and ratios side by side."""

from __future__ import annotations

from dataclasses import replace

from mpigraft.core.model import ConfigurationRecord, Verdict
from mpigraft.report.contents import ReportData
from mpigraft.report.html import page as html
from tests.builders.messages import shows
from tests.builders.reports import small_data


def body_of(data: ReportData) -> str:
    return html.render_html(data).partition("<body")[2]


def test_bold_is_what_has_a_verdict() -> None:
    data = small_data()
    group = data.comparison.groups[0]
    for curve, bold in ((Verdict.SLOWER, True), (Verdict.INCONCLUSIVE, False)):
        groups = (replace(group, curve=curve, layout=name) for name in ("1x2", "2x2"))
        for several in (tuple(groups), (replace(group, curve=curve),)):
            text = body_of(replace(data, comparison=replace(data.comparison, groups=several)))
            table = text.partition('class="glance"')[2].partition("</table>")[0]
            assert ("<b>" in table) is bold


def test_a_cell_says_over_which_sizes_its_ratio_is() -> None:
    data = small_data()
    one, other = data.comparison.groups[:2]
    few = replace(one, cells=one.cells[:3], pooled_sizes=())
    both = tuple(replace(g, benchmark="native:latency", metric="latency") for g in (few, other))
    for layouts in (("1x2", "1x2"), ("1x2", "2x2")):
        groups = tuple(replace(g, layout=x) for g, x in zip(both, layouts, strict=True))
        if layouts[0] == layouts[1]:
            groups = (groups[0], replace(groups[1], configuration="other"))
        text = body_of(replace(data, comparison=replace(data.comparison, groups=groups)))
        assert shows(text, "<small>", "3 of 4", "</small>")


def test_the_number_of_configurations_is_that_of_the_rows() -> None:
    data = small_data()
    lost = ConfigurationRecord("c", "k", "openmpi@5.0.11/ofi-lnx", "{}")
    rows = len({g.configuration for g in data.comparison.groups}) + 1
    for more, count in (((), rows), ((lost,), rows + 1)):
        text = body_of(replace(data, configurations=(*data.configurations, *more)))
        assert shows(text, "<dt>configurations</dt>", f"<dd>{count}</dd>")
