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
from collections.abc import Callable, Mapping, Sequence

from mpigraft.core.cpuset import cpuset_cpus
from mpigraft.core.fingerprint import boot_id, file_fingerprint, network_namespace, own_state
from mpigraft.core.lease import remove_leases, write_leases
from mpigraft.core.process import end_stdin, serve_stdin
from mpigraft.core.shared_memory import scarce_memory
from mpigraft.run.cached.world import MAX_DOCUMENT, StartedWorld, listed, open_regular, unlink_all
from mpigraft.run.foreground import run_attached
from mpigraft.run.scratch import new_folder

TYPE_CHECKING = False  # typing itself takes five milliseconds
if TYPE_CHECKING:
    from typing import Any

    Document = dict[str, Any]
    # Key of the document, folder of records, exit code if the job failed by itself: is it wrong?
    Judge = Callable[[str, str, int], bool]
    # Folder of records, exit code: called when the job has ended, before they are removed
    Collect = Callable[[str, int], None]

FORMAT = 6
START = ".json"  # ends the names of documents
RECORDS = "mpigraft-0-records"  # in documents: the name of one job's folder of records
REFUSED = ".refused"  # ends the names of notes of refused calls, which evidence.world reads
SEARCH = "LD_LIBRARY_PATH"
RAW = "surrogateescape"  # names of files are bytes
NOT_STARTED = 126  # podman's code where it may not raise limits
INTERRUPTED = (129, 130, 131, 143)  # SIGHUP, SIGINT, SIGQUIT, SIGTERM: somebody ended the job
KILLED = (
    9,
    137,
    255,
)  # of launchers: SIGKILL ended a rank, as the kernel does that runs out of memory
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
# The names of others decide, since engines get a list of what passes; not those of these.
COME_AND_GO = ("SLURM", "PBS_", "FLUX_", "PALS_", "SSH_", "OLDPWD", "SHLVL", "_", "TERM", "COLUMNS")
PARTS = frozenset(("argv", "parent", "home", "drop", "set", "ranks", "nodes", "libmpi",
                   "libmpi_name", "mark", "networks", "network_name", "proof", "placed", "files",
                   "stamps", "copies", "listed", "stdin", "leases"))  # fmt: skip


