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
from mpigraft.sources import probe, sysfs
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
    for entry in sysfs.entries(here.at("/sys/class/cxi")):
        device = entry / "device"
        driver = sysfs.link_name(device / "driver") or "cxi_ss1"
        details = {
            "description": sysfs.text(device / "fru/description"),
            "firmware": sysfs.text(device / "uc/qspi_blob_version"),
            "driver": f"{driver} {sysfs.text(here.at(f'/sys/module/{driver}/version'))}".strip(),
            "libcxi": _libcxi(here),
            "speed": sysfs.text(device / "properties/speed"),
            "interface": " ".join(e.name for e in sysfs.entries(device / "net")),
            "numa": sysfs.text(device / "numa_node"),
        }
        node = here.at(f"/dev/{entry.name}")
        if not os.access(node, os.R_OK | os.W_OK):
            details["device"] = f"/dev/{entry.name} " + (
                "may not be opened" if node.exists() else "is missing"
            )
        up = sysfs.text(device / "properties/link") in {"1", "up"}
        nid = sysfs.text(device / "properties/nid")
        yield NetDevice(entry.name, "cxi", "up" if up else "down", nid, _present(details))


def _libcxi(here: Here) -> str:
    """libcxi's version: the one of its pkg-config file, else of the library's file name."""
    folders = ["/usr/lib64", "/usr/lib", *(f"/usr/lib/{t}" for t in TRIPLETS)]
    for folder in map(here.at, folders):
        package = sysfs.text(folder / "pkgconfig/libcxi.pc")
        if found := re.search(r"^Version:\s*(\S+)", package, re.MULTILINE):
            return found[1]
        real = Path(os.path.realpath(folder / "libcxi.so.1"))
        if real.is_file():
            return real.name.partition(".so.")[2]
    return ""


def _infiniband(here: Here) -> Iterator[NetDevice]:
    for entry in sysfs.entries(here.at("/sys/class/infiniband")):
        ports = sysfs.entries(entry / "ports")
        port = next((p for p in ports if "ACTIVE" in sysfs.text(p / "state")), None)
        first = port or (ports[0] if ports else entry)
        driver = sysfs.link_name(entry / "device/driver")
        details = {
            "type": sysfs.text(entry / "hca_type"),
            "board": sysfs.text(entry / "board_id"),
            "firmware": sysfs.text(entry / "fw_ver"),
            "driver": f"{driver} {sysfs.text(here.at(f'/sys/module/{driver}/version'))}".strip(),
            "speed": sysfs.text(first / "rate"),
            "link": sysfs.text(first / "link_layer"),
            "interface": " ".join(e.name for e in sysfs.entries(entry / "device/net")),
            "numa": sysfs.text(entry / "device/numa_node"),
        }
        guid = sysfs.text(entry / "node_guid")
        state = "up" if port else "down"
        yield NetDevice(entry.name, "infiniband", state, guid, _present(details))


def _net(here: Here) -> Iterator[NetDevice]:
    for entry in sysfs.entries(here.at("/sys/class/net")):
        kind = sysfs.text(entry / "type")
        if not kind:
            continue  # bonding_masters and other files
        flags = sysfs.number(entry / "flags") or 0
        up = bool(flags & IFF_UP) and sysfs.text(entry / "operstate") in {"up", "unknown"}
        speed = sysfs.number(entry / "speed") or 0
        driver = sysfs.link_name(entry / "device/driver")
        virtual = not (entry / "device").exists()
        details = {
            "driver": driver,
            "speed": f"{speed} Mb/s" if speed > 0 else "",
            "mtu": sysfs.text(entry / "mtu"),
            "link": "InfiniBand" if kind == "32" else "",
            "virtual": "yes" if virtual and kind != "772" else "",
        }
        address = _ipv4(entry.name) if here.root == Path("/") else sysfs.text(entry / "ipv4")
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
    if not node.exists():
        return SingleCopy(name, False, f"there is no /dev/{name}")
    if not os.access(node, os.R_OK | os.W_OK):
        return SingleCopy(name, False, f"/dev/{name} may not be opened by this user")
    version = sysfs.text(here.at(f"/sys/module/{name}/version"))
    return SingleCopy(name, True, f"/dev/{name} may be opened" + (f", {version}" * bool(version)))


def _cma() -> SingleCopy:
    said = probe.single_copy_permitted()
    if "cma" in said.offers:
        return SingleCopy("cma", True, "one process read another's memory")
    if "cma-when-allowed" in said.offers:
        why = "only of a process that allows it (Yama's ptrace_scope is 1)"
        return SingleCopy("cma", False, why)
    return SingleCopy("cma", False, f"process_vm_readv was refused: {said.reason}")
