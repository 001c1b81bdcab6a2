"""Graft plans: by hand, with labels and engine contexts; and computed for small files on disk."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from mpigraft.binary.image.opening import open_root
from mpigraft.core.model import (
    AbiObject,
    Bind,
    BindKind,
    DataFile,
    EngineContext,
    EnvRow,
    GraftPlan,
    GuestKind,
    GuestLabel,
    MpiAbi,
    Replace,
    Scope,
)
from mpigraft.graft.guest.examination import Guest
from mpigraft.graft.injection.contents import GraftContents, decide_contents
from mpigraft.graft.injection.fixpoint import GraftRequest
from mpigraft.graft.injection.plan import PlanInput, plan_folder
from mpigraft.native.programs import GPU_SELECT, RELAY, Natives
from tests.builders.elf import compiled, program
from tests.builders.guests import C_SYMBOLS, PLACE, an_abi, libc, library
from tests.builders.worlds import a_world, host, needing

LIBRARY = "/usr/lib/x86_64-linux-gnu/libmpi.so.40"
PROGRAM = "/opt/app/hello"


def label(source: str, kind: GuestKind = GuestKind.FOLDER, **changes: Any) -> GuestLabel:
    values: dict[str, Any] = {
        "name": "app",
        "kind": kind,
        "source": source,
        "digest": "0" * 64,
        "architecture": "x86_64",
        "os": "Debian",
        "glibc": "2.36",
        "programs": (PROGRAM,),
        "env_program": "/usr/bin/env",
    }
    return GuestLabel(**{**values, **changes})


def plan(guest: GuestLabel, engine: str, **changes: Any) -> GraftPlan:
    """A plan that binds one library over the guest's, and one device that no machine has."""
    values: dict[str, Any] = {
        "key": "0123456789abcdef" * 4,
        "guest": guest,
        "mpi": "openmpi@5.0.11",
        "replace": Replace.MPI,
        "engine": engine,
        "place": "/.mpigraft",
        "copies": (),
        "binds": (Bind("{graft}/lib/libmpi.so.40", LIBRARY),),
        "devices": (
            Bind("/dev/shm", "/dev/shm", BindKind.FOLDER, writable=True),
            Bind("/dev/nosuch", "/dev/nosuch", BindKind.DEVICE, required=False),
        ),
        "environment": (
            EnvRow("LD_PRELOAD", None, Scope.RANK, "plan"),
            EnvRow("PMIX_INSTALL_PREFIX", None, Scope.RANK, "plan"),
            EnvRow("OPAL_PREFIX", "/.mpigraft", Scope.RANK, "plan"),
        ),
        "passed": ("PMIX_*", "PMI_*", "OMPI_*", "TMPDIR"),
        "libmpi": LIBRARY,
        "libmpi_copy": "lib/libmpi.so.40",
        "glibc": False,
        "parts": (),
        "inputs": (),
    }
    return GraftPlan(**{**values, **changes})


def seat(**changes: Any) -> EngineContext:
    values: dict[str, Any] = {
        "program": "/usr/bin/engine",
        "version": "1.4.5",
        "root": False,
        "cwd": "/tmp/work",
        "ranks_per_node": 2,
        "graft": "/data/grafts/k",
        "environment": (("HOME", "/u"), ("SITE", "x"), ("USER", "u")),
    }
    return EngineContext(**{**values, **changes})


@dataclass(frozen=True)
class Image:
    """A folder with a little of what an image has."""

    folder: Path

    @classmethod
    def at(cls, folder: Path) -> Image:
        for name in ("usr/bin", LIBRARY[1:].rpartition("/")[0], "etc", "var/spool", "mnt", "tmp"):
            (folder / name).mkdir(parents=True)
        for name in ("opt/app", "proc", "sys", "dev/shm", "root"):
            (folder / name).mkdir(parents=True)
        (folder / "bin").symlink_to("usr/bin")
        (folder / "run").mkdir()
        (folder / "var/run").symlink_to("/run")
        for name in (LIBRARY[1:], "etc/hosts", PROGRAM[1:]):
            (folder / name).write_text("")
        return cls(folder)

    @property
    def label(self) -> GuestLabel:
        return label(str(self.folder))

    @property
    def guest(self) -> Guest:
        return Guest(self.label, open_root(self.folder))


