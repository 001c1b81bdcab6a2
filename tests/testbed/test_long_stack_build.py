"""An Open MPI 4.1 that EasyBuild builds for a stack, from Debian 12's sources: minutes the first
time, then kept. Every program of the stack runs on it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.core.cache import file_digest
from mpigraft.core.model import Family
from mpigraft.knowledge import packages
from testbed import built_mpi, rootfs
from testbed.easybuild import EasyBuilder, fetch_sources
from testbed.kept import only_one
from testbed.language_stacks import OMPI, LanguageStack, language_stack, mpigraft
from tests.testbed.conftest import CHAIN_LIMIT_S

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root, pytest.mark.long]


def debian_sources(cache: Path, to: Path) -> Path:
    """Give the two tarballs as EasyBuild keeps its sources, in LETTER/NAME."""
    openmpi = built_mpi.openmpi_source(cache)
    row = next(row for row in packages()["ucx"].archives if row.by == "debian")
    ucx = openmpi.with_name(row.file)
    with only_one(cache / "sources.lock"):
        if not ucx.exists():
            fetch_sources(["ucx"], ucx.parent, built_mpi.SUITE)
    assert file_digest(ucx) == row.sha256, "Debian's tarball is another one now"
    for file, place in ((openmpi, "o/OpenMPI"), (ucx, "u/UCX")):
        (to / place).mkdir(parents=True)
        (to / place / file.name).symlink_to(file)
    return to


@pytest.fixture(scope="module")
def stack(mpis: Mapping[Family, Path]) -> Iterator[LanguageStack]:
    if rootfs.own_suite() != built_mpi.SUITE:
        pytest.skip(f"the stack's MPI is of Debian {built_mpi.SUITE}")
    with language_stack(OMPI, mpis[Family.OPENMPI] / "include", [*OMPI.languages]) as made:
        yield made


@pytest.fixture(scope="module")
def built(stack: LanguageStack, easybuilder: EasyBuilder, cache_folder: Path) -> Path:
    """The prefix of the MPI."""
    sources = debian_sources(cache_folder, easybuilder.home / "tarballs")
    easybuilder.give(sources)
    wanted = (f"openmpi@{built_mpi.VERSION}", "--without", "libfabric")
    words = (*wanted, "--on", stack.root, "--sources", sources)
    prefix = easybuilder.prefix_of(*words, reach=[stack.root])
    build = ("mpigraft", "build", *words, "--prefix", prefix)
    done = easybuilder.run(*build, reach=[stack.root], limit_s=CHAIN_LIMIT_S)
    assert done.ok, done.text()
    return prefix / f"software/OpenMPI/{built_mpi.VERSION}-gnu-stack"


def test_every_program_runs_on_what_was_built_for_its_stack(
    stack: LanguageStack, built: Path
) -> None:
    """C, C++, three Fortran interfaces, OpenSHMEM, Python and dlopen; by the launcher too."""
    code, page, errors = mpigraft("inject", stack.root, "--mpi", built)
    assert code == 0, page + errors
    assert mpigraft("inject", stack.root, "--verify")[0] == 0
    ran = f"LIBRARY Open MPI v{built_mpi.VERSION}, package: Open MPI"
    for language in OMPI.languages:
        words = stack.words(language)
        alone = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert (alone.returncode, ran in alone.stdout) == (0, True), (language, alone)
        proof = ["--no-proof"] if language == "shmem" else []  # shmem_init calls no MPI_Init
        job = ("run", *proof, "--stack", stack.root, "--mpi", built, "-n", "2", "--", *words)
        code, page, errors = mpigraft(*job)
        assert (code, page.count(ran)) == (0, 2), (language, page, errors)
        listed = subprocess.run(
            ["/lib64/ld-linux-x86-64.so.2", "--list", str(stack.program(language))],
            capture_output=True,
            text=True,
        ).stdout
        assert f"{stack.own}/" not in listed, language
