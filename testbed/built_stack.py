"""A software stack that EasyBuild builds, with `--rpath --rpath-override-dirs`, in EESSI's layout.

As `stacks`, but each search path is what EasyBuild's own wrappers made: of an Open MPI
(`built_mpi`), two small programs with a library, our benchmarks, and RAxML from Debian's source,
which people use to infer trees of descent. An ordinary user builds it; then it belongs to root, as
a stack belongs to nobody who uses it.

The compatibility layer is that of `stacks`: a glibc of its own would be built for ten minutes.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpigraft.core.cache import file_digest
from mpigraft.native.programs import BENCH, sources
from testbed import built_mpi, stacks
from testbed.easybuild import EasyBuilder, fetch_sources
from testbed.images import PROGRAMS
from testbed.kept import only_one
from testbed.stacks import Stack
from tests.homes import let_ranks_yield

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
mpigraft-bench: {bench}
	$(CC) -O1 -std=c11 -D_GNU_SOURCE {bench} -o mpigraft-bench $(LINK)
"""
COMMON = """name = '{name}'
version = '{version}'
versionsuffix = '{suffix}'
homepage = 'https://mpigraft.example'
description = 'of a stack for tests'
toolchain = SYSTEM
moduleclass = 'tools'
"""
PROGRAM = """easyblock = 'MakeCp'
sources = ['{source}']
dependencies = [('OpenMPI', '{mpi}', '{of_gcc}')]
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


@contextmanager
def built_stack(builder: EasyBuilder) -> Iterator[Stack]:
    """Build a stack; another session with the same cache waits until it is closed."""
    cache = builder.cache
    openmpi, raxml = built_mpi.openmpi_source(cache), raxml_source(cache)
    with only_one(cache / "built-stack.lock"):
        stack = stacks.empty_stack(root=built_mpi.root_of(cache))
        try:
            stacks.fill_compat(stack, *built_mpi.OF_COMPILER)
            work = _prepare(builder, stack, openmpi, raxml)
            mpi = _easyconfig(work, "OpenMPI", built_mpi.VERSION, built_mpi.SUFFIX, _mpi(stack))
            built_mpi.unpack_openmpi(stack, cache, lambda: _eb(builder, stack, work, [mpi]))
            _eb(builder, stack, work, _programs(work, stack, raxml))
            shutil.rmtree(work)
            for path in (stack.software, *stack.software.rglob("*")):
                os.lchown(path, 0, 0)
            let_ranks_yield(stack.mpi)
            yield stack
        finally:
            stack.close()


def _prepare(builder: EasyBuilder, stack: Stack, *tarballs: Path) -> Path:
    """A folder for EasyBuild, with the sources."""
    work = builder.home / "stack"
    folder = work / "sources"
    folder.mkdir(parents=True)
    (work / "easyconfigs").mkdir()
    makefile = folder / "Makefile"
    bench = " ".join(f"native/{name}" for name in sources(BENCH))
    makefile.write_text(MAKEFILE.format(loader=stack.loader, bench=bench))
    with tarfile.open(folder / "programs.tar.gz", "w:gz") as tar:
        tar.add(makefile, "programs/Makefile")
        for file in (*(PROGRAMS / "stack").iterdir(), stacks.OSU):
            tar.add(file, f"programs/{file.name}")
        for file in stacks.NATIVE.glob("*/*.[ch]"):
            tar.add(file, f"programs/native/{file.relative_to(stacks.NATIVE)}")
    for tarball in tarballs:
        shutil.copy(tarball, folder / tarball.name)
    stack.software.mkdir(parents=True)
    return work


def _eb(builder: EasyBuilder, stack: Stack, work: Path, names: list[str]) -> None:
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
        limit_s=3600,
    )  # fmt: skip
    assert done.ok, done.text()


def _mpi(stack: Stack) -> str:
    return built_mpi.EASYCONFIG.format(loader=stack.loader)


def _programs(work: Path, stack: Stack, raxml: Path) -> list[str]:
    version = raxml.name.partition("_")[2].partition("+")[0]
    ours = "programs.tar.gz"
    link = f"-Wl,--dynamic-linker={stack.loader}"
    make = f'-f Makefile.MPI.gcc CC="mpicc -w -O1" LDFLAGS="{link}"'
    rows = [
        ("Heat", "1.0", _program(ours, "heat", ("bin/heat", "lib/libhalo.so"))),
        ("Latency", "5.9", _program(ours, "osu_latency", ("bin/osu_latency",))),
        ("Bench", "1.0", _program(ours, "mpigraft-bench", ("bin/mpigraft-bench",))),
        ("RAxML", version, _program(raxml.name, make, ("bin/raxmlHPC-MPI",))),
    ]
    return [_easyconfig(work, name, number, OF_MPI, text) for name, number, text in rows]


def _easyconfig(work: Path, name: str, version: str, suffix: str, text: str) -> str:
    file = f"{name}-{version}{suffix}.eb"
    head = COMMON.format(name=name, version=version, suffix=suffix)
    (work / "easyconfigs" / file).write_text(head + text)
    return file


def _program(source: str, options: str, files: tuple[str, ...]) -> str:
    pairs = [(Path(file).name, Path(file).parent.name) for file in files]
    return PROGRAM.format(
        mpi=built_mpi.VERSION,
        of_gcc=built_mpi.SUFFIX,
        source=source,
        options=options,
        files=", ".join(f"(['{name}'], '{place}')" for name, place in pairs),
        names=", ".join(f"'{file}'" for file in files),
    )
