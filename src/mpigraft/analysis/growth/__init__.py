"""Fit how a metric grows with ranks or nodes.

Takes values over layouts; makes fitted laws, or the reason why there is none. Computes alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.analysis.growth.laws import LAW_REACH as LAW_REACH
    from mpigraft.analysis.growth.laws import LAWS as LAWS
    from mpigraft.analysis.growth.laws import Law as Law
    from mpigraft.analysis.growth.scaling import Growth as Growth
    from mpigraft.analysis.growth.scaling import fit_growth as fit_growth
else:
    __getattr__ = exports(__name__)
