"""A comparison for people: terminal, Markdown, JSON, HTML.

Takes a store and a campaign; makes `ReportData`, and text of it. Prints; writes no results.
`html/` makes the pages, `paper/` figures for a paper.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.report.build import build_progress as build_progress
    from mpigraft.report.build import proved_transports as proved_transports
    from mpigraft.report.bundle.contents import Choice as Choice
    from mpigraft.report.bundle.contents import write_bundle as write_bundle
    from mpigraft.report.campaign_plan import campaign_plan_lines as campaign_plan_lines
    from mpigraft.report.campaign_plan import campaign_plan_screen as campaign_plan_screen
    from mpigraft.report.campaign_plan import forecast_lines as forecast_lines
    from mpigraft.report.campaign_plan import idle_lines as idle_lines
    from mpigraft.report.campaign_plan import print_cases as print_cases
    from mpigraft.report.contents import load_report as load_report
    from mpigraft.report.diagnosis import diagnosis_document as diagnosis_document
    from mpigraft.report.diagnosis import diagnosis_screen as diagnosis_screen
    from mpigraft.report.fail_on import refuse_slower as refuse_slower
    from mpigraft.report.fit import finding_text as finding_text
    from mpigraft.report.fit import fit_lines as fit_lines
    from mpigraft.report.fit import fit_screen as fit_screen
    from mpigraft.report.fit import fits_screen as fits_screen
    from mpigraft.report.fit import fits_table as fits_table
    from mpigraft.report.graft_plan import graft_plan_lines as graft_plan_lines
    from mpigraft.report.graft_plan import pruned_lines as pruned_lines
    from mpigraft.report.graft_plan import stored_plans_lines as stored_plans_lines
    from mpigraft.report.html.page import render_html as render_html
    from mpigraft.report.imported import ImportTally as ImportTally
    from mpigraft.report.imported import import_document as import_document
    from mpigraft.report.imported import import_summary as import_summary
    from mpigraft.report.injection import absent_names as absent_names
    from mpigraft.report.injection import fitting_lines as fitting_lines
    from mpigraft.report.injection import generation_lines as generation_lines
    from mpigraft.report.injection import generations_document as generations_document
    from mpigraft.report.injection import override_lines as override_lines
    from mpigraft.report.injection import overrides_document as overrides_document
    from mpigraft.report.injection import proof_lines as proof_lines
    from mpigraft.report.json import render_json as render_json
    from mpigraft.report.machine import machine_document as machine_document
    from mpigraft.report.machine import machine_lines as machine_lines
    from mpigraft.report.machine import machine_screen as machine_screen
    from mpigraft.report.markdown import render_markdown as render_markdown
    from mpigraft.report.node_drawing import print_layout as print_layout
    from mpigraft.report.overtime.across import Across as Across
    from mpigraft.report.overtime.history import History as History
    from mpigraft.report.overtime.page import render_history as render_history
    from mpigraft.report.paper.figures import render_figures as render_figures
    from mpigraft.report.profile.exchanges import exchange_lines as exchange_lines
    from mpigraft.report.profile.exchanges import exchange_screen as exchange_screen
    from mpigraft.report.profile.exchanges import phase_lines as phase_lines
    from mpigraft.report.profile.ladder import ladder_lines as ladder_lines
    from mpigraft.report.profile.ladder import steps_lines as steps_lines
    from mpigraft.report.profile.page import render_profile_page as render_profile_page
    from mpigraft.report.profile.text import profile_lines as profile_lines
    from mpigraft.report.profile.text import profile_screen as profile_screen
    from mpigraft.report.provisional import Provisional as Provisional
    from mpigraft.report.screen import print_screen as print_screen
    from mpigraft.report.stack_check import StackCheckRow as StackCheckRow
    from mpigraft.report.stack_check import check_document as check_document
    from mpigraft.report.stack_check import own_mpi_line as own_mpi_line
    from mpigraft.report.stack_check import stack_answer_lines as stack_answer_lines
    from mpigraft.report.stack_check import stack_check_lines as stack_check_lines
    from mpigraft.report.stack_check import stack_checks_screen as stack_checks_screen
    from mpigraft.report.stack_check import stack_document as stack_document
    from mpigraft.report.stack_check import stack_screen as stack_screen
    from mpigraft.report.stack_check import stack_size as stack_size
    from mpigraft.report.stored import render_stored as render_stored
    from mpigraft.report.stored import stored_screen as stored_screen
    from mpigraft.report.submission import submission_lines as submission_lines
    from mpigraft.report.terminal import print_answer as print_answer
    from mpigraft.report.terminal import print_report as print_report
    from mpigraft.report.variables import variable_blocks as variable_blocks
    from mpigraft.report.variables import variable_differences as variable_differences
    from mpigraft.report.variables import variable_summary as variable_summary
    from mpigraft.report.variables import variables_document as variables_document
    from mpigraft.report.wording.words import effects_text as effects_text
    from mpigraft.report.wording.words import lanes as lanes
else:
    __getattr__ = exports(__name__)
