"""Every host MPI against one guest, and what would fit instead.

Takes a guest and a machine; makes verdicts and ways out. Keeps verdicts in the cache.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
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
else:
    __getattr__ = exports(__name__)
