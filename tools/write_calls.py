"""Write native/calls/calls.h and recorded.h when the C programs are built: MPI's C functions as
rows, of which the trace library makes wrappers.

The prototypes are those of MPICH's mpi_proto.h, which has all of MPI 4 with the standard's names
of arguments. What a call says of its data is derived from these names (`shape`).
"""

from __future__ import annotations

import re
import sys
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

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
KINDS = ("collective", "io", "nonblocking", "objects", "onesided", "p2p")
HEAD = "/* Made by tools/write_calls.py of MPICH's mpi_proto.h: not to be edited. */\n"
CALLS = """\
/* The functions of MPI that are traced, as rows: CALL(name, parameters, arguments, what comes
 * before with `waits`, what it moves), and LARGE for the form of a CALL with counts of MPI_Count.
 * Included where both are defined, as often as they are needed: there is no guard. */
"""
RECORDED = """\
/* How each routine is recorded: its FIELDS (record_file.h), what writes them before the call (IN)
 * and after it (OUT). Included once. */
"""
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
        """What kind of call it is, one of KINDS."""
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
    """The macro of trace/count.h that says what the call moves."""
    lower = row.base.lower()
    match row.kind:
        case "p2p":
            return _point_to_point(row, lower)
        case "collective" | "nonblocking":
            return _collective(row, lower)
        case "onesided" if row.has("target_rank", "win"):
            count = "origin_count" if row.has("origin_count") else "1"
            kind = "origin_datatype" if row.has("origin_datatype") else "datatype"
            moved = f"{count}, {kind}, target_rank, win"
            if row.has("result_count"):
                return f"FETCHED({moved}, op, result_count, result_datatype)"
            return f"ONE_SIDED({moved})" if row.has(kind) else "NOTHING"
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
    if row.has("count", "datatype", "source") and not lower.endswith("_init"):
        return "OFFERED(count, datatype, source)"
    if row.has("count", "datatype", "message"):
        return "TAKEN_MESSAGE(count, datatype)"
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
        return "GATHERED_EACH(sendbuf, sendcount, sendtype, recvcounts, recvtype, root, comm)"
    if row.has("sendcount", "root"):
        return "GATHERED(sendbuf, sendcount, sendtype, recvcount, recvtype, root, comm)"
    if row.has("sendcount"):
        return _same_for_all(row, lower, place)
    if row.has("recvcounts"):
        return "REDUCED_EACH(recvcounts, datatype, comm)"
    if row.has("recvcount"):
        return "REDUCED_BLOCK(recvcount, datatype, comm)"
    moved = "OFFERED(count, datatype, root)" if row.has("root") else "GIVEN(count, datatype)"
    return moved if row.has("count") else "NOTHING"


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
    waits = row.kind == "collective" and blocking and lower != "barrier"
    return str(FACTS["before"].get(lower, "AWAIT_ALL(comm)" if waits else "AT_ONCE"))


def line(row: Row) -> str:
    """The row as C: name, parameters, arguments, what comes before, what is counted."""
    parameters = ", ".join(
        f"{kind}{'' if kind.endswith('*') else ' '}{name}{array}"
        for kind, name, array in zip(row.types, row.names, row.arrays, strict=True)
    )
    word = "CALL" if row.name == row.base else "LARGE"
    text = (
        f"{word}({row.base}, ({parameters or 'void'}), ({', '.join(row.names)}), "
        f"{before(row)}, {shape(row)}, {'KEPT' if fields(row)[0] else 'LOST'})"
    )
    lines = textwrap.TextWrapper(98, subsequent_indent="     ", break_long_words=False)
    lines.break_on_hyphens = False
    return lines.fill(text) + "\n"


# ------------------------------------------------------------------ what a record keeps

# Nothing but what they give a program comes of these.
LOCAL = re.compile(
    r"Alloc_mem|Free_mem|Cart_(coords|get|map|rank|shift)|Cartdim|Close_port|Open_port|Comm_compare|"
    r"\w*(attr|keyval|(?<!with)_info|_name|_buffer|errhandler)$|Comm_(get_parent|rank|size|remote_size|"
    r"test_inter|join|accept|connect|spawn|spawn_multiple)|Dims_create|Dist_graph_neighbors|"
    r"Errhandler_free|Get_(address|count|elements|version|library|processor|hw)|Graph_(get|map|neighbors)|Graphdims|Group_(compare|rank|size|translate)|"
    r"Op_commutative|Pack|Unpack|Reduce_local|Session_|Test_cancelled|Topo_test|Type_(get|size|"
    r"match)|File_|Buffer_|Grequest|Request_get|Win_(shared_query|sync|test|attach|"
    r"detach|create_dynamic)|Query_thread|Lookup|Publish|Unpublish|Parrived|Status|"
    r"Group_from_session|Intercomm_create_from|Comm_create_from"
)
LETTERS = {
    "MPI_Datatype": "t", "MPI_Comm": "c", "MPI_Group": "g", "MPI_Op": "o", "MPI_Win": "w",
}  # fmt: skip
CLASSES = {"t": "TYPE", "c": "COMM", "g": "GROUP", "o": "OP", "w": "WIN"}
MADE = {"MPI_Datatype": "A", "MPI_Group": "B", "MPI_Op": "D", "MPI_Win": "E", "MPI_Message": "G",
        "MPI_Request": "H"}  # fmt: skip
