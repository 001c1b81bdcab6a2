"""A comparison for people: terminal, Markdown, JSON, HTML.

Takes a store and a campaign; makes `ReportData`, and text of it. Prints; writes no results.
`html/` and `figures/` make the page, `paper/` figures for a paper.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.report.bundle.contents import Choice as Choice
    from mpigraft.report.bundle.contents import write_bundle as write_bundle
    from mpigraft.report.contents import load_report as load_report
    from mpigraft.report.gate import refuse_slower as refuse_slower
    from mpigraft.report.html.page import render_html as render_html
    from mpigraft.report.json import render_json as render_json
    from mpigraft.report.markdown import render_markdown as render_markdown
    from mpigraft.report.node import print_node as print_node
    from mpigraft.report.overtime.across import Across as Across
    from mpigraft.report.overtime.history import History as History
    from mpigraft.report.paper.figures import render_figures as render_figures
    from mpigraft.report.profile.exchanges import exchange_lines as exchange_lines
    from mpigraft.report.profile.exchanges import phase_lines as phase_lines
    from mpigraft.report.profile.ladder import ladder_lines as ladder_lines
    from mpigraft.report.profile.page import render_profile_page as render_profile_page
    from mpigraft.report.profile.text import profile_lines as profile_lines
    from mpigraft.report.stored import render_stored as render_stored
    from mpigraft.report.table import list_rows as list_rows
    from mpigraft.report.terminal import print_report as print_report
else:
    __getattr__ = exports(__name__)
