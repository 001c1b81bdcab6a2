"""Write native/calls_*.h: MPI's C functions as rows, of which the tracing library makes wrappers.

    tools/write_calls.py [--mpich PREFIX]

The prototypes are those of MPICH's mpi_proto.h, which has all of MPI 4 with the standard's names
of arguments. What a call says of its data is derived from these names (`shape`).
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from mpigraft.core.model import Family  # noqa: E402
from mpigraft.discovery.install import fetch  # noqa: E402
from mpigraft.native.programs import SOURCES  # noqa: E402

PROTOTYPE = re.compile(r"\bint (MPI_\w+)\(([^;]*?)\)\s*(?:MPICH[^;]*)?;", re.DOTALL)
PARAMETER = re.compile(r"(.*?)(\w+)((?:\[\d*\])*)$", re.DOTALL)
# Clocks and conversions, which take less time than counting them; what the library takes itself;
# functions whose types not every ABI has; tools.
LEFT_OUT = re.compile(
    r"T_|Abi_|Wtime|Wtick|\w*_(f2c|c2f|f082c|c2f08|f2f08|f082f|toint|fromint)$|Status_[gs]et_|"
    r"(Init|Init_thread|Finalize|Session_init|Session_finalize|Pcontrol)$|DUP_FN|"
    r"(Op_create|Register_datarep)_c$|Keyval_|Attr_|Errhandler_(create|get|set)$|Address$|"
    r"Type_(hindexed|hvector|struct|extent|lb|ub)$|Get_hw_resource_info|Initialized|Finalized|"
    r"\w*_errhandler$|Info_|Error_|Add_error|Remove_error|Is_thread_main|Get_address"
)
HEAD = "/* Made by tools/write_calls.py of MPICH's mpi_proto.h: not to be edited. */\n"
COLLECTIVES = ("barrier", "bcast", "gather", "scatter", "alltoall", "reduce", "scan")
P2P = re.compile(
    r"i?[bsr]?send|i?m?recv|psend|precv|pready|parrived|start|wait|test(all|any|some|)$|i?m?probe|"
    r"cancel|request_|buffer_|grequest"
)


@dataclass(frozen=True, slots=True)
class Row:
    """One function, without `MPI_`."""

    name: str
    types: tuple[str, ...]
    names: tuple[str, ...]
    arrays: tuple[str, ...]

    @property
    def base(self) -> str:
        """The routine of which `name` may be the form for large counts."""
        return self.name.removesuffix("_c")

    @property
    def kind(self) -> str:
        """The file that it stands in."""
        lower = self.base.lower()
        if lower.startswith("file_") or "datarep" in lower:
            return "io"
        if "win" in self.names or lower.startswith("win_"):
            return "onesided"
        if any(word in lower for word in COLLECTIVES) and "local" not in lower:
            blocking = not lower.startswith("i") and not lower.endswith("_init")
            return "collective" if blocking else "nonblocking"
        return "p2p" if P2P.match(lower) else "objects"

    def has(self, *names: str) -> bool:
        return all(name in self.names for name in names)


def rows(header: Path) -> list[Row]:
    """Every function of the header that is taken, by name."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
    result = []
    for full, inside in PROTOTYPE.findall(text):
        name = full.removeprefix("MPI_")
        if LEFT_OUT.match(name) or "..." in inside:
            continue
        words = [" ".join(word.split()) for word in inside.split(",")]
        parts = [PARAMETER.match(word) for word in words if word != "void"]
        split = [match.groups() for match in parts if match]
        types = tuple(kind.strip() for kind, _, _ in split)
        names, arrays = tuple(own for _, own, _ in split), tuple(more for _, _, more in split)
        result.append(Row(name, types, names, arrays))
    return sorted(result, key=lambda row: (row.base, row.name))


def shape(row: Row) -> str:
    """The macro of trace_count.h that says what the call moves."""
    lower = row.base.lower()
    match row.kind:
        case "p2p":
            return _point_to_point(row, lower)
        case "collective" | "nonblocking":
            return _collective(row, lower)
        case "onesided" if row.has("target_rank", "win"):
            count = "origin_count" if row.has("origin_count") else "1"
            kind = "origin_datatype" if row.has("origin_datatype") else "datatype"
            moves = row.has(kind)
            return f"ONE_SIDED({count}, {kind}, target_rank, win)" if moves else "NOTHING"
        case "io" if row.has("count", "datatype"):
            return "GIVEN(count, datatype)"
    if lower in ("comm_free", "comm_disconnect"):
        return "COMM_GONE"
    if lower == "win_free":
        return "WIN_GONE"
    return "TYPE_GONE" if lower == "type_free" else "NOTHING"


