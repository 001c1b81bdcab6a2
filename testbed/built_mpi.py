"""The Open MPI of the built stack: EasyBuild builds it, and the tests' cache keeps it.

It is the release of EESSI's 2023.06 with GCC 12.2, from Debian 12's source, which is upstream's.
Open MPI's own hwloc, libevent and PMIx go into it, as the compatibility layer has none, and no
Fortran and no network but TCP, which would take minutes more. Its components are plugins, as
EasyBuild builds them.

The search paths of its files name the root of the stack. So the root is one path for each cache,
and of the sessions with one cache a single one has the stack at a time. Relocation was rejected:
then the search paths would be ours and not those of EasyBuild's wrappers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mpigraft.core.cache import file_digest
from mpigraft.core.process import run_command
from testbed.easybuild import fetch_sources
from testbed.kept import kept, only_one, recipe
from testbed.someone import ROOT
from testbed.stacks import Stack

VERSION, SUFFIX = "4.1.4", "-GCC-12.2.0"
SUITE = "bookworm"
ARCHIVE = f"openmpi_{VERSION}.orig.tar.xz"
DIGEST = "ddaee7dbdb01eb4fab1fda5b5e03e8bbff026711806c095c1f39bb410f99f263"
ABSENT = (
    "mpi-fortran", "mpi-cxx", "oshmem", "io-romio", "static", "libompitrace", "debug-symbols"
)  # fmt: skip
LINKED_TO = ("verbs", "ucx", "ofi", "psm", "psm2", "portals4", "libnl", "slurm", "cuda", "lustre")
# configure starts programs that need them, for C++ and for pthread_exit.
OF_COMPILER = ("libgcc_s.so.1", "libstdc++.so.6")
EASYCONFIG = f"""easyblock = 'ConfigureMake'
sources = ['{ARCHIVE}']
checksums = ['{DIGEST}']
configopts = (
    'LDFLAGS=-Wl,--dynamic-linker={{loader}} '
    '--with-hwloc=internal --with-libevent=internal --with-pmix=internal --without-x '
    '{" ".join(f"--disable-{name}" for name in ABSENT)} '
    '{" ".join(f"--without-{name}" for name in LINKED_TO)}'
)
build_type = False
sanity_check_paths = {{{{
    'files': ['bin/mpirun', 'bin/mpicc', 'lib/libmpi.so.40', 'lib/openmpi/mca_pml_ob1.so'],
    'dirs': ['include'],
}}}}
"""
FOLDERS = ("software/OpenMPI", "modules/all/OpenMPI", "modules/tools/OpenMPI")


def root_of(cache: Path) -> Path:
    """Where the stack lies whose files are kept in this cache: short, as a loader's folder is."""
    return Path("/tmp") / f"mg-{recipe(str(cache.resolve()))[:8]}"


def openmpi_source(cache: Path) -> Path:
    """Debian's tarball of Open MPI, fetched once."""
    folder = cache / "sources"
    folder.mkdir(parents=True, exist_ok=True)
    with only_one(cache / "sources.lock"):
        if not (folder / ARCHIVE).exists():
            fetch_sources(["openmpi"], folder, SUITE)
    assert file_digest(folder / ARCHIVE) == DIGEST, "Debian's tarball is another one now"
    return folder / ARCHIVE


def unpack_openmpi(stack: Stack, cache: Path, build: Callable[[], None]) -> None:
    """Put Open MPI and its module into an empty stack at `root_of`; `build` builds them there by
    this easyconfig, unless the cache has them of the same recipe, EasyBuild and compiler."""
    compiler = run_command(["gcc", "--version"]).stdout.decode()
    requirements = ROOT / "requirements-easybuild.txt"
    made_by = recipe(str(stack.root), str(stack.loader), EASYCONFIG, compiler, requirements)

    def make(file: Path) -> None:
        build()
        _tar("--create", "--file", file, *FOLDERS, folder=stack.software)

    file = kept(cache / "built" / "stack-openmpi.tar", made_by, make)
    if not (stack.software / "software").exists():
        _tar("--extract", "--file", file, folder=stack.software)


def _tar(*words: str | Path, folder: Path) -> None:
    done = run_command(["tar", "--directory", folder, *words], limit_s=300)
    assert done.ok, done.text()
