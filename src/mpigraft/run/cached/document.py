"""What is kept of a job, so that its next start needs neither plan nor proof.

`document` is the finished command line as `fast` keeps and starts it, with the stamps of all that
it was made from; `findings` judges the world of a job that was started from one.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from mpigraft.binary import ElfError, closure
from mpigraft.core import cache
from mpigraft.core.cpuset import is_confined
from mpigraft.core.env import GUEST_PATH
from mpigraft.core.fingerprint import file_fingerprint
from mpigraft.core.model import (
    NOWHERE,
    Allocation,
    Configuration,
    Finding,
    GuestKind,
    Layout,
    Level,
    Placement,
)
from mpigraft.core.serialize import plain, revive
from mpigraft.evidence import (
    BINDING_CODES,
    LIBMPI,
    NETWORK_LIBRARY,
    check_witness,
    due_library,
    due_mark,
    due_networks,
    explain_failure,
    explain_start,
    image_lists,
    mpi_config_files,
    outlives_job,
    plugin_folders,
    read_witness,
    used_files,
    used_up_memory,
)
from mpigraft.graft import PLAN_FILE, due_leases, graft_folder
from mpigraft.native import Natives
from mpigraft.run.cached import start
from mpigraft.run.cached.limits import explain_limits
from mpigraft.run.cached.world import listed
from mpigraft.run.plan import Job, job_records, prepare_job
from mpigraft.run.proof import surroundings

NAMES_OF_HOSTS = Path("/etc/hosts")
KIND = "job"  # of documents that say what a kept job was to be
KeptJob = tuple[Configuration, Layout, Placement, Allocation, Natives]


def start_document(
    job: Job, key: str, environ: Mapping[str, str], inputs: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the job as `fast` keeps and starts it; what it was to be is kept beside it. `inputs`
    are what `watched` gave before the proof."""
    home = job_records(job, environ)
    made = prepare_job(job, Path(home) / start.RECORDS, job.spec.stdin)
    given, decided = dict(made.env), dict(made.decided)
    due = due_library(job.configuration)
    libmpi = "" if isinstance(due, str) else due.path
    far = not job.allocation.here
    mapped = _mapped(job, job.program) if job.program else []
    what: KeptJob = (job.configuration, job.layout, job.placement, job.allocation, job.natives)
    cache.put(KIND, key, plain(what))
    return {
        "key": key,
        "argv": list(made.argv),
        "parent": made.argv.index("--parent") + 1,
        "home": home,
        # Another job of the same nodes may have variables that this one has not, and lack others.
        "drop": sorted((environ.keys() | decided.keys()) - given.keys()),
        "set": {n: v for n, v in given.items() if n in decided or environ.get(n) != v},
        "ranks": job.layout.ranks,
        "nodes": job.layout.nodes,
        "libmpi": ["", 0, 0]
        if isinstance(due, str)
        else [due.path, due.device, due.inode, *due.elsewhere],
        "contents": list(due.contents) if far and not isinstance(due, str) else [],
        "far": far,
        "libmpi_name": LIBMPI.pattern,
        "mark": due_mark(job.configuration),
        "networks": {
            name: [[one.device, one.inode, *(one.contents if far else ())] for one in own]
            for name, own in due_networks(job.configuration).items()
        },
        "network_name": NETWORK_LIBRARY.pattern,
        "proof": job.spec.proof,
        "placed": job.placement != NOWHERE or is_confined(),
        "stdin": _stdin(job),
        "executed": _executed_folders(job),
        "files": [[str(path), text] for path, text in (*made.files, *made.children)],
        "leases": due_leases([*map(str, mapped), libmpi]),
        **(watched_files(job) if inputs is None else inputs),
    }


def _executed_folders(job: Job) -> list[str]:
    """List the folders of this machine whose files mpigraft has executed or mapped."""
    graft = job.configuration.graft
    natives = (job.natives.guard, job.natives.witness, job.natives.stdin)
    folders = {path.parent for path in natives} | ({graft_folder(graft)} if graft else set())
    return sorted(str(folder) for folder in folders if folder.is_dir())


def _stdin(job: Job) -> list[str]:
    """Return the words of standard_input.serve."""
    reach = "near" if job.allocation.here else "far"
    return [str(job.natives.stdin), job.spec.stdin, str(job.layout.ranks), reach]


def may_be_kept(job: Job) -> bool:
    """Return whether the command line is the same next time: a witness whose path LD_PRELOAD cannot
    take is copied into a folder of this process. Nor is a proof kept that has to come again, or a
    start that names a part of its job."""
    if job.allocation.component:
        return False
    proven = job.spec.proof and job.configuration.transport is not None
    again = proven and not outlives_job(job.allocation)
    return not again and not re.search(r"[\s:]", str(job.natives.witness))


