"""What is kept of a job, so that its next start needs neither plan nor proof.

`document` is the finished command line as `fast` keeps and starts it, with the stamps of all that
it was made from; `findings` judges the world of a job that was started from one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mpigraft import bindings, cache, fast, grafts, init_failures, starter
from mpigraft.config_files import config_files
from mpigraft.elf import ElfError
from mpigraft.job import Job, prepare, records_home, surroundings
from mpigraft.jsonout import plain, revive
from mpigraft.model import (
    NOWHERE,
    Configuration,
    Finding,
    Layout,
    Level,
    MappedLibrary,
    Placement,
)
from mpigraft.network_libraries import NETWORK, due_networks
from mpigraft.records import read_witness
from mpigraft.resolve import closure
from mpigraft.used_files import image_lists, plugin_folders, used_files
from mpigraft.witness import LIBMPI, check_witness, due_library

KIND = "job"  # of documents that say what a kept job was to be
UNKNOWN = Finding(
    Level.ERROR,
    "job-unknown",
    "what this job was to be is not known any more",
    "the cache was cleaned meanwhile, or another version of mpigraft wrote to it",
    "start it again: all is decided anew",
)


def document(
    job: Job, key: str, environ: Mapping[str, str], inputs: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The job as `fast` keeps and starts it; what it was to be is kept beside it. `inputs` are
    what `watched` gave before the proof."""
    home = records_home(job, environ)
    made = prepare(job, Path(home) / fast.RECORDS, job.ask.stdin)
    given, decided = dict(made.env), dict(made.decided)
    due = due_library(job.configuration)
    what = {
        "configuration": job.configuration,
        "layout": job.layout,
        "placement": job.placement,
        "hosts": () if job.allocation.here else job.allocation.hosts,
    }
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
        "libmpi": [due.path, due.device, due.inode]
        if isinstance(due, MappedLibrary)
        else ["", 0, 0],
        "libmpi_name": LIBMPI.pattern,
        "networks": {
            name: [[one.device, one.inode] for one in own]
            for name, own in due_networks(job.configuration).items()
        },
        "network_name": NETWORK.pattern,
        "proof": job.ask.proof,
        "placed": job.placement != NOWHERE,
        "stdin": _stdin(job),
        "files": [[str(path), text] for path, text in made.files],
        **(watched(job) if inputs is None else inputs),
    }


def _stdin(job: Job) -> list[str]:
    """The words of standard_input.serve."""
    reach = "near" if job.allocation.here else "far"
    return [str(job.natives.stdin), job.ask.stdin, str(job.layout.ranks), reach]


def may_be_kept(job: Job) -> bool:
    """Whether the command line is the same next time: a witness whose path LD_PRELOAD cannot
    take is copied into a folder of this process. Nor is a proof kept that has to come again."""
    transport = job.configuration.transport
    proven = job.ask.proof and bool(transport and transport.name)
    again = proven and not starter.lasting(job.allocation)
    return not again and not re.search(r"[\s:]", str(job.natives.witness))


def watched(job: Job) -> dict[str, list[list[Any]]]:
    """Stamps of all files that the decisions and the proof rest on, there or not, and the names in
    folders of which every file counts. Take them before the proof: what changes while a probe
    runs has not been proven."""
    config = config_files(job.configuration, surroundings(job))
    found = [Path(__file__), job.ask.site, Path(job.ask.where.hostfile), job.natives.stdin]
    found += map(Path, (*job.passed.absent, *job.sources))
    graft = job.configuration.graft
    found += used_files(job.configuration, job.natives)
    found += image_lists(graft)
    found += [grafts.folder(graft) / grafts.PLAN] if graft else []
    if job.program is not None:
        found += [job.program, *_mapped(job)]
    paths = {str(path) for path in found if path and path != Path()}
    asks = [(folder, "", "") for folder in config.folders]
    mpi = job.configuration.mpi
    if graft is None and mpi is not None:  # a graft is made of what was there
        asks += plugin_folders(mpi)
    folder = grafts.folder(graft) if graft else Path()
    copies = {str(folder / copy.name) for copy in (graft.copies if graft else ())}
    copies = (copies & paths) - {*config.paths, *config.present}
    paths |= {*config.paths, *config.present}
    return {
        "stamps": [[path, *fast.stamp(path)] for path in sorted(paths - copies)],
        "copies": [[path, *fast.copy_stamp(path)] for path in sorted(copies)],
        "listed": [[*ask, fast.listed(*ask)] for ask in asks],
    }


def _mapped(job: Job) -> list[Path]:
    assert job.program is not None
    try:
        found = closure(job.program, environment=dict(job.passed.environment))
    except ElfError:
        return []
    return [one.path for one in found if one.path]


def findings(key: str, folder: Path, *, well: bool = True) -> tuple[Finding, ...]:
    """What is wrong with the world of a job that was kept under `key`, by the records that its
    ranks left in `folder`: errors, and where ranks are not on the CPUs that were asked for. `well`:
    the job did not fail by itself."""
    what: Any = cache.get(KIND, key)
    try:
        configuration = revive(Configuration, what["configuration"])
        layout = revive(Layout, what["layout"])
        placement = revive(Placement, what["placement"])
        hosts = tuple(what["hosts"])
    except (TypeError, ValueError, KeyError, AttributeError):  # gone, or another version's
        fast.forget(key, os.environ)
        return (UNKNOWN,)
    ranks = read_witness(folder)
    unfinished = init_failures.explain(configuration, folder, ranks=len(ranks))
    told_why = any(f.level is Level.ERROR for f in unfinished)
    if not ranks and (told_why or not well):  # it says why there is no record
        return unfinished
    found = (
        *unfinished,
        *check_witness(configuration, layout, ranks, placement, hosts, ended=well),
    )
    told = bindings.CODES if placement != NOWHERE else ()
    return tuple(f for f in found if f.level is Level.ERROR or f.code in told)
