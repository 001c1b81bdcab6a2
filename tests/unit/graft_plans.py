"""Plans and seats made by hand, for tests of what renders them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpigraft.guest import Guest
from mpigraft.model import (
    Bind,
    BindKind,
    EnvRow,
    GraftPlan,
    GuestKind,
    GuestLabel,
    Replace,
    Scope,
    Seat,
)
from mpigraft.root import open_root

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


def seat(**changes: Any) -> Seat:
    values: dict[str, Any] = {
        "program": "/usr/bin/engine",
        "version": "1.4.5",
        "root": False,
        "cwd": "/tmp/work",
        "ranks_per_node": 2,
        "graft": "/data/grafts/k",
        "environment": (("HOME", "/u"), ("SITE", "x"), ("USER", "u")),
    }
    return Seat(**{**values, **changes})


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
