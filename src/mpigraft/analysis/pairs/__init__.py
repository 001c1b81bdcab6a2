"""Find slow nodes and links in matrices of latency and bandwidth between nodes.

Takes values of links; makes matrices and findings. Computes alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.analysis.pairs.matrices import Matrix as Matrix
    from mpigraft.analysis.pairs.matrices import Pair as Pair
    from mpigraft.analysis.pairs.matrices import direction_phrase as direction_phrase
    from mpigraft.analysis.pairs.matrices import is_link as is_link
    from mpigraft.analysis.pairs.matrices import pair_findings as pair_findings
    from mpigraft.analysis.pairs.matrices import pair_matrices as pair_matrices
    from mpigraft.analysis.pairs.matrices import pairing_spec as pairing_spec
else:
    __getattr__ = exports(__name__)
