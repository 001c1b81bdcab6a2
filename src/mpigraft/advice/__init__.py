"""Known issues that explain results, outputs and machines, the surest first.

Takes files, a stored campaign or a machine; makes `Diagnosis` values. Reads files. It gathers and
orders what `evidence` and `analysis` detect.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.advice.diagnosis import Diagnosis as Diagnosis
    from mpigraft.advice.diagnosis import diagnose as diagnose
    from mpigraft.advice.examined import Examined as Examined
    from mpigraft.advice.examined import examine_campaign as examine_campaign
    from mpigraft.advice.examined import examine_files as examine_files
else:
    __getattr__ = exports(__name__)