def _point_to_point(row: Row, lower: str) -> str:
    match lower:
        case "start":
            return "STARTED(1, request)"
        case "startall":
            return "STARTED(count, array_of_requests)"
        case "psend_init":
            return "LATER(partitions * count, datatype, dest, comm, request)"
    if row.has("sendcount"):
        return "SENT(sendcount, sendtype, dest, comm)"
    if row.has("count", "datatype", "dest") and "recv_init" not in lower:
        if lower.endswith("_init"):
            return "LATER(count, datatype, dest, comm, request)"
        return "SENT(count, datatype, dest, comm)"
    if row.has("count", "datatype") and not lower.endswith("_init"):
        return "GIVEN(count, datatype)"
    return "NOT_SENT(request)" if lower.endswith("recv_init") else "NOTHING"


def _collective(row: Row, lower: str) -> str:
    """By the form of its counts. Those that are only made ready say nothing until they start."""
    if lower.endswith("_init"):
        return "NOT_SENT(request)"
    place = "NEIGHBORS" if "neighbor" in lower else "OTHERS"
    if row.has("sendtypes"):
        return f"EACH_TYPED({place}, sendbuf, sendcounts, sendtypes, recvcounts, recvtypes, comm)"
    if row.has("sendcounts", "recvcounts"):
        return f"EACH({place}, sendbuf, sendcounts, sendtype, recvcounts, recvtype, comm)"
    if row.has("sendcounts"):
        return "SCATTERED_EACH(sendcounts, sendtype, recvcount, recvtype, root, comm)"
    if row.has("sendcount", "root") and "scatter" in lower:
        return "SCATTERED(sendcount, sendtype, recvcount, recvtype, root, comm)"
    if row.has("recvcounts", "root"):
        return "GATHERED(sendbuf, sendcount, sendtype, 0, recvtype, root, comm)"
    if row.has("sendcount", "root"):
        return "GATHERED(sendbuf, sendcount, sendtype, recvcount, recvtype, root, comm)"
    if row.has("sendcount"):
        return _same_for_all(row, lower, place)
    if row.has("recvcounts"):
        return "REDUCED_EACH(recvcounts, datatype, comm)"
    if row.has("recvcount"):
        return "REDUCED_BLOCK(recvcount, datatype, comm)"
    return "GIVEN(count, datatype)" if row.has("count") else "NOTHING"


def _same_for_all(row: Row, lower: str, place: str) -> str:
    if "alltoall" in lower:
        return f"ALL({place}, sendbuf, sendcount, sendtype, recvcount, recvtype, comm)"
    if place == "NEIGHBORS":
        return "ALL(NEIGHBORS, sendbuf, sendcount, sendtype, sendcount, sendtype, comm)"
    if row.has("recvcounts"):
        return "OWN_OF(sendbuf, sendcount, sendtype, recvcounts, recvtype, comm)"
    return "OWN(sendbuf, sendcount, sendtype, recvcount, recvtype)"


def before(row: Row) -> str:
    """What is done first with `waits`, to tell waiting from moving."""
    lower = row.base.lower()
    blocking = not (lower.startswith(("i", "neighbor_")) or lower.endswith("_init"))
    if row.kind == "collective" and blocking and lower != "barrier":
        return "AWAIT_ALL(comm)"
    return "AWAIT_MESSAGE(source, tag, comm)" if lower == "recv" else "AT_ONCE"


def line(row: Row) -> str:
    """The row as C: name, parameters, arguments, what comes before, what is counted."""
    parameters = ", ".join(
        f"{kind}{'' if kind.endswith('*') else ' '}{name}{array}"
        for kind, name, array in zip(row.types, row.names, row.arrays, strict=True)
    )
    word = "CALL" if row.name == row.base else "LARGE"
    text = (
        f"{word}({row.base}, ({parameters or 'void'}), ({', '.join(row.names)}), "
        f"{before(row)}, {shape(row)})"
    )
    out, current = [], ""
    for part in text.split(" "):
        if current and len(current) + len(part) + 1 > 98:
            out.append(current)
            current = "     " + part
        else:
            current = f"{current} {part}" if current else part
    return "\n".join([*out, current]) + "\n"


def tables(header: Path) -> dict[str, str]:
    """The text of each file, by its name."""
    every = rows(header)
    taken = {row.name for row in every if row.name == row.base}
    texts = {}
    for kind in ("p2p", "collective", "nonblocking", "onesided", "io", "objects"):
        own = [r for r in every if r.kind == kind and r.base in taken]
        texts[f"calls_{kind}.h"] = HEAD + "".join(map(line, own))
    return texts


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mpich", type=Path, help="prefix of an MPICH 5 (default: fetch)")
    prefix = parser.parse_args().mpich or fetch.fetch_mpi(Family.MPICH)
    for name, text in tables(prefix / "include" / "mpi_proto.h").items():
        (SOURCES / name).write_text(text, encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
