"""Programs of each language on an injected MPI, however they are started."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from tests.testbed import rootfs, science
from tests.testbed.language_stacks import OMPI, LanguageStack, language_stack, mpigraft

pytestmark = [pytest.mark.testbed, pytest.mark.mpi]

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("MPIGRAFT")}


@pytest.fixture(scope="module", autouse=True)
def bookworm() -> None:
    if rootfs.own_suite() != science.SUITE:
        pytest.skip(f"these MPIs are of Debian {science.SUITE}")


@pytest.fixture(scope="module")
def ompi_of_module(mpis: Mapping[Family, Path]) -> Iterator[LanguageStack]:
    include = mpis[Family.OPENMPI] / "include"
    with language_stack(OMPI, include, ["c", "python"]) as stack:
        yield stack


@pytest.fixture
def ompi(ompi_of_module: LanguageStack) -> Iterator[LanguageStack]:
    yield ompi_of_module
    ompi_of_module.empty_site()


@pytest.fixture(scope="module")
def older(cache_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with Open MPI 4.1.8, beside Debian's 4.1.4."""
    home = tmp_path_factory.mktemp("older")
    (home / "mpi").symlink_to(cache_folder / "home-openmpi-4/mpi")
    return home


def start(*words: str) -> str:
    """Start a program as a user does, without mpigraft; what it printed."""
    done = subprocess.run(words, env=CLEAN, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("mpi", ["openmpi@4.1.8", "openmpi@4.1.4"])
def test_programs_start_without_a_launcher(
    ompi: LanguageStack, older: Path, monkeypatch: pytest.MonkeyPatch, mpi: str
) -> None:
    """Open MPI 4 starts its daemon then, of which the generation has a copy: a program, a module
    that Python imports, and one that starts another."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(older))
    code, _, errors = mpigraft("inject", ompi.root, "--mpi", mpi)
    assert code == 0, errors
    ran = f"RANK 0 of SIZE 1 LIBRARY Open MPI v{mpi.partition('@')[2]}"
    assert ran in start(*ompi.words("c"))
    assert ran in start(*ompi.words("python"))
    assert start(*ompi.words("c"), "spawn").count(ran) == 2
