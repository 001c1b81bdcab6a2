"""Programs of each language on an injected MPI, however they are started."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import jsonschema
import pytest

import mpigraft as package
from mpigraft.core.model import Family
from testbed import rootfs, science
from testbed.easybuild import LMOD
from testbed.language_stacks import OMPI, SOURCES, LanguageStack, language_stack, mpigraft

pytestmark = [pytest.mark.testbed, pytest.mark.mpi]

SCHEMAS = Path(package.__file__).parent / "report/schemas"
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


SPAWNED = "MPI_Comm_spawn without a launcher and by mpiexec"


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
    code, page, errors = mpigraft("inject", ompi.root, "--verify")
    assert (code, SPAWNED in page) == (0, True), errors
    (ompi.slot / "mpi/bin/orted").unlink()  # as generations were before
    code, page, _ = mpigraft("check", ompi.root, "--full")
    assert (code, "no orted" in page) == (1, True), page
    code, page, errors = mpigraft("inject", ompi.root, "--verify")
    assert (code, "without a launcher ended with" in errors) == (1, True), page


MODULE = """prepend_path("PATH", "{python}")
prepend_path("PYTHONPATH", "{site}")
setenv("OF_MODULE", "yes")
"""


def test_an_import_of_mpi4py_is_a_part_of_the_proof(
    ompi: LanguageStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the Python of its module, wherever that lies, without a launcher; where no module can be
    loaded, by one that lies in the stack."""
    name = f"python3.{sys.version_info.minor}"
    python = ompi.root / "elsewhere/bin" / name
    package = ompi.root / f"software/mpi4py/4/lib/{name}/site-packages/mpi4py"
    module = ompi.root / "modules/all/mpi4py/4.lua"
    for folder in (python.parent, package, module.parent):
        folder.mkdir(parents=True)
    module.write_text(MODULE.format(python=python.parent, site=package.parent))
    python.symlink_to(Path(sys.executable).resolve())
    (package / "__init__.py").write_text("import os; os.environ['OF_MODULE']\n")
    search = f"-Wl,--disable-new-dtags,-rpath,{ompi.slot}/lib:{ompi.own}"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-DPyInit_world=PyInit_MPI", f"-I{ompi.include}",
         SOURCES / "module.c", ompi.own / ompi.abi.libmpi, search, "-o", package / "MPI.abi3.so"],
        check=True,
    )  # fmt: skip
    assert mpigraft("inject", ompi.root, "--mpi", "openmpi@5.0.11")[0] == 0
    monkeypatch.setenv("LMOD_CMD", str(LMOD))
    code, page, errors = mpigraft("inject", ompi.root, "--verify")
    assert (code, "`import mpi4py.MPI` of mpi4py/4" in page) == (0, True), errors
    monkeypatch.delenv("LMOD_CMD")
    (package / "__init__.py").write_text("raise ImportError('of no use')\n")
    python.parent.rename(ompi.root / "bin")
    code, _, errors = mpigraft("inject", ompi.root, "--verify")
    assert code == 4, errors
    assert f"{name} without a launcher ended with 1" in " ".join(errors.split())
    for folder in (package, ompi.root / "bin", ompi.root / "modules"):
        shutil.rmtree(folder)


def test_a_program_that_spawns_alone_needs_the_launcher_s_folder_alone(ompi: LanguageStack) -> None:
    """Open MPI 5 starts prte from PATH then."""
    assert mpigraft("inject", ompi.root, "--mpi", "openmpi@5.0.11")[0] == 0
    code, page, _ = mpigraft("check", ompi.root, "--full")
    assert (code, "MPI_Comm_spawn of c on openmpi@5.0.11" in " ".join(page.split())) == (0, True)
    root = ("PRTE_ALLOW_RUN_AS_ROOT=1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1")
    path = f"PATH={ompi.slot}/bin:/usr/bin:/bin"
    assert start("env", path, *root, *ompi.words("c"), "spawn").count("SIZE 1 LIBRARY") == 2
    code, page, errors = mpigraft("inject", ompi.root, "--verify")
    assert (code, SPAWNED in page) == (0, True), errors
    prte = ompi.slot / "bin/prte"
    prte.write_text("#!/bin/sh\necho no daemon here >&2\nexit 9\n")
    code, _, errors = mpigraft("inject", ompi.root, "--verify")
    errors = " ".join(errors.split())
    assert (code, "MPI_Comm_spawn without a launcher on openmpi@5.0.11" in errors) == (4, True)
    assert "MPI_Comm_spawn by mpiexec" not in errors


GROWN = {  # what each needs that an injection for C programs does not have
    "use-mpif": "libmpi_mpifh.so.40",
    "use-mpi-f08": "libmpi_usempif08.so.40",
    "cxx": "libmpi_cxx.so.40",
    "shmem": "liboshmem.so.40",
}


def test_a_stack_that_grew_is_named_before_a_program_starts(mpis: Mapping[Family, Path]) -> None:
    """Programs that came into a stack of C programs would run on parts of two MPIs, or crash."""
    with language_stack(OMPI, mpis[Family.OPENMPI] / "include", ["c"]) as stack:
        assert mpigraft("check", stack.root)[0] == 0
        assert "nothing injected" in mpigraft("check", stack.root)[1]
        assert mpigraft("inject", stack.root, "--mpi", "openmpi@4.1.4")[0] == 0
        assert mpigraft("check", stack.root)[0] == 0
        stack.add(*GROWN)
        code, page, _ = mpigraft("check", stack.root, "--json")
        (judged,) = json.loads(page)["injected"]
        assert (code, judged["fits"], judged["refused"]) == (1, 1, len(GROWN))
        code, page, errors = mpigraft("inject", stack.root, "--verify", "--json")
        found = json.loads(page[page.index("{") :])
        jsonschema.validate(found, json.loads((SCHEMAS / "inject.json").read_text()))
        assert (code, found["injected"][0]["refused"]) == (1, len(GROWN)), errors
        assert found["proof"]["program"] == str(stack.program("c"))
        for language, lacks in GROWN.items():
            job = ("run", "--stack", stack.root, "-n", "2", "--", stack.program(language))
            code, output, errors = mpigraft(*job)
            assert (code, output) == (1, ""), errors
            assert f"{language}: generation 1 of openmpi@4.1.4 lacks" in errors
            assert lacks in errors
        assert mpigraft("run", "--stack", stack.root, "-n", "2", "--", stack.program("c"))[0] == 0
        assert mpigraft("inject", stack.root, "--mpi", "openmpi@4.1.4")[0] == 0
        job = ("run", "--stack", stack.root, "-n", "2", "--", stack.program("use-mpif"))
        code, output, errors = mpigraft(*job)
        assert (code, output.count("Open MPI v4.1.4")) == (0, 2), errors
        assert mpigraft("check", stack.root)[0] == 0
