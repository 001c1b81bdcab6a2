"""What `get` can fetch, and what it has fetched."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core.model import Family
from mpigraft.discovery.install.fetch import (
    MPI_OFFERS,
    MPI_WHEELS,
    fetch_home,
    fetched_facts,
    is_complete,
)
from mpigraft.discovery.install.wheel import wheel_in


@dataclass(frozen=True, slots=True)
class FetchOffer:
    """A version of an MPI that `get` can fetch or has fetched."""

    family: Family
    version: str
    command: str  # which fetches it
    runs_here: bool = True  # it is for this architecture
    tested: bool = True
    prefix: Path | None = None  # where it is; null: it was not fetched
    available: bool = True  # the folder of wheels that was named has it


def fetch_offers(folder: Path | None = None) -> tuple[FetchOffer, ...]:
    """List the tested versions, and the others that were fetched."""
    home, offers = fetch_home(), []
    for one in MPI_WHEELS:
        prefix = home / f"{one.family}-{one.version}"
        names = MPI_OFFERS[one.family].distributions
        offers.append(
            FetchOffer(
                one.family,
                one.version,
                one.command,
                platform.machine() in one.architectures,
                prefix=prefix if is_complete(prefix) else None,
                available=not folder or all(wheel_in(folder, n, one.version) for n in names),
            )
        )
    known = {offer.prefix for offer in offers}
    for prefix in sorted(home.glob("[!.]*-*")):
        facts = fetched_facts(prefix)
        if prefix not in known and facts.get("family") in set(MPI_OFFERS):
            family, version = Family(facts["family"]), facts["version"]
            command = f"mpigraft get {family} --version {version}"
            offers.append(FetchOffer(family, version, command, tested=False, prefix=prefix))
    return tuple(offers)
