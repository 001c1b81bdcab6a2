"""What an MPI can run over here: each transport, started and proven.

Takes an MPI and a machine; makes a `TransportProof` for each transport. Starts two ranks on this
node for each, as `run` and `bench` do for their proofs.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.run.transports.proofs import Outcome as Outcome
    from mpigraft.run.transports.proofs import TransportProof as TransportProof
    from mpigraft.run.transports.proofs import prove_transports as prove_transports
else:
    __getattr__ = exports(__name__)
