"""A program of its own: load one foreign library, query it, and print one line of JSON.

    python -I -S child.py mpi|libfabric|ucx LIBRARY [PLUGIN...]
    python -I -S child.py cma ""

A foreign library may print, hang, exit or crash while it loads. Here it does so in a process
that `probe` started with a time limit, and a known error is an answer like any other. It imports
the standard library only, nothing of this package: it must start in a few milliseconds.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

RTLD_LAZY, RTLD_GLOBAL = 1, 0x100
MAX_VERSION_STRING = 16384  # MPICH writes up to 8192
FI_PROV_ATTR_ONLY = 1 << 54  # every provider, whether or not it has a device here
FI_TYPE_VERSION = 18  # rdma/fabric.h, enum fi_type: stable since libfabric 1.0
UCP_FEATURE_TAG = 1
PR_SET_PTRACER, PR_SET_PTRACER_ANY = 0x59616D61, (1 << 64) - 1
RESOURCE = re.compile(
    r"#\s+resource\s+\d+\s*:\s*md\s+\d+\s+dev\s+\d+\s+\S+\s+(?:-\S*\s+)*(\S+/\S+)"
)


def load(path: str) -> ctypes.CDLL:
    """Open a library as a program linked to it does: lazily, with its symbols global.

    ctypes always uses RTLD_NOW, which refuses libraries that run well lazily bound.
    """
    own = ctypes.CDLL(None)
    own.dlopen.restype = ctypes.c_void_p
    own.dlopen.argtypes = [ctypes.c_char_p, ctypes.c_int]
    own.dlerror.restype = ctypes.c_char_p
    handle = own.dlopen(os.fsencode(path), RTLD_LAZY | RTLD_GLOBAL)
    if not handle:
        raise OSError((own.dlerror() or b"dlopen failed").decode(errors="replace"))
    return ctypes.CDLL(path, handle=handle)


def mapped() -> list[str]:
    """List the shared libraries that this process has mapped, in order of address."""
    lines = Path("/proc/self/maps").read_text(errors="surrogateescape").splitlines()
    files = (line.split(maxsplit=5)[5] for line in lines if line.count("/") > 1)
    return list(dict.fromkeys(f for f in files if ".so" in f and f.startswith("/")))


def mpi(library: str, plugins: list[str]) -> dict[str, Any]:
    """Give version and mapped libraries. MPI_Get_library_version may be called before MPI_Init
    (MPI 3.1, 8.1.1). Plugins are loaded for the libraries that they need: libfabric, UCX."""
    lib = load(library)
    text = ctypes.create_string_buffer(MAX_VERSION_STRING)
    length = ctypes.c_int()
    if lib.MPI_Get_library_version(text, ctypes.byref(length)) != 0:
        raise OSError("MPI_Get_library_version failed")
    version, subversion = ctypes.c_int(), ctypes.c_int()
    lib.MPI_Get_version(ctypes.byref(version), ctypes.byref(subversion))
    troubles = []
    for plugin in plugins:
        try:
            load(plugin)
        except OSError as error:
            troubles.append(str(error))
    return {
        "version": text.value.decode("utf-8", "replace"),
        "standard": f"{version.value}.{subversion.value}",
        "troubles": troubles,
    }


class FabricAttr(ctypes.Structure):
    """struct fi_fabric_attr of rdma/fabric.h, as far as it has not changed since 1.0."""

    _fields_ = (
        ("fabric", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("prov_name", ctypes.c_char_p),
        ("prov_version", ctypes.c_uint32),
    )


class Info(ctypes.Structure):
    """struct fi_info of rdma/fabric.h, up to fabric_attr."""


Info._fields_ = (
    ("next", ctypes.POINTER(Info)),
    ("caps", ctypes.c_uint64),
    ("mode", ctypes.c_uint64),
    ("addr_format", ctypes.c_uint32),
    ("src_addrlen", ctypes.c_size_t),
    ("dest_addrlen", ctypes.c_size_t),
    ("src_addr", ctypes.c_void_p),
    ("dest_addr", ctypes.c_void_p),
    ("handle", ctypes.c_void_p),
    ("tx_attr", ctypes.c_void_p),
    ("rx_attr", ctypes.c_void_p),
    ("ep_attr", ctypes.c_void_p),
    ("domain_attr", ctypes.c_void_p),
    ("fabric_attr", ctypes.POINTER(FabricAttr)),
)


def libfabric(library: str, _: list[str]) -> dict[str, Any]:
    """Give the version and the providers that it was built with or finds as plugins."""
    lib = load(library)
    lib.fi_version.restype = ctypes.c_uint32
    number = lib.fi_version()
    lib.fi_tostr.restype = ctypes.c_char_p
    full = lib.fi_tostr(ctypes.byref(ctypes.c_int()), FI_TYPE_VERSION) or b""
    first = ctypes.POINTER(Info)()
    lib.fi_getinfo.argtypes = [
        ctypes.c_uint32, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64,
        ctypes.c_void_p, ctypes.POINTER(ctypes.POINTER(Info)),
    ]  # fmt: skip
    failed = lib.fi_getinfo(number, None, None, FI_PROV_ATTR_ONLY, None, ctypes.byref(first))
    names, host = [], first
    while not failed and host:
        if host.contents.fabric_attr:
            name = host.contents.fabric_attr.contents.prov_name or b""
            names.append(name.decode("utf-8", "replace"))
        host = host.contents.next
    version = full.decode("utf-8", "replace")
    if not re.fullmatch(r"\d+\.\d+\S*", version):  # fi_tostr of another release: major.minor only
        version = f"{number >> 16}.{number & 0xFFFF}"
    trouble = [f"fi_getinfo returned {failed}"] if failed else []
    return {"version": version, "offers": list(dict.fromkeys(names)), "troubles": trouble}


class UcpParams(ctypes.Structure):
    """ucp_params_t: only the fields that field_mask names are read."""

    _fields_ = (
        ("field_mask", ctypes.c_uint64),
        ("features", ctypes.c_uint64),
        ("rest", ctypes.c_uint64 * 32),
    )


def ucx(library: str, _: list[str]) -> dict[str, Any]:
    """Give the version and the transports that a context with default settings has here."""
    lib = load(library)
    lib.ucp_get_version_string.restype = ctypes.c_char_p
    answer: dict[str, Any] = {"version": lib.ucp_get_version_string().decode(), "offers": []}
    major, minor, release = ctypes.c_uint(), ctypes.c_uint(), ctypes.c_uint()
    lib.ucp_get_version(ctypes.byref(major), ctypes.byref(minor), ctypes.byref(release))
    config, context = ctypes.c_void_p(), ctypes.c_void_p()
    params = UcpParams(1, UCP_FEATURE_TAG)
    failed = lib.ucp_config_read(None, None, ctypes.byref(config)) or lib.ucp_init_version(
        major, minor, ctypes.byref(params), config, ctypes.byref(context)
    )
    if failed:
        return {**answer, "troubles": [f"ucp_init returned {ctypes.c_int8(failed).value}"]}
    own = ctypes.CDLL(None)
    own.fdopen.restype = ctypes.c_void_p
    memory = os.memfd_create("ucx")
    stream = ctypes.c_void_p(own.fdopen(memory, b"w+"))
    lib.ucp_context_print_info(context, stream)
    own.fflush(stream)
    text = os.pread(memory, 1 << 20, 0).decode("utf-8", "replace")
    names = [m[1].partition("/")[0] for m in map(RESOURCE.match, text.splitlines()) if m]
    return {**answer, "offers": list(dict.fromkeys(names)), "troubles": []}


class Iovec(ctypes.Structure):
    """struct iovec of sys/uio.h."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def cma(_library: str, _: list[str]) -> dict[str, Any]:
    """Try whether one process may read another's memory, between siblings, as ranks do.

    A parent may always read its own child where Yama's ptrace_scope is 1, so that proves nothing.
    UCX and libfabric let their peers read them (PR_SET_PTRACER); Open MPI does not.
    """
    refused = sibling_read(allow=False)
    if not refused:
        return {"offers": ["cma"], "troubles": []}
    allowed = not sibling_read(allow=True)
    return {"offers": ["cma-when-allowed"] if allowed else [], "troubles": [os.strerror(refused)]}