MADE_CLASSES = {"A": "TYPE", "B": "GROUP", "D": "OP", "E": "WIN", "G": "MESSAGE", "H": "REQUEST"}
RANKS = ("dest", "source", "root", "target_rank")
TAGS = ("tag", "sendtag", "recvtag")
IGNORED = ("MPI_Info", "MPI_Errhandler", "MPI_User_function *", "void *baseptr")
FACTS = tomllib.loads((ROOT / "tools" / "calls.toml").read_text(encoding="utf-8"))


def length_of(row: Row, name: str) -> str:
    """How many items an array has, as C."""
    lower = row.base.lower()
    near = "true" if "neighbor" in lower else "false"
    if name in ("sources", "destinations") and "adjacent" in lower:
        return "indegree" if name == "sources" else "outdegree"
    if name in ("sources", "destinations"):
        return "n" if name == "sources" else "sum_of(degrees, n)"
    if name.startswith(("send", "recv", "sdispls", "rdispls", "displs")):
        out = "true" if name in ("sendcounts", "sdispls", "sendtypes") else "false"
        scattered = "reduce_scatter" in lower
        blocks = "parts_of(comm)" if scattered else f"blocks_of(comm, {near}, {out})"
        if row.has("root"):
            return f"is_root(comm, root) ? {blocks} : 0"
        own = out == "true" and near == "false"
        return f"sendbuf == MPI_IN_PLACE ? 0 : {blocks}" if own else blocks
    return str(FACTS["lengths"][name])


def fields(row: Row) -> tuple[str, list[str], list[str]]:
    """The letters of a routine's fields (record_file.h), and what writes them before and after."""
    letters: list[str] = []
    ins: list[str] = []
    outs: list[str] = []
    if LOCAL.match(row.base) or row.base == "Abort":
        return "", ins, outs
    for kind, name, array in zip(row.types, row.names, row.arrays, strict=True):
        base = kind.replace("const", "").strip()
        plain = base.removesuffix("*").strip()
        if kind.startswith("MPI_Status") or base == "MPI_Status *":
            continue
        if base in IGNORED or name in ("baseptr", "weights", "sourceweights", "destweights"):
            continue
        if base == "void *":
            letters.append("a")
            ins.append(f"put_address({name});")
        elif array and plain == "MPI_Request":
            letters.append("Q")
            many = "incount" if row.has("incount") else "count"
            put = "PUT_REQUESTS" if row.base == "Startall" else "PUT_PENDING"
            ins.append(f"{put}({many}, {name});")
        elif array and plain == "MPI_Datatype":
            letters.append("T")
            ins.append(f"PUT_TYPES({name}, {length_of(row, name)});")
        elif array and name != "array_of_indices":
            letters.append("I")
            values = f"(&{name}[0][0])" if array.count("[") == 2 else name
            ins.append(f"PUT_INTEGERS({values}, {length_of(row, name)});")
        elif kind.startswith("const char"):
            return "", [], []
        elif not base.endswith("*") and not array:
            letter, put = _scalar(plain, name, row.has("win"))
            letters.append(letter)
            ins.append(put)
    letters_out = _outputs(row, ins, outs)
    return "".join(letters) + letters_out, ins, outs


def _scalar(kind: str, name: str, window: bool) -> tuple[str, str]:
    if kind in LETTERS:
        return LETTERS[kind], f"put_known_handle({CLASSES[LETTERS[kind]]}, KEY({name}));"
    if kind == "MPI_Request":
        return "q", f"put_known_handle(REQUEST, KEY({name}));"
    if name in RANKS or (name == "rank" and window):
        return "r", f"put_rank({name});"
    return ("k", f"put_tag({name});") if name in TAGS else ("i", f"put_integer((int64_t)({name}));")


