"""The C programs of the wheel for aarch64, under QEMU on another machine."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mpigraft.native.programs import PREBUILT
from testbed.images import Images
from testbed.kept import kept

pytestmark = [pytest.mark.long, pytest.mark.testbed, pytest.mark.mpi]
PACKAGE = (
    "qemu-user-static"  # unpacked alone: installed, it would start programs that cannot run here
)
EMULATOR = "qemu-aarch64-static"
PROGRAMS = PREBUILT / "aarch64"
VALUE = re.compile(r'"mpigraft":"value".*?"size":(\d+),.*"valid":true')
ONE_RANK = ("-E", "OMPI_MCA_pml=ob1", "-E", "OMPI_MCA_btl=self")


@pytest.fixture(scope="module")
def emulator(cache_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if known := shutil.which(EMULATOR):
        return Path(known)
    folder = tmp_path_factory.mktemp("qemu")

    def make(new: Path) -> None:
        script = f"apt-get download -q {PACKAGE} && dpkg-deb -x {PACKAGE}_*.deb root"
        done = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"Debian's {PACKAGE} cannot be had: {done.stderr.strip()[-200:]}")
        shutil.copy(folder / "root/usr/bin" / EMULATOR, new)

    return kept(cache_folder / EMULATOR, PACKAGE, make)


def test_programs_of_aarch64_start_and_one_measures(emulator: Path, images: Images) -> None:
    root = images.folder("arm64")

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        argv = [emulator, "-L", root, *words]
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=120)  # fmt: skip

    for program in PROGRAMS.glob("mpigraft-*"):
        done = run(program)
        assert done.returncode in (0, 1, 2), (program, done)
        assert program.name in done.stderr, (program, done)
    for program in PROGRAMS.glob("ompi/mpigraft-*"):
        done = run("-E", "LD_TRACE_LOADED_OBJECTS=1", program)
        assert "libmpi.so.40 => " in done.stdout, (program, done)
        assert "not found" not in done.stdout + done.stderr, (program, done)
    for library in (*PROGRAMS.glob("lib*.so"), *PROGRAMS.glob("ompi/lib*.so")):
        for built, refused in (
            (library, False),
            (PREBUILT / "x86_64" / library.relative_to(PROGRAMS), True),
        ):
            done = run("-E", f"LD_PRELOAD={built}", PROGRAMS / "mpigraft-guard")
            assert ("cannot be preloaded" in done.stderr) == refused, done.stderr
    done = run(
        *ONE_RANK, PROGRAMS / "ompi/mpigraft-bench", "--benchmark", "allreduce", "--max", "8"
    )
    assert done.returncode == 0, done.stderr
    assert VALUE.findall(done.stdout) == list("1248"), done.stdout