def sibling_read(*, allow: bool) -> int:
    """Give 0 when one child could read what another wrote, else an errno."""
    own = ctypes.CDLL(None, use_errno=True)
    memory = ctypes.create_string_buffer(b"parent", 8)
    ready, announce = os.pipe()
    peer = os.fork()
    if peer == 0:
        memory.value = b"peer"
        if allow:
            own.prctl(PR_SET_PTRACER, ctypes.c_ulong(PR_SET_PTRACER_ANY), 0, 0, 0)
        os.write(announce, b".")
        signal.pause()
    os.read(ready, 1)
    reader = os.fork()
    if reader == 0:
        into = ctypes.create_string_buffer(8)
        host, there = Iovec(ctypes.addressof(into), 8), Iovec(ctypes.addressof(memory), 8)
        count = ctypes.c_ulong(1)
        done = own.process_vm_readv(
            peer, ctypes.byref(host), count, ctypes.byref(there), count, ctypes.c_ulong(0)
        )
        os._exit(0 if done == 8 and into.value == b"peer" else ctypes.get_errno() or errno.EIO)
    status = os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1])
    os.kill(peer, signal.SIGKILL)
    os.waitpid(peer, 0)
    return status


QUERIES = {"mpi": mpi, "libfabric": libfabric, "ucx": ucx, "cma": cma}


def main() -> int:
    answers = os.dup(1)
    os.dup2(2, 1)  # what the library prints while it loads is no answer
    kind, library, *plugins = sys.argv[1:]
    own = set(mapped())
    try:
        answer = QUERIES[kind](library, plugins)
        answer["mapped"] = [file for file in mapped() if file not in own]
    except (OSError, AttributeError) as error:
        answer = {"error": str(error)}
    os.write(answers, json.dumps(answer).encode() + b"\n")
    os._exit(0)  # no destructors: some libraries crash in theirs


if __name__ == "__main__":
    main()
