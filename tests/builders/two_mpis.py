"""Campaigns that are planned for a machine with two MPIs, whose transports are made up."""

from __future__ import annotations

import pytest

from mpigraft.bench.schedule.campaign import Campaign, plan_campaign
from mpigraft.core.model import Family, MpiInstall, TransportOffer
from mpigraft.request.spec import CampaignSpec
from mpigraft.selection import configurations
from tests.builders.configuration import a_machine, a_transport, an_mpi, an_offer

OFFERS = {
    Family.OPENMPI: (an_offer("ob1-sm"), an_offer("ofi-lnx"), an_offer("ofi-cxi", "no /dev/cxi*")),
    Family.MPICH: (an_offer("ofi-tcp"), an_offer("ucx")),
    Family.CRAY_MPICH: (an_offer("ofi-cxi"),),
}


def make_up_transports(monkeypatch: pytest.MonkeyPatch) -> None:
    def offers(mpi: MpiInstall, _facts: object) -> tuple[TransportOffer, ...]:
        return OFFERS[mpi.family]

    monkeypatch.setattr(configurations, "transport_offers", offers)
    monkeypatch.setattr(
        configurations, "resolve_transport", lambda name, _mpi, _facts: a_transport(name)
    )


def contents(mpi: MpiInstall) -> tuple[tuple[str, str], ...]:
    return (("libmpi", mpi.version),)


MACHINE = a_machine(an_mpi("openmpi@5.0.11"), an_mpi("mpich@5.0.2"))


def planned(**spec: object) -> Campaign:
    return plan_campaign(CampaignSpec(**spec), MACHINE, contents)  # type: ignore[arg-type]
