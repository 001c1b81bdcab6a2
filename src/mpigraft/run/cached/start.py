"""The second start of a job: what the first one decided, read back and started.

Standard library only, and little of it: nothing else of mpigraft is imported unless something is
wrong. A document in the cache, found by the words of the command, the folder, the user and what
of the environment decides, holds the finished command line and what tells cheaply that all it was
made from is still the same. Any doubt is no document, and the slow way is taken.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence

from mpigraft import __version__
from mpigraft.core.fingerprint import boot_id, file_fingerprint, network_namespace
from mpigraft.core.process import end_stdin, serve_stdin
from mpigraft.run import DONE, END, GO_ON, new_folder, run_attached

TYPE_CHECKING = False  # typing itself takes five milliseconds
if TYPE_CHECKING:
    from typing import Any

    Document = dict[str, Any]
    # Key of the document, folder of records, did the job not fail by itself: is it wrong?
    Judge = Callable[[str, str, bool], bool]
    # Folder of records, exit code: called when the job has ended, before they are removed
    Collect = Callable[[str, int], None]

FORMAT = 4
RECORDS = "mpigraft-0-records"  # stands in documents for the name of one job's folder of records
MAX_DOCUMENT = 16 * 1024 * 1024  # bytes
SEARCH = "LD_LIBRARY_PATH"
RAW = "surrogateescape"  # names of files are bytes
# Variables that decide how a job is started; what else a user has only passes through.
DECIDES = (
    "PATH", "HOME", "XDG_", "TMPDIR", "LD_", "MPIGRAFT_", "OMP_NUM_THREADS", "MODULEPATH",
    "LOADEDMODULES", "LMOD_", "_LMFILES_", "CRAY", "PE_", "SPACK_", "EB", "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "OMPI_", "OPAL_", "PRTE_", "PMI", "MPI", "I_MPI_", "FI_", "UCX_", "HYD", "MVP_", "PSM2_",
    "PSM3_", "IBV_", "RDMAV_", "PYTHON",
    "APPTAINER", "SINGULARITY", "PODMAN", "CONTAINER", "CH_",
)  # fmt: skip
NODES = ("SLURM_JOB_NODELIST", "SLURM_JOB_CPUS_PER_NODE", "PBS_JOBID", "FLUX_URI")  # allocation
# Of others the name decides, since engines are told what passes; but not of these.
COME_AND_GO = ("SLURM", "PBS_", "FLUX_", "PALS_", "SSH_", "OLDPWD", "SHLVL", "_", "TERM", "COLUMNS")
PARTS = frozenset(("argv", "parent", "home", "drop", "set", "ranks", "nodes", "libmpi",
                   "libmpi_name", "mark", "networks", "network_name", "proof", "placed", "files",
                   "stamps", "copies", "listed", "stdin"))  # fmt: skip
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)  # of foreign JSON


def start_key(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """SHA-256, hex, of all that decides about a job and is in no file."""
    umask = os.umask(0o022)  # podman is told of it
    os.umask(umask)
    asked = {
        "format": FORMAT,
        "tool": __version__,
        "words": list(words),
        "cwd": os.getcwd(),  # noqa: PTH109
        "user": [os.geteuid(), os.getegid(), umask],
        "cores": sorted(os.sched_getaffinity(0)),
        "boot": boot_id(),
        "network": network_namespace(),
        "environment": sorted((n, v) for n, v in environ.items() if _decides(n)),
        "nodes": [environ.get(name) for name in NODES],
        "names": sorted(n for n in environ if not n.startswith(COME_AND_GO)),
    }
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


def _decides(name: str) -> bool:
    """A `...PATH` goes into a guest or not by where its entries lead."""
    return name.startswith(DECIDES) or name.endswith("PATH")


# ------------------------------------------------------------------ documents


def folder(environ: Mapping[str, str]) -> str:
    """Where the documents lie: cache.folders().cache / "run"; empty where there is none."""
    if home := environ.get("MPIGRAFT_HOME"):
        return os.path.join(os.path.abspath(home), "cache", "run")  # noqa: PTH100, PTH118
    base = environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        home = os.path.expanduser("~")  # noqa: PTH111
        base = f"{home}/.cache" if home.startswith("/") else ""
    return f"{base}/mpigraft/run" if base else ""


def kept(name: str, environ: Mapping[str, str]) -> Document | None:
    """The document of that key, if all it was made from is as it was.

    It says what is executed: one that another user wrote, or could write, is none.
    """
    document = _read(f"{folder(environ)}/{name}.json", MAX_DOCUMENT)
    if not isinstance(document, dict) or document.get("key") != name or PARTS - document.keys():
        return None
    try:
        same = all(file_fingerprint(path) == [*rest] for path, *rest in document["stamps"])
        same = same and all(copy_stamp(path) == [*rest] for path, *rest in document["copies"])
        same = same and all(listed(*row) == names for *row, names in document["listed"])
    except (KeyError, TypeError, ValueError):
        return None
    return document if same else None


def keep_start(document: Document, environ: Mapping[str, str]) -> None:
    """Remember a document, whole or not at all. A cache is a convenience: nobody is told when it
    cannot be written."""
    place = folder(environ)
    begun = f"{place}/.{document['key']}.{os.getpid()}"
    with contextlib.suppress(OSError):
        os.makedirs(place, mode=0o700, exist_ok=True)  # noqa: PTH103
        handle = os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            json.dump(document, file)
        os.rename(begun, f"{place}/{document['key']}.json")  # noqa: PTH104
        return
    _unlink([begun])  # half of it, where a disk is full


def forget(name: str, environ: Mapping[str, str]) -> None:
    """Remove the document of that key: the next start decides anew."""
    _unlink([f"{folder(environ)}/{name}.json"])


def _read(path: str, most: int) -> Any:
    """The JSON in a regular file of this user that nobody else may write; None: there is none."""
    handle = _regular(path, most)
    try:
        with os.fdopen(handle, "rb") as file:
            return json.loads(file.read())
    except (OSError, ValueError, RecursionError):  # ValueError of a handle below zero too
        return None


def _regular(path: str, most: int = MAX_DOCUMENT) -> int:
    """A handle on a regular file of this user that nobody else may write; -1: there is none."""
    handle = -1
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        status = os.fstat(handle)
        private = status.st_uid == os.geteuid() and not status.st_mode & 0o022
        if stat.S_ISREG(status.st_mode) and private and status.st_size <= most:
            return handle
        os.close(handle)
    return -1


def copy_stamp(path: str) -> list[int]:
    """Fingerprint a copy in a graft folder by its mtime: ctime changes with each plan that takes or
    gives back its share in the copy, and nobody but mpigraft writes to it."""
    return file_fingerprint(path, "st_mtime_ns")


def listed(place: str, begin: str, end: str) -> list[str]:
    """Names in a folder that begin and end so: files that are looked for by a pattern."""
    try:
        names = os.listdir(place)  # noqa: PTH208
    except OSError:
        return []
    return sorted(n for n in names if n.startswith(begin) and n.endswith(end))


# ------------------------------------------------------------------ starting


def start_kept(words: Sequence[str], environ: Mapping[str, str], judge: Judge) -> int | None:
    """Start the job of an earlier run of the same words; its exit code, or None: there is no
    such document and nothing was started."""
    try:
        document = kept(start_key(words, environ), environ)
        return None if document is None else start_job(document, environ, judge)
    except OSError:  # the folder that we stand in is gone, or there is no room for a process
        return None


def start_job(
    document: Document,
    environ: Mapping[str, str],
    judge: Judge,
    collect: Collect | None = None,
) -> int | None:
    """Start what a document says and watch its world; the exit code for the shell.

    The program's own code, if it is not 0; else 5 for a world that is not the one asked for.
    `judge` is asked whether it is, and tells why not, when the quick look leaves any doubt.
    `collect` takes what else ranks wrote, whatever became of them.
    None where records of ranks cannot be written, and nothing was started. Raises OSError when
    no process can be started.
    """
    name = new_folder(document["home"])
    if not name:
        return None
    watch = World(document, f"{document['home']}/{name}")
    feeder = 0
    try:
        argv = [word.replace(RECORDS, name) for word in document["argv"]]
        for path, text in document["files"]:  # lists of ranks and programs, for the launcher
            with open(path.replace(RECORDS, name), "x", encoding="utf-8", errors=RAW) as file:  # noqa: PTH123
                file.write(text.replace(RECORDS, name))  # they name each other
        argv[document["parent"]] = str(os.getpid())
        given = {n: v for n, v in environ.items() if n not in document["drop"]}
        feeder = serve_stdin(document["stdin"], watch.folder)
        code = run_attached(argv, given | document["set"], watch.look)
        if collect:
            collect(watch.folder, code)
        known = watch.whole() and not document["placed"]  # CPUs and GPUs take the full judgement
        if not document["proof"] or known or (code and not watch.entered()):
            return code
        well = bool(watch.ended or not code)
        wrong = judge(document["key"], watch.folder, well)
        return (5 if well else code) if wrong else code
    finally:
        end_stdin(feeder)
        watch.remove()


class World:
    """The ranks that have told of themselves so far, read line by line as they come
    (native/record.h says what is in a line).

    It passes only what the full judgement (witness.check_witness) would pass, and leaves the
    rest to that. Each node's file is opened once, and each of its bytes is read once.
    """

    def __init__(self, document: Document, place: str) -> None:
        self.folder = place
        self.ranks: int = document["ranks"]
        self.nodes: int = document["nodes"]
        self.libmpi: list[Any] = document["libmpi"]  # path, device, inode
        self.name = re.compile(document["libmpi_name"])
        self.mark: str = document["mark"]  # a file of the generation of a stack
        self.networks: dict[str, list[list[int]]] = document["networks"]
        self.network = re.compile(document["network_name"])
        self.judged: bool = document["proof"]
        self.files: dict[str, tuple[int, bytearray]] = {}  # handle, the line that is not whole
        self.common: dict[tuple[str, Any], Any] = {}  # by file and digest
        self.records: list[tuple[str, Any]] = []  # file, its line as an object
        self.ended = False
        self.on_course = False  # the first that entered MPI_Init did so in the library due

    def look(self) -> int:
        """For `attached`: whether this world can still become the one that was asked for."""
        if not self.judged:
            return DONE
        if self.whole():
            return DONE
        wrong = any(self._fits(*record) is False for record in self.records)
        self.ended = wrong or self._astray()
        return END if self.ended else GO_ON

    def entered(self) -> bool:
        """Whether any rank came as far as MPI_Init."""
        return bool(self.records or listed(self.folder, "", ".entered"))

    def _astray(self) -> bool:
        """Whether one of the first that entered MPI_Init did so in another library than the one
        that was due: it may never come back to say so. Of other nodes paths say it alone: their
        files have other numbers."""
        if (self.nodes > 1 and self.libmpi[2]) or self.records or self.on_course:
            return False
        entered = [own for name in listed(self.folder, "", ".entered") if (own := self._due(name))]
        self.on_course = len(entered) >= self.nodes and all(map(self._right, entered))
        return not all(map(self._right, entered))

    def _due(self, name: str) -> dict[tuple[int, int], str]:
        """The MPI libraries of the first process of a node that entered MPI_Init."""
        handle = _regular(f"{self.folder}/{name}")
        with contextlib.suppress(OSError, *UNREADABLE), os.fdopen(handle, "rb") as file:
            *lines, _ = file.read(1 << 16).split(b"\n")  # the last is not whole yet
            mapped = json.loads(next(filter(None, lines), b"0"))["libraries"]
            return {(device, inode): path for path, device, inode in mapped if self._is_mpi(path)}
        return {}

    def _is_mpi(self, path: str) -> bool:
        return bool(self.name.fullmatch(path.removesuffix(" (deleted)").rpartition("/")[2]))

    def whole(self) -> bool:
        """Whether every rank of the world asked for has told, and all is right."""
        self._read()
        good = [(file, line) for file, line in self.records if self._fits(file, line)]
        if len(good) != len(self.records) or any(rest for _, rest in self.files.values()):
            return False
        if sorted(line["rank"] for _, line in good) != list(range(self.ranks)):
            return False
        filled: dict[tuple[str, str], int] = {}
        for file, line in good:
            host = (file, self.common[file, line["map"]]["host"])
            filled[host] = filled.get(host, 0) + 1
        return len(filled) == self.nodes and len({*filled.values()}) == 1

    def _read(self) -> None:
        """Take in what has been written since the last look."""
        for name in listed(self.folder, "", ".ranks"):
            if name not in self.files:
                handle = _regular(f"{self.folder}/{name}")
                self.files[name] = (handle, bytearray() if handle >= 0 else bytearray(b"?"))
        for name, (handle, rest) in self.files.items():
            while handle >= 0 and (block := os.read(handle, 1 << 20)):
                rest.extend(block)
            *lines, unfinished = rest.split(b"\n") if handle >= 0 else [rest]
            rest[:] = unfinished
            for line in filter(None, lines):
                self._take(name, bytes(line))

    def _take(self, file: str, line: bytes) -> None:
        value: Any = None
        with contextlib.suppress(ValueError, RecursionError, TypeError):
            value = json.loads(line)
            if isinstance(value, dict) and "libraries" in value:
                self.common.setdefault((file, value.get("map")), value)
        self.records.append((file, value))

    def _fits(self, file: str, line: Any) -> bool | None:
        """Whether a record can be one of that world: its size, and the one libmpi. None: what it
        has in common with others is not told yet, or it cannot be read."""
        try:
            shared = self.common.get((file, line["map"]))
            if shared is None:
                return None
            libraries = {
                (line["disks"][disk], inode): path
                for path, disk, inode in shared["libraries"]
                if self._is_mpi(path)
            }
            right = self._right(libraries)
            whole = type(line["rank"]) is int and isinstance(shared["host"], str)
            if not (whole and shared["size"] == self.ranks and self._marked(shared["libraries"])):
                return False
            if right and not self._networks_right(line["disks"], shared["libraries"]):
                return None  # the full judgement tells which
            return right or (None if self.nodes > 1 and self.libmpi[2] else False)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            return None

    def _right(self, libraries: dict[tuple[int, int], str]) -> bool:
        """Whether the MPI libraries of a rank are the one that was asked for. A file server's disk
        has another number on each node; what other nodes have on disks of their own, the full
        judgement decides."""
        path, device, inode = self.libmpi
        if not inode:
            return [*libraries.values()] == [path]
        if self.nodes > 1:
            return [number for _, number in libraries] == [inode]
        return [*libraries] == [(device, inode)]

    def _marked(self, libraries: list[Any]) -> bool:
        """Whether a rank has the generation of this node, and not another of the same number."""
        return not self.mark or any(path.endswith(f"/{self.mark}") for path, _, _ in libraries)

    def _networks_right(self, disks: list[int], libraries: list[Any]) -> bool:
        """Whether of each network library that was due a rank mapped that one, if any."""
        matching: dict[str, bool] = {}
        for path, disk, inode in libraries:
            file = path.removesuffix(" (deleted)").rpartition("/")[2]
            hit = self.network.fullmatch(file) if "lib" in file else None
            if hit and (due := self.networks.get(hit[1])):
                many = self.nodes > 1  # a file server's disk has another number on each
                same = inode in [row[1] for row in due] if many else [disks[disk], inode] in due
                matching[hit[1]] = matching.get(hit[1], False) or same
        return all(matching.values())

    def remove(self) -> None:
        """Remove the records and their folder."""
        for handle, _ in self.files.values():
            if handle >= 0:
                os.close(handle)
        _unlink(f"{self.folder}/{name}" for name in listed(self.folder, "", ""))
        with contextlib.suppress(OSError):
            os.rmdir(self.folder)  # noqa: PTH106


def _unlink(paths: Iterable[str]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108
