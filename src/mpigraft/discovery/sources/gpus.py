"""Find GPUs: NVIDIA by nvidia-smi or /proc, AMD by sysfs, with the versions that matter to MPI."""

from __future__ import annotations

import csv
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from mpigraft.core.model import Gpu
from mpigraft.core.process import clean, run_command
from mpigraft.discovery.sources import files
from mpigraft.discovery.sources.candidate import TRIPLETS, Host

LIMIT_S = 20.0
AMD_VENDOR = "0x1002"
# "CUDA Version: 12.4"; drivers since 590 print the user-mode driver's, "CUDA UMD Version: 13.1".
CUDA = re.compile(r"CUDA (?:UMD )?Version\s*:\s*(\d+(?:\.\d+)+)")
QUERY = "index,name,memory.total,driver_version,pci.bus_id"
BUS_ID = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)


def gpus(host: Host) -> tuple[Gpu, ...]:
    """List every GPU that its driver shows to this user."""
    gdrcopy = _gdrcopy(host)
    return (*_nvidia(host, gdrcopy), *_amd(host))


def _gdrcopy(host: Host) -> str:
    """Give the version of the gdrdrv module, and say where its library is missing."""
    module = files.text(host.path("/sys/module/gdrdrv/version"))
    if not files.exists(host.path("/dev/gdrdrv")):
        return ""
    folders = ["/usr/lib64", "/usr/lib", *(f"/usr/lib/{t}" for t in TRIPLETS)]
    library = any(files.exists(host.path(f"{f}/libgdrapi.so.2")) for f in folders)
    return (
        f"{module or 'unknown version'}{'' if library else ', no libgdrapi in the usual folders'}"
    )


def _nvidia(host: Host, gdrcopy: str) -> Iterator[Gpu]:
    tool = shutil.which("nvidia-smi", path=host.environ.get("PATH", os.defpath))
    done = None
    if tool:
        done = run_command(
            [tool, f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"], limit_s=LIMIT_S
        )
    if tool is None or done is None or not done.ok:
        yield from _nvidia_proc(host, gdrcopy)
        return
    match = CUDA.search(clean(run_command([tool], limit_s=LIMIT_S).stdout))
    cuda = match[1] if match else ""
    yield from nvidia_rows(host, clean(done.stdout), cuda, gdrcopy)


def _nearest_cpus(host: Host, bus_id: str) -> tuple[int, ...]:
    """Give the CPUs that are nearest to a PCI device: local_cpulist of sysfs. nvidia-smi writes
    the domain with eight digits, sysfs with four."""
    match = BUS_ID.fullmatch(bus_id)
    if not match:
        return ()
    name = f"{int(match[1], 16):04x}:{match[2].lower()}"
    return files.cpu_list(files.text(host.path(f"/sys/bus/pci/devices/{name}/local_cpulist")))


def nvidia_rows(host: Host, text: str, cuda: str, gdrcopy: str) -> Iterator[Gpu]:
    """Parse nvidia-smi's CSV; other lines ("No devices were found") are skipped."""
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(row) != 5 or not row[0].strip().isdecimal():
            continue
        index, name, memory, driver, bus_id = (word.strip() for word in row)
        details = {"driver": driver, "cuda": cuda, "gdrcopy": gdrcopy}
        mib = int(memory) if memory.isdecimal() else 0  # GB200 reports [N/A]: memory is the host's
        cpus = _nearest_cpus(host, bus_id)
        yield Gpu(int(index), "nvidia", name, mib, files.present(details), cpus)


def _nvidia_proc(host: Host, gdrcopy: str) -> Iterator[Gpu]:
    """Ask the kernel module, without nvidia-smi (a container, a broken driver)."""
    version = files.text(host.path("/proc/driver/nvidia/version"))
    match = re.search(r"(?:Kernel Module|x86_64|aarch64)\s+(\d+\.\d+[.\d]*)", version)
    details = {"driver": match[1] if match else "", "gdrcopy": gdrcopy}
    for index, entry in enumerate(files.entries(host.path("/proc/driver/nvidia/gpus"))):
        name = re.search(r"Model:\s*(.+)", files.text(entry / "information"))
        model = name[1].strip() if name else ""
        yield Gpu(
            index, "nvidia", model, 0, files.present(details), _nearest_cpus(host, entry.name)
        )


def _amd(host: Host) -> Iterator[Gpu]:
    """Read sysfs alone: rocm-smi reads the same files, and is often not in PATH."""
    driver = files.text(host.path("/sys/module/amdgpu/version"))
    details = {"driver": driver or "in-kernel", "rocm": _rocm(host)}
    index = 0
    for card in files.entries(host.path("/sys/class/drm")):
        device = card / "device"
        memory = files.number(device / "mem_info_vram_total")
        if not re.fullmatch(r"card\d+", card.name) or memory is None:
            continue
        if files.text(device / "vendor") != AMD_VENDOR:
            continue
        number = files.text(device / "device")
        name = files.text(device / "product_name") or f"AMD GPU {number}"
        cpus = files.cpu_list(files.text(device / "local_cpulist"))
        yield Gpu(index, "amd", name, memory >> 20, files.present(details), cpus)
        index += 1


def _rocm(host: Host) -> str:
    roots = [host.path("/opt/rocm")]
    if root_path := host.environ.get("ROCM_PATH"):
        roots.insert(0, Path(root_path))
    versions = (files.text(root / ".info/version") for root in roots)
    return next((v for v in versions if v), "")
