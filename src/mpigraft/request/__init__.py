"""What was asked for, from flags, TOML and a site's profile, and the user's environment.

Takes options and files; makes a `CampaignSpec` and environment rows. Reads files alone. Rooms
inside: `selection`, `fit`, `job`.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.request.apps import App as App
    from mpigraft.request.environment import ANOTHER_PLACE as ANOTHER_PLACE
    from mpigraft.request.environment import STEERING as STEERING
    from mpigraft.request.environment import UserEnvironment as UserEnvironment
    from mpigraft.request.environment import filter_environment as filter_environment
    from mpigraft.request.fit.alternatives import describe_fits as describe_fits
    from mpigraft.request.fit.alternatives import describe_wheels as describe_wheels
    from mpigraft.request.fit.alternatives import drop_forbidden_fixes as drop_forbidden_fixes
    from mpigraft.request.fit.alternatives import fetchable_mpis as fetchable_mpis
    from mpigraft.request.fit.alternatives import fitting_mpis as fitting_mpis
    from mpigraft.request.fit.alternatives import suggest_mpis as suggest_mpis
    from mpigraft.request.fit.subject import examine_subject as examine_subject
    from mpigraft.request.fit.verdicts import FitRequest as FitRequest
    from mpigraft.request.fit.verdicts import FitVerdicts as FitVerdicts
    from mpigraft.request.fit.verdicts import TriedFit as TriedFit
    from mpigraft.request.fit.verdicts import cached_verdicts as cached_verdicts
    from mpigraft.request.fit.verdicts import fit_verdicts as fit_verdicts
    from mpigraft.request.job.layout import JobPlacement as JobPlacement
    from mpigraft.request.job.layout import decide_layout as decide_layout
    from mpigraft.request.job.layout import mpmd_programs as mpmd_programs
    from mpigraft.request.job.spec import STDIN as STDIN
    from mpigraft.request.job.spec import JobSubject as JobSubject
    from mpigraft.request.job.spec import RunSpec as RunSpec
    from mpigraft.request.job.spec import job_subject as job_subject
    from mpigraft.request.job.spec import parse_bind as parse_bind
    from mpigraft.request.job.spec import program_of as program_of
    from mpigraft.request.job.spec import suggest_programs as suggest_programs
    from mpigraft.request.job.spec import without_host_mpi as without_host_mpi
    from mpigraft.request.selection.configurations import choose_baseline as choose_baseline
    from mpigraft.request.selection.configurations import library_digests as library_digests
    from mpigraft.request.selection.configurations import make_configuration as make_configuration
    from mpigraft.request.selection.configurations import make_configurations as make_configurations
    from mpigraft.request.selection.configurations import reached_nodes as reached_nodes
    from mpigraft.request.selection.layouts import requested_layouts as requested_layouts
    from mpigraft.request.selection.mpi import MpiSelection as MpiSelection
    from mpigraft.request.selection.mpi import first_mpi as first_mpi
    from mpigraft.request.selection.mpi import mpi_for_guest as mpi_for_guest
    from mpigraft.request.selection.mpi import select_mpis as select_mpis
    from mpigraft.request.selection.program import mpi_for_programs as mpi_for_programs
    from mpigraft.request.selection.program import mpi_under_program as mpi_under_program
    from mpigraft.request.site import read_site as read_site
    from mpigraft.request.spec import CampaignSpec as CampaignSpec
    from mpigraft.request.spec import given_fields as given_fields
    from mpigraft.request.spec import merge_specs as merge_specs
    from mpigraft.request.spec import read_spec as read_spec
    from mpigraft.request.spec import stored_spec as stored_spec
else:
    __getattr__ = exports(__name__)
