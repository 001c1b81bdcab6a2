"""Guests in which a field means harm: no command obeys it, and it forges no line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.model import Family
from mpigraft.core.serialize import document
from mpigraft.report import machine_document
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.elf import compiled, program
from tests.builders.forged import EVIL, command, leaves, planted
from tests.builders.guests import an_abi
from tests.builders.images import CONFIG, docker_save, oci, sif
from tests.builders.layers import Item, file, hard, link

COMMANDS = [
    "check",
    "check --json",
    "plan --force",
    "plan --force --json",
    "plan --force --as shell",
]
Tree = dict[str, bytes]
VERSION = b"V" * len(EVIL.encode())  # stands for evil where the linker takes none


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """Programs by what means harm in them."""
    folder = tmp_path_factory.mktemp("parts")
    mpi = compiled(folder / "libmpi.so.40", "int MPI_Init; int MPI_Send;", soname="libmpi.so.40")
    other = compiled(folder / "libother.so", "int other;", soname=f"libother{EVIL}")
    script = folder / "versions"
    script.write_text(f"{VERSION.decode()} {{ global: *; }};")
    versioned = compiled(
        folder / "libversioned.so", "int v = 1;", soname="libversioned.so",
        flags=[f"-Wl,--version-script={script}"],
    )  # fmt: skip
    uses = "extern int MPI_Init, MPI_Send; int *x[] = {&MPI_Init, &MPI_Send};"
    made = {
        "program": program(folder / "program", uses, needs=[mpi]),
        "needed": program(folder / "needed", uses, needs=[mpi, other]),
        "rpath": program(folder / "rpath", uses, needs=[mpi], flags=[f"-Wl,-rpath,/opt/{EVIL}"]),
        "runpath": program(
            folder / "runpath", uses, needs=[mpi],
            flags=["-Wl,--enable-new-dtags", f"-Wl,-rpath,$ORIGIN/{EVIL}"],
        ),
        "interpreter": program(
            folder / "interpreter", uses, needs=[mpi], flags=[f"-Wl,--dynamic-linker=/lib/{EVIL}"]
        ),
        "version": program(
            folder / "version", f"{uses} extern int v; int *w = &v;", needs=[mpi, versioned]
        ),
        "versioned": versioned,
        "mpi": mpi,
        "other": other,
    }  # fmt: skip
    return {name: path.read_bytes().replace(VERSION, EVIL.encode()) for name, path in made.items()}


def configured(**values: Any) -> dict[str, Any]:
    return {**CONFIG, "config": {"Env": ["PATH=/bin"], **values}}


TREE: dict[str, str] = {  # names of parts, else texts
    "usr/lib/libmpi.so.40": "mpi",
    "usr/lib/libother.so": "other",
    "etc/os-release": 'ID=x\nPRETTY_NAME="X 12"\n',
    "opt/app": "program",
}
FIELDS: dict[str, dict[str, str]] = {  # what an image has besides, or instead
    "program": {f"opt/{EVIL}": "program"},
    "folder": {f"opt/{EVIL}/app": "program"},
    "library": {f"usr/lib/{EVIL}.so": "mpi"},
    "needed": {"opt/app": "needed"},
    "rpath": {"opt/app": "rpath"},
    "runpath": {"opt/app": "runpath"},
    "interpreter": {"opt/app": "interpreter"},
    "version": {"opt/app": "version", "usr/lib/libversioned.so": "versioned"},
    "os-release": {"etc/os-release": f'ID=x{EVIL}\nPRETTY_NAME="{EVIL}"\n'},
    "packages": {
        "var/lib/dpkg/status": f"Package: openmpi\nStatus: install ok installed\nVersion: {EVIL}",
        f"var/lib/dpkg/info/openmpi:{EVIL}.list": "/usr/lib/libmpi.so.40\n",
    },
    "loader": {"etc/ld.so.conf": f"include {EVIL}\n/opt/{EVIL}\n"},
    "modules": {f"opt/modulefiles/{EVIL}.lua": f'setenv("A", "{EVIL}")\n'},
    "script": {
        f".singularity.d/env/10-{EVIL}.sh": f"export A='{EVIL}'\n. {EVIL}\n",
        ".singularity.d/runscript": f"#!/bin/sh {EVIL}\nexec /opt/app '{EVIL}'\n",
    },
    "python": {"opt/job.py": f"#!/usr/bin/python3\nimport {EVIL}\nimport mpi4py\n"},
}
CONFIGS: dict[str, dict[str, Any]] = {
    "environment": configured(
        Env=["PATH=/bin", f"A{EVIL}={EVIL}", f"LD_LIBRARY_PATH={EVIL}", EVIL]
    ),
    "labels": configured(Labels={EVIL: EVIL, "org.opencontainers.image.version": EVIL}),
    "start": configured(Entrypoint=["/opt/app", EVIL], Cmd=[EVIL], User=EVIL, WorkingDir=EVIL),
    "architecture": {**configured(), "architecture": EVIL, "os": EVIL},
}


def files_of(field: str, parts: Tree) -> Tree:
    named = {**TREE, **FIELDS.get(field, {})}
    return {name: parts.get(text, text.encode()) for name, text in named.items()}


def items(files: Tree) -> list[Item]:
    return [file(name, data, 0o755) for name, data in files.items()]


def as_folder(path: Path, files: Tree) -> Path:
    for name, data in files.items():
        place = path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        place.chmod(0o755)
    return path


def as_squashfs(path: Path, files: Tree) -> Path:
    folder = as_folder(path.with_name("folder"), files)
    subprocess.run(
        ["mksquashfs", folder, path, "-quiet", "-no-progress"], check=True, capture_output=True
    )
    return path


def as_sif(path: Path, files: Tree) -> Path:
    image = as_squashfs(path.with_suffix(".sqfs"), files)
    sif(path, image.read_bytes())
    return path


IMAGES: dict[str, Callable[[Path, Tree], Path]] = {
    "folder": as_folder,
    "docker": lambda path, files: docker_save(path, [items(files)]),
    "squashfs": lambda path, files: as_squashfs(path.with_suffix(".squashfs"), files),
    "sif": lambda path, files: as_sif(path.with_suffix(".sif"), files),
}


def image_of(kind: str, field: str, parts: Tree, folder: Path) -> Path:
    files = files_of(field, parts)
    if kind in IMAGES:
        return IMAGES[kind](folder / "image", files)
    return oci(folder / "image", [items(files)], config=CONFIGS.get(field, configured()))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `discover --abi --json` writes."""
    here = a_machine(an_mpi("openmpi@5.0.9"))
    found = json.loads(document(**machine_document(here)))
    for row, mpi in zip(found["mpis"], here.mpis, strict=True):
        row["abi_facts"] = json.loads(document(facts=an_abi(mpi)))["facts"]
    path = tmp_path_factory.mktemp("machine") / "machine.json"
    path.write_text(json.dumps(found))
    return path