def _outputs(row: Row, ins: list[str], outs: list[str]) -> str:
    """What a call gives back, and handles that it takes for good."""
    lower, letters = row.base.lower(), ""
    pointers = {
        name: kind.replace("const", "").strip().removesuffix("*").strip()
        for kind, name, array in zip(row.types, row.names, row.arrays, strict=True)
        if kind.endswith("*") and not array
    }
    if completes := FACTS["completes"].get(lower):
        ins.extend(completes["before"])
        outs.extend(completes["after"])
        return str(completes["letters"])
    for name, kind in pointers.items():
        if kind == "MPI_Comm" and lower in ("comm_free", "comm_disconnect"):
            ins.append(f"put_last(COMM, KEY(*{name}));")
            letters += "c"
        elif (kind in LETTERS and lower.endswith("_free")) or lower == "request_free":
            letter = "q" if lower == "request_free" else LETTERS[kind]
            ins.append(f"put_last({ {**CLASSES, 'q': 'REQUEST'}[letter] }, KEY(*{name}));")
            letters += letter
        elif lower == "type_commit":
            ins.append(f"put_known_handle(TYPE, KEY(*{name}));")
            letters += "t"
        elif kind == "MPI_Message" and "mrecv" in lower:
            ins.append(f"put_last(MESSAGE, KEY(*{name}));")
            letters += "m"
        elif lower == "cancel":
            ins.append(f"put_cancelled(KEY(*{name}));")
            letters += "q"
        elif lower == "start":
            ins.append(f"put_known_handle(REQUEST, KEY(*{name}));")
            letters += "q"
        elif kind == "MPI_Comm":
            outs.append(f"put_new_comm(*{name}, IS_NO_COMM(*{name}));")
            letters += "C"
        elif kind in MADE:
            letter = MADE[kind]
            outs.append(f"put_new({MADE_CLASSES[letter]}, KEY(*{name}));")
            letters += letter
    if "mprobe" in lower or "improbe" in lower or lower in (
        "probe", "iprobe", "recv", "sendrecv", "sendrecv_replace"
    ):  # fmt: skip
        ins.append("OWN_STATUS(status);")
        outs.append("put_matched(status);")
        if row.has("flag"):
            outs[:] = ["event.poll = !*flag;", "if (!event.poll) {", *outs, "}"]
        letters += "z"
    return letters


def recorded(own: list[Row]) -> str:
    """For each routine that is recorded, three macros."""
    text = ""
    for row in own:
        letters, ins, outs = fields(row)
        if row.name != row.base or not letters:
            continue
        if row.kind in ("collective", "nonblocking") and row.has("comm"):
            outs.append("count_collective(comm);")
        text += _macro(f"FIELDS_{row.name}", [f'"{letters}"'])
        text += _macro(f"IN_{row.name}", ins) + _macro(f"OUT_{row.name}", outs)
    return text


def _macro(name: str, parts: list[str]) -> str:
    one = " ".join([f"#define {name}", *parts])
    if len(one) <= 98:
        return one + "\n"
    out = [f"#define {name}"]
    for part in parts:
        if len(out) > 1 and len(out[-1]) + len(part) < 94:
            out[-1] += f" {part}"
        else:
            out.append(f"    {part}")
    return " \\\n".join(out) + "\n"


def calls(own: list[Row], known: set[str]) -> str:
    """The rows of one kind. What Open MPI lacks stands apart: a module whose reference to it is
    weak, as mpi4py's, finds what is preloaded, and calls it."""
    lacking = [line(row) for row in own if row.name not in known]
    apart = ["#ifndef OPEN_MPI\n", *lacking, "#endif\n"] if lacking else []
    return "".join([*(line(row) for row in own if row.name in known), *apart])


def tables(mpich: Path, openmpi: Path) -> dict[str, str]:
    """The text of each file, by its name, from the headers in two folders."""
    every = rows(mpich / "mpi_proto.h")
    known = set(re.findall(r"\bMPI_(\w+)\s*\(", (openmpi / "mpi.h").read_text(encoding="utf-8")))
    taken = {row.name for row in every if row.name == row.base}
    kinds = [[r for r in every if r.kind == kind and r.base in taken] for kind in KINDS]
    return {
        "calls.h": HEAD + CALLS + "".join(calls(own, known) for own in kinds),
        "recorded.h": HEAD + RECORDED + "".join(map(recorded, kinds)),
    }


def write_tables(mpich: Path, openmpi: Path) -> None:
    for name, text in tables(mpich, openmpi).items():
        (SOURCES / "calls" / name).write_text(text, encoding="ascii")
