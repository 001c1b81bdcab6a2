"""How the Intel MPI Benchmarks are started: which program has a benchmark, and its options.

They are built for MPICH's binary interface, so Intel MPI, MPICH and Cray MPICH can run them.
Intel's wheels bring them beside the launcher.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mpigraft.bench.suites import imb
from mpigraft.bench.suites.base import Parsed
from mpigraft.bench.suites.programs import (
    Ranks,
    Tool,
    refuse_absent,
    refuse_options,
    refuse_unknown,
)
from mpigraft.bench.suites.rank_files import RankFiles
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Benchmark, EnvRow, Family, Layout, Machine, MpiInstall, Scope
from mpigraft.discovery import OPENMP_FOLDER
from mpigraft.request import CampaignSpec

PARTS = {  # as `IMB-* -list` prints them; a name of several parts is the first one's
    "MPI1": (
        "PingPong", "PingPing", "PingPongSpecificSource", "PingPongAnySource",
        "PingPingSpecificSource", "PingPingAnySource", "Sendrecv", "Exchange", "Uniband",
        "Biband", "Bcast", "Allreduce", "Reduce", "Reduce_local", "Reduce_scatter",
        "Reduce_scatter_block", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather",
        "Allgatherv", "Alltoall", "Alltoallv", "Barrier",
    ),
    "NBC": tuple(
        name + tail
        for name in (
            "Ibcast", "Iallreduce", "Ireduce", "Ireduce_scatter", "Igather", "Igatherv",
            "Iscatter", "Iscatterv", "Iallgather", "Iallgatherv", "Ialltoall", "Ialltoallv",
            "Ibarrier",
        )
        for tail in ("", "_pure")
    ),
    "RMA": (
        "Unidir_put", "Unidir_get", "Bidir_put", "Bidir_get", "One_put_all", "One_get_all",
        "All_put_all", "All_get_all", "Exchange_put", "Exchange_get", "Put_local", "Get_local",
        "Put_all_local", "Get_all_local", "Accumulate", "Get_accumulate", "Fetch_and_op",
        "Compare_and_swap", "Truly_passive_put",
    ),
    "P2P": (
        "PingPong", "PingPing", "Unirandom", "Birandom", "Corandom", "Stencil2D", "Stencil3D",
        "SendRecv_Replace",
    ),
    "MT": (
        "PingPongMT", "PingPingMT", "SendRecvMT", "ExchangeMT", "UniBandMT", "BiBandMT",
        "BcastMT", "ReduceMT", "AllReduceMT", "BarrierMT",
    ),
}  # fmt: skip
MODES = ("aggregate", "non-aggregate")  # of RMA: both are measured, a key may name one
EVEN = ("Uniband", "Biband", "UniBandMT", "BiBandMT")
ITERATIONS = {"P2P": (10_000, 1_000)}  # usual and with --quick; IMB's own for P2P takes minutes
USUAL_ITERATIONS = (1_000, 200)  # of the other parts: IMB's own, fewer for large messages


def names(_spec: CampaignSpec) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in PARTS.values() for name in part))


def part_of(benchmark: Benchmark) -> str:
    """Return the part of a benchmark: the one that is asked for, else the first that has the
    name."""
    asked = dict(benchmark.options).get("part")
    return asked or next(part for part, known in PARTS.items() if benchmark.name in known)


def check(benchmark: Benchmark, spec: CampaignSpec) -> None:
    refuse_absent("--imb", spec.imb, spec)
    refuse_unknown(benchmark, names(spec))
    known = {"part": tuple(p for p in ("P2P", "MT") if benchmark.name in PARTS[p])}
    if benchmark.name in PARTS["RMA"]:
        known = {"mode": MODES}
    refuse_options(benchmark, known if any(known.values()) else {})
    if spec.buffers != "host":
        raise UsageError.of("imb-host-buffers", key=benchmark.key, buffers=spec.buffers)


def ranks(benchmark: Benchmark, _spec: CampaignSpec) -> Ranks:
    """Other numbers end with `Benchmark NAME is invalid for N processes`."""
    grids = {"Stencil2D": Ranks.PLANE, "Stencil3D": Ranks.SPACE}
    return grids.get(benchmark.name, Ranks.EVEN if benchmark.name in EVEN else Ranks.SEVERAL)


def folders(spec: CampaignSpec, machine: Machine) -> tuple[str, ...]:
    return (*spec.imb, *(folder for folder, _ in _beside_launchers(machine)))


def _beside_launchers(machine: Machine) -> Iterator[tuple[str, str]]:
    """(folder, id) of each Intel MPI of this machine: its wheels bring the programs there."""
    for mpi in machine.mpis:
        if mpi.family is Family.INTEL and mpi.launcher:
            yield str(mpi.launcher.parent), mpi.id


def tools(
    benchmark: Benchmark,
    spec: CampaignSpec,
    machine: Machine,
    files: RankFiles,
    _mpi: MpiInstall,
) -> Iterator[Tool]:
    program = f"IMB-{part_of(benchmark)}"
    rows = _openmp(machine) if program == "IMB-MT" else ()
    advice = "" if rows or program != "IMB-MT" else "`mpigraft get intel --openmp` fetches it"
    places: list[tuple[str, str]] = [
        *((f"{text}{sub}", f"--imb {text}") for text in spec.imb for sub in ("", "/bin")),
        *_beside_launchers(machine),
        *((folder, "PATH") for folder in files.path),
    ]
    for text, source in dict(places).items():
        folder = files.folder(text)
        if files.is_program(f"{folder}/{program}"):
            yield Tool((f"{folder}/{program}",), source, rows=rows, advice=advice)


def _openmp(machine: Machine) -> tuple[EnvRow, ...]:
    """Return where IMB-MT finds Intel's OpenMP library, if `get intel --openmp` fetched it: in a
    folder of its own, which no other program sees."""
    for folder, _ in _beside_launchers(machine):
        library = Path(folder).parent / OPENMP_FOLDER / "lib"
        if library.is_dir():
            return (EnvRow("LD_LIBRARY_PATH", str(library), Scope.RANK, "imb"),)
    return ()


def missing(benchmark: Benchmark, spec: CampaignSpec) -> str:
    where = f"in {', '.join(spec.imb)}" if spec.imb else "here"
    program = f"IMB-{part_of(benchmark)}"
    return f"no {program} {where}; `mpigraft get intel` fetches one, --imb PATH names one"


def words(benchmark: Benchmark, tool: Tool, spec: CampaignSpec, layout: Layout) -> tuple[str, ...]:
    """Powers of two between the campaign's sizes. All ranks of
    the layout take part wherever the benchmark is for more than two."""
    part = part_of(benchmark)
    low = (spec.min_size - 1).bit_length()
    high = max(low, spec.max_size.bit_length() - 1)
    usual, quick = ITERATIONS.get(part, USUAL_ITERATIONS)
    made = [*tool.words, benchmark.name]
    if part == "MT":
        sizes = ",".join(str(1 << n) for n in range(low, high + 1))
        level = ("-thread_level", "multiple") if layout.threads > 1 else ()
        return (
            *made,
            *level,
            "-datatype",
            "char",
            "-count",
            sizes,
            "-repeat",
            str(quick if spec.quick else usual),
        )
    if part != "P2P":
        made += ["-npmin", str(layout.ranks)]
    if part in ("MPI1", "NBC"):  # the others do not know it
        made += ["-zero_size", "off"]
    return (*made, "-msglog", f"{low}:{high}", "-iter", str(quick if spec.quick else usual))


def read(_benchmark: Benchmark, data: bytes, _spec: CampaignSpec, source: str) -> Parsed:
    return imb.parse(data, source=source)
