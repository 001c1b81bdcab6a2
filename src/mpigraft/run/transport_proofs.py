"""Every transport that an MPI has on this machine, each started once and proven or refused."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from mpigraft.core.errors import MpigraftError
from mpigraft.core.model import Layout, Machine, MpiInstall, TransportOffer
from mpigraft.evidence import evidence_of, make_starter, refused_evidence
from mpigraft.knowledge import Facts, transport_offers
from mpigraft.native import choose_natives
from mpigraft.selection import MpiSelection, make_configuration, reached_nodes

PAIR = Layout(1, 2, bind="none")


class ProofOutcome(enum.StrEnum):
    PROVEN = "proven"
    FAILED = "failed"
    IMPOSSIBLE = "not possible here"


@dataclass(frozen=True, slots=True)
class TransportProof:
    """What became of a transport; `error` is there where it failed."""

    name: str
    outcome: ProofOutcome
    why: str = ""
    settings: tuple[tuple[str, str], ...] = ()  # variables that force it on each rank
    error: MpigraftError | None = None


def prove_transports(mpi: MpiInstall, machine: Machine) -> Iterator[TransportProof]:
    """Start two ranks over each transport of an MPI that can run on this machine, and judge what
    ran as `run` and `bench` do. Variants, which have the same lanes in another way, and transports
    of other versions are left out."""
    for offer in transport_offers(mpi, Facts.of(machine)):
        if offer.variant or not offer.row:
            continue
        if not offer.usable:
            yield TransportProof(offer.name, ProofOutcome.IMPOSSIBLE, offer.reason)
            continue
        try:
            yield _prove(offer, mpi, machine)
        except MpigraftError as error:
            yield TransportProof(offer.name, ProofOutcome.FAILED, error.message, error=error)


def _prove(offer: TransportOffer, mpi: MpiInstall, machine: Machine) -> TransportProof:
    natives = choose_natives(mpi, machine.cpu.architecture)
    one = make_configuration(MpiSelection(mpi), Facts.of(machine), offer.name)
    settings = tuple(
        (row.name, row.value or "") for row in (one.transport.env if one.transport else ())
    )
    if not reached_nodes(one, PAIR):
        return TransportProof(
            offer.name, ProofOutcome.IMPOSSIBLE, "it is for ranks on several nodes"
        )
    with make_starter({one.key: natives}) as start:
        evidence = evidence_of(one, PAIR, natives, start)
    if not evidence.ok:
        error = refused_evidence(one, evidence)
        return TransportProof(offer.name, ProofOutcome.FAILED, error.message, settings, error)
    return TransportProof(offer.name, ProofOutcome.PROVEN, evidence.ran, settings)
