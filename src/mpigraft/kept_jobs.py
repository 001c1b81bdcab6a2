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

from mpigraft import bindings, cache, configure, engines, fast, grafts, launch, starter
from mpigraft.elf import ElfError
from mpigraft.job import Job, prepare, records_home
from mpigraft.jsonout import plain, revive
from mpigraft.model import (
    NOWHERE,
    Configuration,
    Finding,
    GuestKind,
    Layout,
    Level,
    MappedLibrary,
    Placement,
)
from mpigraft.records import read_witness
from mpigraft.resolve import closure
from mpigraft.steering import places_that_steer
from mpigraft.witness import LIBMPI, check_witness, due_library

KIND = "job"  # of documents that say what a kept job was to be


def document(job: Job, key: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """The job as `fast` keeps and starts it; what it was to be is kept beside it."""
    home = records_home(job, environ)
    made = prepare(job, Path(home) / fast.RECORDS)
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
        "proof": job.ask.proof,
        "placed": job.placement != NOWHERE,
        "files": [[str(path), text] for path, text in made.files],
        "stamps": [[path, *fast.stamp(path)] for path in _inputs(job)],
        "listed": [[*place, fast.listed(*place)] for place in places_that_steer(job.configuration)],
    }


def may_be_kept(job: Job) -> bool:
    """Whether the command line is the same next time: a witness whose path LD_PRELOAD cannot
    take is copied into a folder of this process. Nor is a proof kept that has to come again."""
    transport = job.configuration.transport
    proven = job.ask.proof and bool(transport and transport.name)
    again = proven and not starter.lasting(job.allocation)
    return not again and not re.search(r"[\s:]", str(job.natives.witness))


def _inputs(job: Job) -> list[str]:
    """Files that the decisions were made from."""
    mpi, graft = job.configuration.mpi, job.configuration.graft
    assert mpi is not None
    found = [job.natives.guard, Path(__file__), job.ask.site, Path(job.ask.where.hostfile)]
    found += [job.natives.seat] if job.placement.gpus else []
    found += map(Path, job.passed.absent)
    if graft:
        folder = grafts.folder(graft)
        found += [folder / copy.name for copy in graft.copies] + [folder / grafts.PLAN]
        found += [Path(one.path) for one in graft.inputs]
        found += _storage() if graft.guest.kind is GuestKind.PODMAN else []
        found += [Path(engines.find(graft.engine, os.environ)[0])]
    if mpi.source != launch.IN_GUEST:
        by = job.configuration.launcher
        found += [by.path if by else mpi.launcher, *configure.files(mpi)]
    found += [Path(one) for one in job.sources]
    if job.program is not None:
        found += [job.natives.witness, job.program, *_mapped(job)]
    return sorted({str(path) for path in found if path and path != Path()})


def _storage() -> list[Path]:
    """Files that podman writes whenever the image of a name changes."""
    names = ("overlay-images/images.json", "vfs-images/images.json")
    homes = (Path("/var/lib/containers/storage"), Path("~/.local/share/containers/storage"))
    return [home.expanduser() / name for home in homes for name in names]


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
    what = cache.get(KIND, key)
    if what is None:
        return (
            Finding(Level.ERROR, "job-unknown", "what this job was to be is not known any more"),
        )
    configuration = revive(Configuration, what["configuration"])
    layout = revive(Layout, what["layout"])
    placement = revive(Placement, what["placement"])
    hosts = tuple(what["hosts"])
    ranks = read_witness(folder)
    found = check_witness(configuration, layout, ranks, placement, hosts, ended=well)
    told = bindings.CODES if placement != NOWHERE else ()
    return tuple(f for f in found if f.level is Level.ERROR or f.code in told)
