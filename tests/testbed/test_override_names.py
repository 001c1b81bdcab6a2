"""A stack of MPICH with several overrides, and an MPICH of the host with another soname."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from testbed.stacks import Stack
from tests.builders.elf import compiled
from tests.builders.stacks import CALLS

pytestmark = [pytest.mark.testbed, pytest.mark.mpi]

HELLO = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(text, &length);
    puts(text);
    return MPI_Finalize();
}
"""


@pytest.fixture
def mpich_stack(mpis: Mapping[Family, Path], tmp_path: Path) -> Path:
    """Programs linked to `libmpi.so.12`, one of which searches an accelerator's override first."""
    root, wheel = tmp_path / "stack", mpis[Family.MPICH]
    own = root / "software/MPICH/5/lib"
    own.parent.mkdir(parents=True)
    own.symlink_to(wheel / "lib")
    for name, overrides in (("One", USUAL), ("Two", USUAL), ("Cuda", ("accel/MPICH", *USUAL))):
        folders = [tmp_path / f"site/rpath_overrides/{one}/system/lib" for one in overrides]
        program = root / f"software/{name}/1/bin/{name.lower()}_hello"
        program.parent.mkdir(parents=True)
        search = ":".join(map(str, (*folders, own)))
        subprocess.run(
            ["gcc", "-xc", "-", f"-I{wheel / 'include'}", "-xnone", wheel / "lib/libmpi.so.12",
             f"-Wl,--disable-new-dtags,-rpath,{search},--allow-shlib-undefined", "-o", program],
            input=HELLO, text=True, check=True,
        )  # fmt: skip
    return root


USUAL = ("libfabric", "OpenMPI", "MPICH")


def start(*words: str | Path, code: int = 0) -> tuple[str, str]:
    """Run mpigraft: its output and errors."""
    argv = [sys.executable, "-m", "mpigraft.cli.main", *map(str, words)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


def mpigraft(*words: str | Path, code: int = 0) -> str:
    return start(*words, code=code)[0]


def test_an_mpi_goes_into_the_override_that_is_named_for_it(
    mpich_stack: Path, tmp_path: Path, mpis: Mapping[Family, Path]
) -> None:
    """Not into the first, libfabric's. What a site put into the accelerator's stays as it is."""
    site = tmp_path / "site/rpath_overrides"
    (site / "accel/MPICH/system").mkdir(parents=True)
    (site / "accel/MPICH/system/lib").symlink_to(mpis[Family.MPICH] / "lib")
    mpi = "/usr/bin/mpiexec.mpich"
    found = json.loads(mpigraft("check", mpich_stack, "--mpi", mpi, "--json"))
    (check,) = found["checks"]
    assert check["overrides"] == [str(site / "MPICH/system")]
    fates = {m["name"]: m["programs"][0]["fate"] for m in check["modules"]}
    assert fates == {"One/1": "fits", "Two/1": "fits", "Cuda/1": "kept"}
    mpigraft("inject", mpich_stack, "--mpi", mpi)
    page, errors = start("inject", mpich_stack, "--verify")
    assert "MPI_Comm_spawn by mpiexec on mpich@4.0.2 ended with" in errors  # Debian's cannot
    assert f"{site}/MPICH/.mpigraft-system/generations/1/lib/libmpich.so.12" in page
    version = subprocess.run(["mpichversion"], capture_output=True, text=True, check=True)
    injected = version.stdout.split()[2]
    for name, number in (("One", injected), ("Cuda", mpis[Family.MPICH].name.rpartition("-")[2])):
        program = mpich_stack / f"software/{name}/1/bin/{name.lower()}_hello"
        done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout.split()[2] == number


@pytest.mark.parametrize(
    ("part", "library"),
    [("libfabric", "libfabric.so.1"), pytest.param("ucx", "libucp.so.0", marks=pytest.mark.long)],
)
def test_a_network_library_alone_goes_below_the_stacks_own_mpi(
    stack: Stack, fresh_home: Path, tmp_path: Path, part: str, library: str
) -> None:
    """It is the one that ranks map, until the stack as it is was asked for. A program that needs
    more of it is refused."""
    mpigraft("inject", stack.software, "--mpi", "openmpi@5", "--replace", part)
    page = " ".join(mpigraft("check", stack.software, "--full").split())
    assert "nothing injected" not in page
    assert f"injected {library} of openmpi@5.0.11 (generation 1)" in page
    assert page.startswith("fits: yes")
    page, errors = start("inject", stack.software, "--verify")
    assert f"/.mpigraft-system/generations/1/lib/{library[:5]}" in "".join(page.split())
    assert f"{part} of openmpi@5.0.11, generation 1" in page
    alone = "osu_latency without a launcher ended with 1, on the stack's own libfabric and UCX too"
    assert alone in " ".join(errors.split())  # it was built for another folder
    assert "launcher" not in page
    assert "Open MPI v4.1.8" in page
    traced = f"LD_TRACE_LOADED_OBJECTS=1 {stack.heat}; exec {stack.heat} 64 20"
    for replaced, where in (("libfabric", "generations/1"), ("nothing", str(stack.mpi))):
        job = ("run", "--stack", stack.software, "--replace", replaced, "-n", "2")
        output = mpigraft(*job, "--", "sh", "-c", traced)
        assert "library Open MPI v4.1.8" in output
        (path,) = {Path(word).resolve() for word in output.split() if word.endswith(f"/{library}")}
        assert where in str(path)
    name, over = {"libfabric": "ofi-tcp", "ucx": "ucx"}[part], "2023.06-generic+libfabric"
    words = ("--stack", stack.software, "--mpi", "openmpi@5", "--transport", name,
             "--dry-run", "--full")  # fmt: skip
    arms = re.findall(r"^configuration: (.+)$", mpigraft("bench", *words), re.MULTILINE)
    assert arms == [f"openmpi@5.0.11/{name}", f"2023.06-generic:openmpi@4.1.8/{name}",
                    f"{over}:openmpi@4.1.8/{name}"]  # fmt: skip
    newer = needing_newer(stack, library, tmp_path)
    argv = [sys.executable, "-m", "mpigraft.cli.main", "run", "--stack", str(stack.software),
            "--replace", "libfabric", "-n", "2", "--", str(newer)]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    refused = f"newer does not run on what is injected, {library} of openmpi@5.0.11"
    assert (done.returncode, refused in " ".join(done.stderr.split())) == (1, True), done.stderr


def needing_newer(stack: Stack, library: str, folder: Path) -> Path:
    """A program as those of the stack, which needs a node that no release of a library has."""
    nodes = folder / "nodes"
    nodes.write_text("NEWER_99 { global: newer; };\n")
    flags = [f"-Wl,--version-script={nodes}"]
    own = compiled(folder / library, "void newer(void) {}\n", soname=library, flags=flags)
    search = ":".join(map(str, (*stack.overrides(), folder, stack.mpi / "lib")))
    words = ["-xc", "-", "-xnone", stack.mpi / "lib/libmpi.so.40", own, "-o", folder / "newer",
             f"-Wl,--disable-new-dtags,-rpath,{search}",
             f"-Wl,--dynamic-linker={stack.loader}", "-Wl,--allow-shlib-undefined"]  # fmt: skip
    text = f"{CALLS}void newer(void);\nint main(void) {{ newer(); return use(); }}\n"
    subprocess.run(["gcc", *map(str, words)], input=text, text=True, check=True)
    return folder / "newer"