FUNCTION = "int dep(void) { return 1; }"


def on_disk(folder: Path) -> dict[str, Path]:
    """A libmpi, a library that it needs, a help text, and our two programs."""
    _, files = _built()
    folder.mkdir(parents=True, exist_ok=True)
    return {name: Path(shutil.copy2(path, folder)) for name, path in files.items()}


@cache
def _built() -> tuple[object, dict[str, Path]]:
    """Compiled once; the first is the folder, which lives as long as it is remembered."""
    kept = tempfile.TemporaryDirectory()
    folder = Path(kept.name)
    dep = compiled(folder / "libdep.so.1", FUNCTION, soname="libdep.so.1")
    libmpi = compiled(
        folder / "libmpi.so.40", "int MPI_Init(void) { return 0; }",
        soname="libmpi.so.40", needs=[dep],
    )  # fmt: skip
    text = folder / "help.txt"
    text.write_text("help\n")
    return kept, {
        "libmpi": libmpi,
        "dep": dep,
        "help": text,
        "bench": program(folder / "bench", needs=[libmpi, dep]),
        "probe": program(folder / "mpigraft-probe", needs=[libmpi]),
        "witness": compiled(folder / "witness.so"),
        "trace": program(folder / "trace.so", "int trace = 1;"),
        "gpu_select": program(folder / GPU_SELECT),
        "relay": program(folder / RELAY, "int relay = 1;"),  # no two files of one content
    }


def an_abi_of(files: dict[str, Path], **facts: Any) -> MpiAbi:
    from mpigraft.core.cache import file_digest

    def real(one: AbiObject, name: str) -> AbiObject:
        return replace(one, path=str(files[name]), digest=file_digest(files[name]))

    made = an_abi("openmpi@5.0.11", host("libdep.so.1"), libc(), needed=("libdep.so.1",), **facts)
    libmpi, dep, *rest = made.objects
    help_text = DataFile(str(files["help"]), "share/help.txt", file_digest(files["help"]))
    rows = (EnvRow("OPAL_PREFIX", "{graft}", Scope.RANK, "opened.toml, openmpi"),)
    return replace(
        made,
        objects=(real(libmpi, "libmpi"), real(dep, "dep"), *rest),
        data=(help_text,),
        environment=rows,
    )


def natives_of(files: dict[str, Path]) -> Natives:
    """Ours without the guard, which stays on the host, and with the library that profiles."""
    made = Natives(files["bench"], files["witness"], files["bench"], "digest")
    return replace(made, trace=files["trace"])


def an_injection(abi: MpiAbi, what: Replace = Replace.MPI, **environment: str) -> GraftContents:
    theirs = library("libmpi.so.40", exported=C_SYMBOLS)
    guest = a_world(needing("libmpi.so.40"), theirs, environment=environment)
    return decide_contents(guest, abi, GraftRequest(replace=what, place=PLACE))


def a_plan(files: dict[str, Path], **changes: Any) -> GraftPlan:
    """The plan of these files under a guest with a libmpi of its own."""
    abi = changes.pop("abi", None) or an_abi_of(files)
    given = changes.pop("environment", {})
    what = changes.pop("what", Replace.MPI)
    found = changes.pop("injection", None) or an_injection(abi, what, **given)
    theirs = library("libmpi.so.40", exported=C_SYMBOLS)
    label = a_world(needing("libmpi.so.40"), theirs, environment=given).label
    label = replace(label, source=str(files["help"].parent / "image"), **changes.pop("label", {}))
    asked: dict[str, Any] = {"engine": "bwrap", "natives": natives_of(files), **changes}
    mpi = asked.pop("mpi", abi.mpi.id)
    return plan_folder(PlanInput(guest=label, mpi=mpi, abi=abi, contents=found, **asked))
