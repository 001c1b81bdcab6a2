"""Titles of the OSU Micro-Benchmarks and the program that prints each.

A title is built of parts, so it is read by its parts: `OSU MPI-CUDA Non-blocking Neighborhood
All-to-Allv Latency Test` is osu_ineighbor_alltoallv with CUDA buffers. Sources: the title macros
of OMB 5.9, 7.4 and 7.5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TITLE = re.compile(r"# (?P<title>(?:OSU|OMB)\S* .*?) v(?P<version>\d[\w.]*)\s*$")
MPI = re.compile(
    r"OSU MPI(?:_(?P<call>\w+?))?"
    r"(?:-(?P<device>CUDA MANAGED|CUDA|MANAGED|ROCM|OPENACC|SYCL))? (?P<what>.+)",
    re.IGNORECASE,
)
DEVICES = {"cuda": "cuda", "cuda managed": "cuda", "managed": "cuda", "rocm": "rocm"}

CALLS = {
    "put": "put",
    "get": "get",
    "accumulate": "acc",
    "get_accumulate": "get_acc",
    "compare_and_swap": "cas",
    "fetch_and_op": "fop",
}
KINDS = {"latency": "latency", "bandwidth": "bw", "bi-directional bandwidth": "bibw"}
PROGRAMS = {
    "latency": "latency",
    "bandwidth": "bw",
    "bi-directional bandwidth": "bibw",
    "multi latency": "multi_lat",
    "multiple bandwidth / message rate": "mbw_mr",
    "multi-threaded latency": "latency_mt",
    "multi-process latency": "latency_mp",
    "partitioned latency": "partitioned_latency",
    "bandwidth congestion in": "bw_fan_in",
    "bandwidth congestion out": "bw_fan_out",
    "init": "init",
    "hello world": "hello",
}
COLLECTIVES = {
    "broadcast": "bcast",
    "all-to-all": "alltoall",
    "all-to-allv": "alltoallv",
    "all-to-allw": "alltoallw",
    "all-to-all personalized exchange": "alltoall",
    "all-to-allv personalized exchange": "alltoallv",
    "all-to-allw personalized exchange": "alltoallw",
} | {
    name: name
    for name in (
        "allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier",
        "bcast", "gather", "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block",
        "scatter", "scatterv",
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Title:
    """What a title says: the program's name without `osu_`, the buffers, the version."""

    program: str
    buffers: str  # host, cuda, rocm, or the device as the title has it
    managed: bool
    version: str
    known: bool  # False: `program` is the title itself, made a name


def read(line: str) -> Title | None:
    """Return the title in a line, or None. It may be glued to something that was printed before
    it."""
    match = TITLE.search(line)
    if not match:
        return None
    title, version = match["title"], match["version"]
    parts = MPI.fullmatch(title)
    device = ((parts and parts["device"]) or "").lower()
    program = parts and _program((parts["call"] or "").lower(), parts["what"].lower())
    buffers = DEVICES.get(device, device) or "host"
    slug = re.sub(r"[^a-z0-9]+", "_", title.removeprefix("OSU ").lower()).strip("_")
    return Title(program or slug, buffers, "managed" in device, version, bool(program))


def _program(call: str, what: str) -> str | None:
    # 7.5.1 says "Latency Test Test" (its own macro has the word twice)
    what = re.sub(r"( test)+$", "", " ".join(what.split()))
    if call:
        kind = KINDS.get(what)
        return f"{CALLS[call]}_{kind}" if kind and call in CALLS else None
    plain = " ".join(what.replace(" persistent", "").split())
    tail = "_persistent" if plain != what else ""
    if plain in PROGRAMS:
        return PROGRAMS[plain] + tail
    nonblocking = plain.removeprefix("non-blocking ")
    neighbor = re.sub(r"^neighbor(hood)? ", "", nonblocking)
    name = COLLECTIVES.get(neighbor.removesuffix(" latency"))
    if not name:
        return None
    head = ("i" if nonblocking != plain else "") + ("neighbor_" if neighbor != nonblocking else "")
    return head + name + tail