CASES = [
    *((field, kind) for field in FIELDS for kind in ("folder", "oci")),
    *((field, "oci") for field in CONFIGS),
    *((field, kind) for field in ("program", "library") for kind in ("docker", "squashfs", "sif")),
]


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
@pytest.mark.parametrize(("field", "kind"), CASES)
def test_no_check_obeys_a_guest(
    field: str, kind: str, terminal: bool, parts: Tree, machine: Path, tmp_path: Path
) -> None:
    image = image_of(kind, field, parts, tmp_path)
    for more in ((), ("--mpi", "openmpi"), ("--program", f"/opt/{EVIL}")):
        ended = command("check", image, "--machine", machine, *more, terminal=terminal)
        assert ended.code in (1, 2), ended
    if not terminal:
        ended = command("check", image, "--machine", machine, "--json")
        assert json.loads(ended.out or "{}") or ended.code == 2


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_a_link_that_leads_nowhere_is_named(
    parts: Tree, machine: Path, tmp_path: Path, terminal: bool
) -> None:
    links = [link(f"opt/{EVIL}", EVIL), hard(f"usr/{EVIL}", f"opt/{EVIL}2")]
    image = docker_save(tmp_path / "image", [[*items(files_of("", parts)), *links]])
    assert command("check", image, "--machine", machine, terminal=terminal).code == 2


PLANNED = ("program", "needed", "rpath", "interpreter", "version", *CONFIGS)


@pytest.mark.mpi
@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("field", PLANNED)
def test_no_plan_obeys_a_guest(
    field: str, parts: Tree, mpis: Mapping[Family, Path], tmp_path: Path
) -> None:
    """But for a script, which is exact in a pipe."""
    image = image_of("oci" if field in CONFIGS else "folder", field, parts, tmp_path)
    words = ("plan", image, "--mpi", mpis[Family.OPENMPI], "--force")
    for form, terminal in (("text", False), ("text", True), ("json", False)):
        ended = command(*words, "--as", form, terminal=terminal)
        assert ended.code in (0, 1), ended.err
    assert json.loads(ended.out)["plan"]


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
def test_no_check_obeys_a_description_of_a_machine(
    parts: Tree, machine: Path, tmp_path: Path, terminal: bool
) -> None:
    image = image_of("folder", "", parts, tmp_path)
    described = json.loads(machine.read_text())
    for place in dict.fromkeys(leaves(described)):
        (tmp_path / "evil.json").write_text(json.dumps(planted(described, {place})))
        ended = command("check", image, "--machine", tmp_path / "evil.json", terminal=terminal)
        assert ended.code in (1, 2, 3), place
