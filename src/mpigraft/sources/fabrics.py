"""Network devices from sysfs, and the means of copying between processes of one node.

Slingshot: files as the cxi driver and shs-libcxi 14 name them (cxi_stat reads the same).
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from mpigraft.model import NetDevice, SingleCopy
from mpigraft.sources import look, probe
from mpigraft.sources.candidate import TRIPLETS, Here

SIOCGIFADDR = 0x8915  # linux/sockios.h
IFF_UP = 1
LINK_TYPES = {"1": "ethernet", "32": "ethernet", "772": "loopback"}  # linux/if_arp.h; 32: IPoIB


def devices(here: Here) -> tuple[NetDevice, ...]:
    """Slingshot, InfiniBand, then the kernel's interfaces, each in natural order."""
    return (*_cxi(here), *_infiniband(here), *sorted(_net(here), key=_rank))


def _rank(device: NetDevice) -> tuple[bool, bool, bool]:
    """Real interfaces with an address first: a bridge of Docker's is no way to another node."""
    virtual = "virtual" in dict(device.details)
    return (device.kind == "loopback", virtual, not device.address)


def _cxi(here: Here) -> Iterator[NetDevice]:
    for entry in look.entries(here.at("/sys/class/cxi")):
        device = entry / "device"
        driver = look.link_name(device / "driver") or "cxi_ss1"
        details = {
            "description": look.text(device / "fru/description"),
            "firmware": look.text(device / "uc/qspi_blob_version"),
            "driver": f"{driver} {look.text(here.at(f'/sys/module/{driver}/version'))}".strip(),
            "libcxi": _libcxi(here),
            "speed": look.text(device / "properties/speed"),
            "interface": " ".join(e.name for e in look.entries(device / "net")),
            "numa": look.text(device / "numa_node"),
        }
        node = here.at(f"/dev/{entry.name}")
        if not os.access(node, os.R_OK | os.W_OK):
            details["device"] = f"/dev/{entry.name} " + (
                "may not be opened" if look.exists(node) else "is missing"
            )
        up = look.text(device / "properties/link") in {"1", "up"}
        nid = look.text(device / "properties/nid")
        yield NetDevice(entry.name, "cxi", "up" if up else "down", nid, _present(details))


def _libcxi(here: Here) -> str:
    """libcxi's version: the one of its pkg-config file, else of the library's file name."""
    folders = ["/usr/lib64", "/usr/lib", *(f"/usr/lib/{t}" for t in TRIPLETS)]
    for folder in map(here.at, folders):
        package = look.text(folder / "pkgconfig/libcxi.pc")
        if found := re.search(r"^Version:\s*(\S+)", package, re.MULTILINE):
            return found[1]
        real = Path(os.path.realpath(folder / "libcxi.so.1"))
        if look.is_file(real):
            return real.name.partition(".so.")[2]
    return ""


def _infiniband(here: Here) -> Iterator[NetDevice]:
    for entry in look.entries(here.at("/sys/class/infiniband")):
        ports = look.entries(entry / "ports")
        port = next((p for p in ports if "ACTIVE" in look.text(p / "state")), None)
        first = port or (ports[0] if ports else entry)
        driver = look.link_name(entry / "device/driver")
        details = {
            "type": look.text(entry / "hca_type"),
            "board": look.text(entry / "board_id"),
            "firmware": look.text(entry / "fw_ver"),
            "driver": f"{driver} {look.text(here.at(f'/sys/module/{driver}/version'))}".strip(),
            "speed": look.text(first / "rate"),
            "link": look.text(first / "link_layer"),
            "interface": " ".join(e.name for e in look.entries(entry / "device/net")),
            "numa": look.text(entry / "device/numa_node"),
        }
        guid = look.text(entry / "node_guid")
        state = "up" if port else "down"
        yield NetDevice(entry.name, "infiniband", state, guid, _present(details))


def _net(here: Here) -> Iterator[NetDevice]:
    for entry in look.entries(here.at("/sys/class/net")):
        kind = look.text(entry / "type")
        if not kind:
            continue  # bonding_masters and other files
        flags = look.number(entry / "flags") or 0
        up = bool(flags & IFF_UP) and look.text(entry / "operstate") in {"up", "unknown"}
        speed = look.number(entry / "speed") or 0
        driver = look.link_name(entry / "device/driver")
        virtual = not look.exists(entry / "device")
        details = {
            "driver": driver,
            "speed": f"{speed} Mb/s" if speed > 0 else "",
            "mtu": look.text(entry / "mtu"),
            "link": "InfiniBand" if kind == "32" else "",
            "virtual": "yes" if virtual and kind != "772" else "",
        }
        address = _ipv4(entry.name) if here.root == Path("/") else look.text(entry / "ipv4")
        yield NetDevice(
            entry.name,
            LINK_TYPES.get(kind, "other"),
            "up" if up else "down",
            address,
            _present(details),
        )


def _ipv4(interface: str) -> str:
    """The first IPv4 address of an interface; empty where it has none."""
    request = struct.pack("256s", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        try:
            return socket.inet_ntoa(fcntl.ioctl(own, SIOCGIFADDR, request)[20:24])
        except OSError:
            return ""


def _present(details: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in details.items() if value)


# ------------------------------------------------------------------ copies within a node


def single_copy(here: Here) -> tuple[SingleCopy, ...]:
    """xpmem, knem and CMA, and whether this user may use them."""
    return (_device_file(here, "xpmem"), _device_file(here, "knem"), _cma())


def _device_file(here: Here, name: str) -> SingleCopy:
    node = here.at(f"/dev/{name}")
    if not look.exists(node):
        return SingleCopy(name, False, f"there is no /dev/{name}")
    if not os.access(node, os.R_OK | os.W_OK):
        return SingleCopy(name, False, f"/dev/{name} may not be opened by this user")
    version = look.text(here.at(f"/sys/module/{name}/version"))
    return SingleCopy(name, True, f"/dev/{name} may be opened" + (f", {version}" * bool(version)))


def _cma() -> SingleCopy:
    said = probe.single_copy_permitted()
    if "cma" in said.offers:
        return SingleCopy("cma", True, "one process read another's memory")
    if "cma-when-allowed" in said.offers:
        why = "only of a process that allows it (Yama's ptrace_scope is 1)"
        return SingleCopy("cma", False, why)
    return SingleCopy("cma", False, f"process_vm_readv was refused: {said.reason}")
