"""Plans of small files on disk, for tests of plans, of graft folders and of their command."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from mpigraft.injection import Injection, inject
from mpigraft.model import AbiObject, DataFile, EnvRow, GraftPlan, MpiAbi, Replace, Scope
from mpigraft.natives import RELAY, SEAT, Natives
from mpigraft.plan import plan
from tests.elf.elf_builders import compiled, program
from tests.unit.checked import C_SYMBOLS, an_abi, libc
from tests.unit.worlds import PLACE, a_world, host, library, needing

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
        "witness": compiled(folder / "witness.so"),
        "seat": program(folder / SEAT),
        "relay": program(folder / RELAY, "int relay = 1;"),  # no two files of one content
    }


def an_abi_of(files: dict[str, Path], **facts: Any) -> MpiAbi:
    from mpigraft.cache import file_digest

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
    return Natives(files["bench"], files["witness"], files["bench"], "digest")


def an_injection(abi: MpiAbi, what: Replace = Replace.MPI, **environment: str) -> Injection:
    theirs = library("libmpi.so.40", exported=C_SYMBOLS)
    guest = a_world(needing("libmpi.so.40"), theirs, environment=environment)
    return inject(guest, abi, replace=what, place=PLACE)


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
    return plan(label, abi, found, (), **asked)