def watched_files(job: Job) -> dict[str, list[list[Any]]]:
    """Return stamps of all files that the decisions and the proof rest on, there or not, and the
    names in folders whose every file counts. Take them before the proof: what changes while a
    probe runs has not been proven."""
    config = mpi_config_files(job.configuration, surroundings(job))
    files = [Path(__file__), job.spec.site, Path(job.spec.where.hostfile), job.natives.stdin]
    files += map(Path, (*job.passed.absent, *job.sources))
    setting = job.configuration.setting
    files += [Path(one.path) for one in setting.files] if setting else []
    files += [one.origin for one in job.spec.setting]
    graft = job.configuration.graft
    files += used_files(job.configuration, job.natives)
    files += image_lists(graft)
    files += [graft_folder(graft) / PLAN_FILE] if graft else []
    if job.program is not None:
        words = (one.words[0] for one in job.others)
        for program in (job.program, *(Path(shutil.which(word) or word) for word in words)):
            files += [program, *_mapped(job, program)]
    files += _path_folders(job)
    files += [NAMES_OF_HOSTS] if job.spec.where.hosts or job.spec.where.hostfile else []
    paths = {str(path) for path in files if path and path != Path()}
    folders = [(folder, "", "") for folder in config.folders]
    mpi = job.configuration.mpi
    if graft is None and mpi is not None:  # a graft is made of what was there
        folders += plugin_folders(mpi)
    folder = graft_folder(graft) if graft else Path()
    copies = {str(folder / copy.name) for copy in (graft.copies if graft else ())}
    copies = (copies & paths) - {*config.paths, *config.present}
    paths |= {*config.paths, *config.present}
    return {
        "stamps": [[path, *file_fingerprint(path)] for path in sorted(paths - copies)],
        "copies": [[path, *start.copy_stamp(path)] for path in sorted(copies)],
        "listed": [[*row, listed(*row)] for row in folders],
    }


def _path_folders(job: Job) -> Iterator[Path]:
    """List the folders of this machine in which ranks search programs by name: what is put into one
    may come before the program that was found."""
    graft = job.configuration.graft
    if graft is None or graft.guest.kind.on_host:
        yield from map(Path, filter(None, os.environ.get("PATH", os.defpath).split(":")))
        return
    given = dict(graft.guest.environment)
    given |= {name: value for name, _, value in (w.partition("=") for w in job.spec.settings)}
    bound = {here: here for here in ("/tmp", str(Path.cwd()))}  # noqa: S108
    bound |= {bind.target: bind.source for bind in job.binds}
    for entry in map(PurePosixPath, given.get("PATH", GUEST_PATH).split(":")):
        over = next((str(p) for p in (entry, *entry.parents) if str(p) in bound), "")
        if over:
            yield Path(bound[over]) / entry.relative_to(over)
        elif graft.guest.kind is GuestKind.FOLDER:
            yield Path(f"{graft.guest.source}/{entry}")


def _mapped(job: Job, program: Path) -> list[Path]:
    try:
        libraries = closure(program, environment=dict(job.passed.environment))
    except ElfError:
        return []
    return [one.path for one in libraries if one.path]


def _kept_job(key: str) -> KeptJob | None:
    """Return the plan of a kept job; None where that is gone, or another version's."""
    try:
        job: KeptJob = revive(KeptJob, cache.get(KIND, key))
    except (TypeError, ValueError, KeyError, AttributeError):
        return None
    return job


def nodes_findings(key: str) -> tuple[Finding, ...]:
    """Report what keeps the job under `key` from running on its nodes."""
    if (kept := _kept_job(key)) is None:
        return ()
    configuration, layout, _, allocation, natives = kept
    findings = explain_start(configuration, layout.nodes, natives, allocation, launch=False)
    return tuple(f for f in findings if f.level is Level.ERROR)


def launch_findings(key: str, folder: Path, *, failed: int = 0) -> tuple[Finding, ...]:
    """Return what is wrong with the world of a job that was kept under `key`, by the records that
    its ranks left in `folder`: errors, and where ranks are not on the CPUs that were asked for.
    `failed`: the exit code of a job that failed by itself."""
    if (kept := _kept_job(key)) is None:
        start.forget(key, os.environ)
        return (Finding.of("job-unknown"),)
    configuration, layout, placement, allocation, natives = kept
    well, ranks = not failed, read_witness(folder, layout.ranks)
    came = sum(r.of_launch for r in ranks)
    named: tuple[Finding, ...] = ()
    if failed and came < layout.ranks and layout.nodes > 1:
        named = explain_start(configuration, layout.nodes, natives, allocation)
    if any(f.level is Level.ERROR for f in named):  # what ranks recorded follows from it
        return named
    unfinished = (*named, *explain_failure(configuration, folder, ranks=came))
    explained = any(f.level is Level.ERROR for f in unfinished)
    if not ranks and (explained or not well):  # it says why there is no record
        return unfinished or explain_limits(configuration.graft)
    hosts = () if allocation.here else allocation.hosts
    findings = (
        *unfinished,
        *check_witness(configuration, layout, ranks, placement, hosts, ended=well),
    )
    if not well:
        findings += used_up_memory({rank.host for rank in ranks}, failed)
    placed = placement != NOWHERE or is_confined()
    shown = {"worlds-alone", "node-unlike", *(BINDING_CODES if placed else ())}
    if any(f.level is Level.ERROR for f in findings):
        shown.add("worlds-inner")
    return tuple(f for f in findings if f.level is Level.ERROR or f.code in shown)
