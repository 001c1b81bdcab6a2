"""Each transport of an MPI, started once: proven, refused, or not possible here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.errors import LaunchFailed
from mpigraft.core.model import Family, Machine, MpiInstall
from mpigraft.discovery import discover_machine
from mpigraft.run import ProofOutcome, prove_transports

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def machine(mpis: Mapping[Family, Path]) -> Machine:
    return discover_machine()


def openmpi(machine: Machine) -> MpiInstall:
    return next(mpi for mpi in machine.mpis if mpi.id == "openmpi@5.0.11")


def test_each_transport_is_proven_or_has_its_reason(machine: Machine) -> None:
    proofs = {proof.name: proof for proof in prove_transports(openmpi(machine), machine)}
    for name in ("ob1-sm", "ofi-tcp", "ofi-lnx"):
        assert proofs[name].outcome is ProofOutcome.PROVEN, proofs[name].why
    assert dict(proofs["ofi-lnx"].settings)["OMPI_MCA_mtl"] == "ofi"
    assert proofs["ofi-cxi"].outcome is ProofOutcome.IMPOSSIBLE
    assert proofs["ofi-cxi"].why
    assert len(proofs) == len({proof.name for proof in proofs.values()})


def test_an_mpi_whose_ranks_do_not_start_fails_with_each(machine: Machine) -> None:
    mpi = replace(openmpi(machine), id="openmpi@broken", launcher=Path("/bin/false"))
    proofs = [p for p in prove_transports(mpi, machine) if p.outcome is not ProofOutcome.IMPOSSIBLE]
    assert {proof.outcome for proof in proofs} == {ProofOutcome.FAILED}
    assert all(isinstance(proof.error, LaunchFailed) for proof in proofs)
