"""Networks that transports may need: the rows of fabrics.toml as values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from mpigraft.core.model import NetDevice
from mpigraft.knowledge.reader import load_rows, toml

UP = ("up", "active", "unknown", "")


@dataclass(frozen=True, slots=True)
class Fabric:
    """A network, the devices that belong to it, and what reaches it."""

    id: str
    device: str  # with its article
    kind: str  # as in NetDevice.kind
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))
    drivers: tuple[str, ...] = ()  # empty: those of the kind that no other fabric has
    name: re.Pattern[str] = re.compile(".*")
    providers: tuple[str, ...] = field(default=(), metadata=toml("provider"))  # of libfabric
    ucx: bool = False


def fabrics() -> tuple[Fabric, ...]:
    """Return every row of fabrics.toml."""
    return load_rows(Fabric, "fabric", "fabrics.toml")


def fabrics_by_kind() -> dict[str, list[Fabric]]:
    """Return the rows of each kind of device, which differ by driver."""
    kinds = dict.fromkeys(fabric.kind for fabric in fabrics())
    return {kind: [row for row in fabrics() if row.kind == kind] for kind in kinds}


def devices_by_fabric(
    devices: Iterable[NetDevice], rows: Iterable[Fabric] | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the names of the devices that are up, by fabric; fabrics without any are left out."""
    rows = fabrics() if rows is None else tuple(rows)
    up = [device for device in devices if device.state.lower() in UP]
    names = {row.id: tuple(d.name for d in up if _belongs(d, row, rows)) for row in rows}
    return {fabric: own for fabric, own in names.items() if own}


def _belongs(device: NetDevice, fabric: Fabric, rows: Iterable[Fabric]) -> bool:
    if device.kind != fabric.kind or not fabric.name.fullmatch(device.name):
        return False
    if fabric.drivers:
        return _driver(device) in fabric.drivers
    named = (name for row in rows if row.kind == device.kind for name in row.drivers)
    return _driver(device) not in named


def _driver(device: NetDevice) -> str:
    """Return the kernel's driver, else what the device's name begins with: hfi1_0."""
    driver = dict(device.details).get("driver", "").partition(" ")[0]
    return driver or device.name.partition("_")[0]