def start_key(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """SHA-256, hex, of all that decides about a job and is in no file."""
    umask = os.umask(0o022)  # podman gets it
    os.umask(umask)
    asked = {
        "format": FORMAT,
        "tool": own_state(),
        "words": list(words),
        "cwd": os.getcwd(),  # noqa: PTH109
        "user": [os.geteuid(), os.getegid(), umask],
        "cores": [sorted(os.sched_getaffinity(0)), cpuset_cpus()],
        "boot": boot_id(),
        "network": network_namespace(),
        "environment": sorted((n, v) for n, v in environ.items() if _decides(n)),
        "nodes": [environ.get(name) for name in NODES],
        "names": sorted(n for n in environ if not n.startswith(COME_AND_GO)),
    }
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


def _decides(name: str) -> bool:
    """Return a `...PATH` goes into a guest or not by where its entries lead."""
    return name.startswith(DECIDES) or name.endswith("PATH")


# ------------------------------------------------------------------ documents


def folder(environ: Mapping[str, str]) -> str:
    """Return the documents' folder: cache.folders().cache / "run"; empty where there is none."""
    if home := environ.get("MPIGRAFT_HOME"):
        return os.path.join(os.path.abspath(home), "cache", "run")  # noqa: PTH100, PTH118
    base = environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        home = os.path.expanduser("~")  # noqa: PTH111
        base = f"{home}/.cache" if home.startswith("/") else ""
    return f"{base}/mpigraft/run" if base else ""


def kept(name: str, environ: Mapping[str, str]) -> Document | None:
    """Return the document of that key, if all it was made from is as it was.

    It says what is executed: one that another user wrote, or could write, is none.
    """
    document = read_private(f"{folder(environ)}/{name}{START}", MAX_DOCUMENT)
    if not isinstance(document, dict) or document.get("key") != name or PARTS - document.keys():
        return None
    try:
        same = all(file_fingerprint(path) == [*rest] for path, *rest in document["stamps"])
        same = same and all(copy_stamp(path) == [*rest] for path, *rest in document["copies"])
        same = same and all(listed(*row) == names for *row, names in document["listed"])
        flags = [os.statvfs(place).f_flag for place in document["executed"]]
    except (KeyError, TypeError, ValueError, OSError):
        return None
    # Mounted noexec since then: the slow way says so, where ranks would end with 126.
    return document if same and not any(flag & os.ST_NOEXEC for flag in flags) else None


def keep_start(document: Document, environ: Mapping[str, str], suffix: str = START) -> None:
    """Keep a document, whole or not at all. A cache is a convenience: a failure to write it is
    silent."""
    from pathlib import Path

    from mpigraft.core.write import make_folder, write_whole

    place = Path(folder(environ))
    with contextlib.suppress(OSError):
        make_folder(place, 0o700)
        data = json.dumps(document).encode()
        write_whole(place / f"{document['key']}{suffix}", data, 0o600, links=False, durable=False)


def forget(name: str, environ: Mapping[str, str]) -> None:
    """Remove the document of that key: the next start decides anew."""
    unlink_all([f"{folder(environ)}/{name}{START}"])


def read_private(path: str, most: int) -> Any:
    """Return the JSON in a regular file of this user that nobody else may write; None: there is
    none."""
    handle = open_regular(path, most)
    try:
        with os.fdopen(handle, "rb") as file:
            return json.loads(file.read())
    except (OSError, ValueError, RecursionError):  # ValueError of a handle below zero too
        return None


def copy_stamp(path: str) -> list[int]:
    """Fingerprint a copy in a graft folder by its mtime: ctime changes with each plan that takes or
    gives back its share in the copy, and nobody but mpigraft writes to it."""
    return file_fingerprint(path, "st_mtime_ns")


# ------------------------------------------------------------------ starting


def start_kept(words: Sequence[str], environ: Mapping[str, str], judge: Judge) -> int | None:
    """Start the job of an earlier run of the same words; its exit code, or None: there is no
    such document and nothing was started."""
    try:
        document = kept(start_key(words, environ), environ)
        return None if document is None else start_job(document, environ, judge)
    except OSError:  # the working folder is gone, or there is no room for a process
        return None


def start_job(
    document: Document,
    environ: Mapping[str, str],
    judge: Judge,
    collect: Collect | None = None,
) -> int | None:
    """Start what a document says, watch its world, and return the exit code for the shell.

    4 where the witness refused a call of MPI_Comm_spawn, or a node keeps ranks from starting. Else
    the program's own code, if it is not 0; else 5 for a world that is not the one asked for.
    When the quick check leaves any doubt, `judge` answers whether it is, and prints why not.
    `collect` takes what else ranks wrote, also after a failure.
    None where records of ranks cannot be written, and nothing was started. Raises OSError when
    no process can be started.
    """
    name = new_folder(document["home"])
    if not name:
        return None
    watch, stall, feeder = StartedWorld(document, f"{document['home']}/{name}"), None, 0
    if watch.nodes > 1:
        from mpigraft.run.cached.stall import Stall

        stall = Stall(document, watch.look)
    leases = write_leases(document["leases"], environ)
    try:
        argv = [word.replace(RECORDS, name) for word in document["argv"]]
        for path, text in document["files"]:  # lists of ranks and programs, for the launcher
            with open(path.replace(RECORDS, name), "x", encoding="utf-8", errors=RAW) as file:  # noqa: PTH123
                file.write(text.replace(RECORDS, name))  # they name each other
        argv[document["parent"]] = str(os.getpid())
        given = {n: v for n, v in environ.items() if n not in document["drop"]}
        feeder = serve_stdin(document["stdin"], watch.folder)
        code = run_attached(argv, given | document["set"], stall.look if stall else watch.look)
        try:
            return _judged(document, watch, code, judge, fatal=bool(stall and stall.fatal))
        finally:
            if collect:  # its output comes after what was wrong with the ranks
                collect(watch.folder, code)
    finally:
        if stall:
            stall.end()
        end_stdin(feeder)
        remove_leases(leases)
        watch.remove()


def _judged(
    document: Document, watch: StartedWorld, code: int, judge: Judge, *, fatal: bool
) -> int:
    """Return the exit code of a job whose program ended with `code`; `fatal`: it was ended, since a
    node keeps it from running."""
    # CPUs and GPUs take the full judgement, and so does a job that may have died of memory or of a
    # second program that a rank ran.
    whole = watch.whole()
    doubt = document["placed"] or watch.unfinished() or (code and scarce_memory(code))
    known = whole and not doubt and code not in KILLED
    if listed(watch.folder, "", REFUSED) or fatal:
        judge(document["key"], watch.folder, 4)
        return 4
    # Of several nodes one may lack the MPI; whoever ended the job knows why.
    far = watch.nodes > 1 and code not in INTERRUPTED
    silent = code not in (0, NOT_STARTED) and not watch.entered() and not far
    if not document["proof"] or known or silent:
        return code
    well = bool(watch.ended or not code)
    wrong = judge(document["key"], watch.folder, 0 if well else code)
    return (5 if well else code) if wrong else code
