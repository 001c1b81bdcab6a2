"""The real loader as the oracle of resolution."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

from mpigraft.binary.architecture.interpreters import INTERPRETERS
from mpigraft.binary.elf import reader
from mpigraft.binary.loader import dependencies
from mpigraft.binary.loader.search import Rule
from mpigraft.core.process import command
from tests.builders.elf import compiled

LOADER = INTERPRETERS[platform.machine()]
OLD, NEW = "-Wl,--disable-new-dtags", "-Wl,--enable-new-dtags"


def rpath(*entries: str | Path) -> tuple[str, str]:
    return OLD, f"-Wl,-rpath,{':'.join(map(str, entries))}"


def runpath(*entries: str | Path) -> tuple[str, str]:
    return NEW, f"-Wl,-rpath,{':'.join(map(str, entries))}"


def library(path: Path, *needs: Path, flags: tuple[str, ...] = ()) -> Path:
    """A library whose soname is its file name."""
    return compiled(path, needs=needs, soname=path.name, flags=flags)


def traced(path: Path, environment: Mapping[str, str]) -> list[str]:
    """What the real loader maps, in its order: paths, and names that it does not find."""
    if reader.read_elf(path).interpreter:
        argv, extra = [str(path)], {"LD_TRACE_LOADED_OBJECTS": "1"}
    else:
        argv, extra = [LOADER, "--list", str(path)], {}
    done = command.run_command(argv, env={**environment, **extra})
    assert done.ok, done.text()
    found = []
    for line in done.text().splitlines():
        if match := re.fullmatch(r"\t(?:.* => )?(.*) \(0x[0-9a-f]+\)", line):
            path = Path(match[1]).absolute()
            if path.exists() and not path.samefile(LOADER):  # the kernel's vdso is no file
                found.append(os.path.normpath(path))
        elif match := re.fullmatch(r"\t(.*) => not found", line):
            found.append(match[1])
    return list(dict.fromkeys(found))  # a missing one is told once for each that needs it


def resolved(path: Path, environment: Mapping[str, str]) -> list[str]:
    return [
        os.path.normpath(r.path) if r.path else r.name
        for r in dependencies.closure(path, environment=environment)
        if r.rule is not Rule.INTERPRETER
    ]


def agree(
    path: Path, environment: Mapping[str, str] | None = None
) -> dict[str, dependencies.Resolved]:
    """The loader and resolution map the same. Returns what was resolved, by name."""
    environment = environment or {}
    expected = traced(path, environment)
    assert expected
    assert resolved(path, environment) == expected
    return {r.name: r for r in dependencies.closure(path, environment=environment)}
