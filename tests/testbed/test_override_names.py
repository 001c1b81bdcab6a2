"""A stack of MPICH with several overrides, and an MPICH of the host with another soname."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family

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
def stack(mpis: Mapping[Family, Path], tmp_path: Path) -> Path:
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


def mpigraft(*words: str | Path, code: int = 0) -> str:
    argv = [sys.executable, "-m", "mpigraft.cli.main", *map(str, words)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_an_mpi_goes_into_the_override_that_is_named_for_it(
    stack: Path, tmp_path: Path, mpis: Mapping[Family, Path]
) -> None:
    """Not into the first, libfabric's. What a site put into the accelerator's stays as it is."""
    site = tmp_path / "site/rpath_overrides"
    (site / "accel/MPICH/system").mkdir(parents=True)
    (site / "accel/MPICH/system/lib").symlink_to(mpis[Family.MPICH] / "lib")
    mpi = "/usr/bin/mpiexec.mpich"
    found = json.loads(mpigraft("check", stack, "--mpi", mpi, "--json"))
    (check,) = found["checks"]
    assert check["overrides"] == [str(site / "MPICH/system")]
    fates = {m["name"]: m["programs"][0]["fate"] for m in check["modules"]}
    assert fates == {"One/1": "fits", "Two/1": "fits", "Cuda/1": "kept"}
    mpigraft("inject", stack, "--mpi", mpi)
    page = mpigraft("inject", stack, "--verify")
    assert f"{site}/MPICH/.mpigraft-system/generations/1/lib/libmpich.so.12" in page
    version = subprocess.run(["mpichversion"], capture_output=True, text=True, check=True)
    injected = version.stdout.split()[2]
    for name, number in (("One", injected), ("Cuda", mpis[Family.MPICH].name.rpartition("-")[2])):
        program = stack / f"software/{name}/1/bin/{name.lower()}_hello"
        done = subprocess.run([program], capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout.split()[2] == number
