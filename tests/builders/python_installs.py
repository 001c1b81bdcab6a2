"""Folders that look like an installed Python with packages, of which nothing can be run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from mpigraft.binary import INTERPRETERS
from mpigraft.binary.image.folder import FolderRoot
from mpigraft.graft.guest.python_imports import EntryPoint, Imports, follow
from mpigraft.graft.guest.python_search import Options, Python, python_of
from tests.builders.elf import compiled, program

MACHINE = os.uname().machine
LOADER = INTERPRETERS[MACHINE].lstrip("/")
TAG = f"cpython-311-{MACHINE}-linux-gnu.so"
NOTHING: Mapping[str, str] = MappingProxyType({})
NO_PARTS: Mapping[str, Path] = MappingProxyType({})
SITE = "usr/lib/python3.11/site-packages"


def parts(folder: Path) -> dict[str, Path]:
    """A libmpi, a program, an extension module that needs MPI and one that needs nothing."""
    libmpi = compiled(folder / "libmpi.so.40", soname="libmpi.so.40")
    return {
        "libmpi": libmpi,
        "program": program(folder / "program"),
        "mpi": compiled(folder / "mpi.so", needs=[libmpi]),
        "plain": compiled(folder / "plain.so"),
    }


def tree(top: Path, built: Mapping[str, Path], files: Mapping[str, str | bytes] = NOTHING) -> Path:
    """An image with a Python 3.11 in /usr and `files`; `*mpi` and `*plain` are extensions."""
    put(
        top, {"usr/lib/python3.11/os.py": "", "usr/lib/python3.11/site.py": "", f"{SITE}/x.pyi": ""}
    )
    for name in ("usr/bin/python3.11", "usr/bin/env"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(built["program"], top / name)
    (top / "usr/bin/python3").symlink_to("python3.11")
    shutil.copy2(built["libmpi"], top / "usr/lib/libmpi.so.40")
    (top / "lib").symlink_to("usr/lib")
    (top / "bin").symlink_to("usr/bin")
    put(top, {LOADER: "", "usr/bin/sh": "", "usr/bin/bash": ""})
    put(top, files, built)
    return top


def put(top: Path, files: Mapping[str, str | bytes], built: Mapping[str, Path] = NO_PARTS) -> None:
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            path.write_bytes(text)
        elif text.startswith("*"):
            shutil.copy2(built[text[1:]], path)
        else:
            path.write_text(text)


ALL = Options()


def python(
    top: Path,
    name: str = "/usr/bin/python3",
    options: Options = ALL,
    environment: Mapping[str, str] = NOTHING,
) -> Python:
    found = python_of(FolderRoot(top), name, environment, options)
    assert found is not None
    return found


def imports(top: Path, script: str | bytes, folder: str = "/job", **env: str) -> Imports:
    """What a script in a folder of the image imports."""
    (top / folder.strip("/")).mkdir(parents=True, exist_ok=True)
    data = script if isinstance(script, bytes) else script.encode()
    entered = EntryPoint("__main__", folder, data, f"{folder}/script.py")
    return follow(FolderRoot(top), python(top, environment=env), [entered], MACHINE)
