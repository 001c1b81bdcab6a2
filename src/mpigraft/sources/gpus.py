"""GPUs: NVIDIA by nvidia-smi or /proc, AMD by sysfs, with the versions that matter to MPI."""

from __future__ import annotations

import csv
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from mpigraft.model import Gpu
from mpigraft.run import clean, run
from mpigraft.sources import look
from mpigraft.sources.candidate import TRIPLETS, Here

LIMIT_S = 20.0
AMD_VENDOR = "0x1002"
# "CUDA Version: 12.4"; drivers since 590 print the user-mode driver's, "CUDA UMD Version: 13.1".
CUDA = re.compile(r"CUDA (?:UMD )?Version\s*:\s*(\d+(?:\.\d+)+)")
QUERY = "index,name,memory.total,driver_version,pci.bus_id"
BUS_ID = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)


def gpus(here: Here) -> tuple[Gpu, ...]:
    """Every GPU that its driver shows to this user."""
    gdrcopy = _gdrcopy(here)
    return (*_nvidia(here, gdrcopy), *_amd(here))


def _gdrcopy(here: Here) -> str:
    """Version of the gdrdrv module, and whether the library is there too."""
    module = look.text(here.at("/sys/module/gdrdrv/version"))
    if not look.exists(here.at("/dev/gdrdrv")):
        return ""
    folders = ["/usr/lib64", "/usr/lib", *(f"/usr/lib/{t}" for t in TRIPLETS)]
    library = any(look.exists(here.at(f"{f}/libgdrapi.so.2")) for f in folders)
    return (
        f"{module or 'unknown version'}{'' if library else ', no libgdrapi in the usual folders'}"
    )


def _nvidia(here: Here, gdrcopy: str) -> Iterator[Gpu]:
    tool = shutil.which("nvidia-smi", path=here.environ.get("PATH", os.defpath))
    done = None
    if tool:
        done = run([tool, f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"], limit_s=LIMIT_S)
    if tool is None or done is None or not done.ok:
        yield from _nvidia_proc(here, gdrcopy)
        return
    found = CUDA.search(clean(run([tool], limit_s=LIMIT_S).stdout))
    cuda = found[1] if found else ""
    yield from nvidia_rows(here, clean(done.stdout), cuda, gdrcopy)


def _near(here: Here, bus_id: str) -> tuple[int, ...]:
    """CPUs that the kernel says are nearest to a PCI device: sysfs-bus-pci, local_cpulist. The
    tool writes the domain with eight digits, sysfs with four."""
    found = BUS_ID.fullmatch(bus_id)
    if not found:
        return ()
    name = f"{int(found[1], 16):04x}:{found[2].lower()}"
    return look.cpu_list(look.text(here.at(f"/sys/bus/pci/devices/{name}/local_cpulist")))


def nvidia_rows(here: Here, text: str, cuda: str, gdrcopy: str) -> Iterator[Gpu]:
    """GPUs from nvidia-smi's CSV; a line that is none ("No devices were found") is passed over."""
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(row) != 5 or not row[0].strip().isdecimal():
            continue
        index, name, memory, driver, bus_id = (word.strip() for word in row)
        details = {"driver": driver, "cuda": cuda, "gdrcopy": gdrcopy}
        mib = int(memory) if memory.isdecimal() else 0  # GB200 says [N/A]: memory is the host's
        near = _near(here, bus_id)
        yield Gpu(int(index), "nvidia", name, mib, _present(details), near)


def _nvidia_proc(here: Here, gdrcopy: str) -> Iterator[Gpu]:
    """Without nvidia-smi (a container, a broken driver): what the kernel module says."""
    version = look.text(here.at("/proc/driver/nvidia/version"))
    found = re.search(r"(?:Kernel Module|x86_64|aarch64)\s+(\d+\.\d+[.\d]*)", version)
    details = {"driver": found[1] if found else "", "gdrcopy": gdrcopy}
    for index, entry in enumerate(look.entries(here.at("/proc/driver/nvidia/gpus"))):
        name = re.search(r"Model:\s*(.+)", look.text(entry / "information"))
        told = name[1].strip() if name else ""
        yield Gpu(index, "nvidia", told, 0, _present(details), _near(here, entry.name))


def _amd(here: Here) -> Iterator[Gpu]:
    """By sysfs alone: rocm-smi reads the same files, and is often not in PATH."""
    driver = look.text(here.at("/sys/module/amdgpu/version"))
    details = {"driver": driver or "in-kernel", "rocm": _rocm(here)}
    index = 0
    for card in look.entries(here.at("/sys/class/drm")):
        device = card / "device"
        memory = look.number(device / "mem_info_vram_total")
        if not re.fullmatch(r"card\d+", card.name) or memory is None:
            continue
        if look.text(device / "vendor") != AMD_VENDOR:
            continue
        number = look.text(device / "device")
        name = look.text(device / "product_name") or f"AMD GPU {number}"
        near = look.cpu_list(look.text(device / "local_cpulist"))
        yield Gpu(index, "amd", name, memory >> 20, _present(details), near)
        index += 1


def _rocm(here: Here) -> str:
    roots = [here.at("/opt/rocm")]
    if own := here.environ.get("ROCM_PATH"):
        roots.insert(0, Path(own))
    versions = (look.text(root / ".info/version") for root in roots)
    return next((v for v in versions if v), "")


def _present(details: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in details.items() if value)
