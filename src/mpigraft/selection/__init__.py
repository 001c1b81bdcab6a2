"""What a request means on this machine: MPI, transport, guest, layout, and which MPIs fit.

Takes a `CampaignSpec` or `RunSpec` and a `Machine`; makes `Configuration`s, layouts and checks of
MPIs against a guest. Reads files; keeps checks in the cache.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.selection.configurations import UserChoice as UserChoice
    from mpigraft.selection.configurations import choose_baseline as choose_baseline
    from mpigraft.selection.configurations import library_digests as library_digests
    from mpigraft.selection.configurations import make_configuration as make_configuration
    from mpigraft.selection.configurations import make_configurations as make_configurations
    from mpigraft.selection.configurations import reached_nodes as reached_nodes
    from mpigraft.selection.fit_alternatives import describe_others as describe_others
    from mpigraft.selection.fit_alternatives import drop_forbidden_fixes as drop_forbidden_fixes
    from mpigraft.selection.fit_alternatives import fetchable_mpis as fetchable_mpis
    from mpigraft.selection.fit_alternatives import fitting_mpis as fitting_mpis
    from mpigraft.selection.fit_alternatives import suggest_mpis as suggest_mpis
    from mpigraft.selection.fit_of_mpis import FitChecks as FitChecks
    from mpigraft.selection.fit_of_mpis import OtherFits as OtherFits
    from mpigraft.selection.fit_of_mpis import cached_checks as cached_checks
    from mpigraft.selection.fit_of_mpis import check_fits as check_fits
    from mpigraft.selection.layouts import requested_layouts as requested_layouts
    from mpigraft.selection.mpi import MpiSelection as MpiSelection
    from mpigraft.selection.mpi import first_mpi as first_mpi
    from mpigraft.selection.mpi import mpi_for_guest as mpi_for_guest
    from mpigraft.selection.mpi import select_mpis as select_mpis
    from mpigraft.selection.program import mpi_for_programs as mpi_for_programs
    from mpigraft.selection.program import mpi_under_program as mpi_under_program
    from mpigraft.selection.settings import with_setting as with_setting
    from mpigraft.selection.subject import examine_subject as examine_subject
else:
    __getattr__ = exports(__name__)
