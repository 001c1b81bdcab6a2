"""Whether a host MPI fits under a guest: one verdict, made of parts with their evidence.

Takes a guest, an `MpiAbi` and a simulated injection; makes a `Fit`. Reads saved machines alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.check.case import NOT_CHECKED as NOT_CHECKED
    from mpigraft.graft.check.interface import ABI_NAMES as ABI_NAMES
    from mpigraft.graft.check.languages import FORTRAN_SYMBOL as FORTRAN_SYMBOL
    from mpigraft.graft.check.languages import MPI_F08_SYMBOL as MPI_F08_SYMBOL
    from mpigraft.graft.check.verdict import fitting_programs as fitting_programs
    from mpigraft.graft.check.verdict import has_no_interface as has_no_interface
    from mpigraft.graft.check.verdict import judge_fit as judge_fit
    from mpigraft.graft.check.verdict import soften_verdict as soften_verdict
else:
    __getattr__ = exports(__name__)
