"""Find network devices by sysfs, and the means of copying between processes of one node.

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

from mpigraft.core.model import NetDevice, SingleCopy
from mpigraft.discovery.sources import files, probe
from mpigraft.discovery.sources.candidate import TRIPLETS, Host

SIOCGIFADDR = 0x8915  # linux/sockios.h
IFF_UP = 1
LINK_TYPES = {"1": "ethernet", "32": "ethernet", "772": "loopback"}  # linux/if_arp.h; 32: IPoIB


def devices(host: Host) -> tuple[NetDevice, ...]:
    """List Slingshot, InfiniBand, then the kernel's interfaces, each in natural order."""
    return (*_cxi(host), *_infiniband(host), *sorted(_net(host), key=_rank))


def _rank(device: NetDevice) -> tuple[bool, bool, bool]:
    """Sort real interfaces with an address first: Docker's bridge does not reach another node."""
    virtual = "virtual" in dict(device.details)
    return (device.kind == "loopback", virtual, not device.address)


def _cxi(host: Host) -> Iterator[NetDevice]:
    for entry in files.entries(host.path("/sys/class/cxi")):
        device = entry / "device"
        driver = files.link_name(device / "driver") or "cxi_ss1"
        details = {
            "description": files.text(device / "fru/description"),
            "firmware": files.text(device / "uc/qspi_blob_version"),
            "driver": f"{driver} {files.text(host.path(f'/sys/module/{driver}/version'))}".strip(),
            "libcxi": _libcxi(host),
            "speed": files.text(device / "properties/speed"),
            "interface": " ".join(e.name for e in files.entries(device / "net")),
            "numa": files.text(device / "numa_node"),
        }
        node = host.path(f"/dev/{entry.name}")
        if not os.access(node, os.R_OK | os.W_OK):
            details["device"] = f"/dev/{entry.name} " + (
                "cannot be opened" if files.exists(node) else "is missing"
            )
        up = files.text(device / "properties/link") in {"1", "up"}
        nid = files.text(device / "properties/nid")
        yield NetDevice(entry.name, "cxi", "up" if up else "down", nid, files.present(details))


def _libcxi(host: Host) -> str:
    """Give libcxi's version by its pkg-config file, else by the library's file name."""
    folders = ["/usr/lib64", "/usr/lib", *(f"/usr/lib/{t}" for t in TRIPLETS)]
    for folder in map(host.path, folders):
        package = files.text(folder / "pkgconfig/libcxi.pc")
        if match := re.search(r"^Version:\s*(\S+)", package, re.MULTILINE):
            return match[1]
        real = Path(os.path.realpath(folder / "libcxi.so.1"))
        if files.is_file(real):
            return real.name.partition(".so.")[2]
    return ""


def _infiniband(host: Host) -> Iterator[NetDevice]:
    for entry in files.entries(host.path("/sys/class/infiniband")):
        ports = files.entries(entry / "ports")
        port = next((p for p in ports if "ACTIVE" in files.text(p / "state")), None)
        first = port or (ports[0] if ports else entry)
        driver = files.link_name(entry / "device/driver")
        details = {
            "type": files.text(entry / "hca_type"),
            "board": files.text(entry / "board_id"),
            "firmware": files.text(entry / "fw_ver"),
            "driver": f"{driver} {files.text(host.path(f'/sys/module/{driver}/version'))}".strip(),
            "speed": files.text(first / "rate"),
            "link": files.text(first / "link_layer"),
            "interface": " ".join(e.name for e in files.entries(entry / "device/net")),
            "numa": files.text(entry / "device/numa_node"),
        }
        guid = files.text(entry / "node_guid")
        state = "up" if port else "down"
        yield NetDevice(entry.name, "infiniband", state, guid, files.present(details))


def _net(host: Host) -> Iterator[NetDevice]:
    for entry in files.entries(host.path("/sys/class/net")):
        kind = files.text(entry / "type")
        if not kind:
            continue  # bonding_masters and other files
        flags = files.number(entry / "flags") or 0
        up = bool(flags & IFF_UP) and files.text(entry / "operstate") in {"up", "unknown"}
        speed = files.number(entry / "speed") or 0
        driver = files.link_name(entry / "device/driver")
        virtual = not files.exists(entry / "device")
        details = {
            "driver": driver,
            "speed": f"{speed} Mb/s" if speed > 0 else "",
            "mtu": files.text(entry / "mtu"),
            "link": "InfiniBand" if kind == "32" else "",
            "virtual": "yes" if virtual and kind != "772" else "",
        }
        address = _ipv4(entry.name) if host.root == Path("/") else files.text(entry / "ipv4")
        yield NetDevice(
            entry.name,
            LINK_TYPES.get(kind, "other"),
            "up" if up else "down",
            address,
            files.present(details),
        )


def _ipv4(interface: str) -> str:
    """Give the first IPv4 address of an interface; empty where it has none."""
    request = struct.pack("256s", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as endpoint:
        try:
            return socket.inet_ntoa(fcntl.ioctl(endpoint, SIOCGIFADDR, request)[20:24])
        except OSError:
            return ""


# ------------------------------------------------------------------ copies within a node


def single_copy(host: Host) -> tuple[SingleCopy, ...]:
    """Check xpmem, knem and CMA, and whether this user may use them."""
    return (_device_file(host, "xpmem"), _device_file(host, "knem"), _cma())


def _device_file(host: Host, name: str) -> SingleCopy:
    node = host.path(f"/dev/{name}")
    if not files.exists(node):
        return SingleCopy(name, False, f"there is no /dev/{name}")
    if not os.access(node, os.R_OK | os.W_OK):
        return SingleCopy(name, False, f"this user may not open /dev/{name}")
    version = files.text(host.path(f"/sys/module/{name}/version"))
    return SingleCopy(name, True, f"/dev/{name} can be opened" + (f", {version}" * bool(version)))


def _cma() -> SingleCopy:
    answer = probe.single_copy_permitted()
    if "cma" in answer.offers:
        return SingleCopy("cma", True, "a process can read another's memory")
    if "cma-when-allowed" in answer.offers:
        why = "only of a process that allows it (Yama's ptrace_scope is 1)"
        return SingleCopy("cma", False, why)
    return SingleCopy("cma", False, f"process_vm_readv failed: {answer.reason}")
