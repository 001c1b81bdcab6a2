"""`--replace libfabric` into a real guest: the ranks map that one, or it is said."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.images import Images
from tests.testbed.conftest import Need

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

OFI = {
    "OMPI_MCA_pml": "cm",
    "OMPI_MCA_mtl": "ofi",
    "OMPI_MCA_mtl_ofi_provider_include": "tcp;ofi_rxm",
}


@pytest.mark.parametrize("engine", ["bwrap", pytest.param("apptainer", marks=pytest.mark.long)])
def test_another_libfabric_than_the_plans_ends_with_5(
    engine: str, need: Need, images: Images, outside: Mapping[str, str], tmp_path: Path
) -> None:
    """A folder with the guest's own libfabric, bound and searched first, as sites do it."""
    need(engine)
    image = images.folder("bookworm")
    (tmp_path / "lib").mkdir()
    own = image / "usr/lib/x86_64-linux-gnu/libfabric.so.1"
    shutil.copy(own.resolve(), tmp_path / "lib/libfabric.so.1")
    words = ["--image", str(image), "--engine", engine, "--replace", "libfabric"]
    words += ["--mpi", "openmpi@4.1.4", "-n", "2", "--bind", f"{tmp_path}/lib:/opt/site:ro"]
    words += [word for name, value in OFI.items() for word in ("--env", f"{name}={value}")]
    environ = {**outside, "MPIGRAFT_HOME": str(tmp_path / "home")}

    def ran(*more: str) -> subprocess.CompletedProcess[str]:
        entry = [sys.executable, "-m", "mpigraft.cli.entry", "run"]
        return subprocess.run(
            [*entry, *words, *more, "--", "/opt/app/hello"],
            env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    fine = ran()
    assert fine.returncode == 0, fine.stderr
    other = [ran("--env", "LD_LIBRARY_PATH=/opt/site") for _ in range(2)]  # planned, and kept
    for ended in other:
        assert ended.returncode == 5, ended.stderr
        assert "/opt/site/libfabric.so.1" in ended.stderr
        assert "the bytes went through another libfabric or UCX" in ended.stderr
