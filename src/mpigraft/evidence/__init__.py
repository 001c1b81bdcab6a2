"""What a launch really used: it starts, listens and judges.

Takes a configuration on a layout; makes `Evidence` and findings. Starts launches through `launch`
and `core.process`, and keeps proofs in the cache. `traffic/` has the logic of a proof.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.evidence.runner import error_from_findings as error_from_findings
    from mpigraft.evidence.runner import evidence_of as evidence_of
    from mpigraft.evidence.runner import explain_start as explain_start
    from mpigraft.evidence.runner import make_starter as make_starter
    from mpigraft.evidence.runner import outlives_job as outlives_job
    from mpigraft.evidence.runner import preloadable_natives as preloadable_natives
    from mpigraft.evidence.runner import records_folder as records_folder
    from mpigraft.evidence.runner import refused_evidence as refused_evidence
    from mpigraft.evidence.serialize import flatten_evidence as flatten_evidence
    from mpigraft.evidence.serialize import revive_evidence as revive_evidence
    from mpigraft.evidence.wireup import WORLD_CODES as WORLD_CODES
    from mpigraft.evidence.wireup import verify_wireup as verify_wireup
else:
    __getattr__ = exports(__name__)
