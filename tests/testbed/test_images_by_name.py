"""Images that an engine fetches: from a registry on this machine, by podman and by Apptainer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.images import Images
from testbed.registry import serving
from tests.testbed.conftest import Need

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root, pytest.mark.long]

HELLO = "/opt/app/hello"


@pytest.mark.parametrize("engine", ["podman", "apptainer"])
def test_an_image_of_a_registry_runs_grafted(
    outside: Mapping[str, str], images: Images, need: Need, engine: str, tmp_path: Path
) -> None:
    need(engine)
    parts = outside["PATH"].split(":")
    path = ":".join(p for p in parts if engine == "apptainer" or "apptainer" not in p)
    settings = tmp_path / "registries.conf"
    environ = {**outside, "PATH": path, "CONTAINERS_REGISTRIES_CONF": str(settings)}

    def run(image: str) -> subprocess.CompletedProcess[str]:
        words = ("run", "--image", image, "--mpi", "openmpi@4.1.8", "-n", "2", "--", HELLO)
        return subprocess.run(
            [sys.executable, "-m", "mpigraft.cli.entry", *words],
            capture_output=True, text=True, timeout=500, env=environ, cwd=tmp_path,
        )  # fmt: skip

    with serving(images.oci("bookworm")) as host:
        settings.write_text(f'[[registry]]\nlocation = "{host}"\ninsecure = true\n')
        name = f"docker://{host}/site/app:1"
        done = run(name)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("of SIZE 2 LIBRARY Open MPI v4.1.8") == 2
    again = run(name)  # the registry is gone: what was fetched is used
    assert again.returncode == 0, again.stderr
    other = run(f"docker://{host}/site/other:1")
    assert other.returncode == 3
    assert f"{engine} could not fetch docker://{host}/site/other:1" in other.stderr
    assert "refused" in other.stderr


@pytest.mark.covering
def test_podman_runs_an_oci_archive(
    outside: Mapping[str, str], images: Images, need: Need, tmp_path: Path
) -> None:
    need("podman")
    words = (
        "--image",
        f"oci-archive:{images.oci('bookworm')}",
        "--mpi",
        "openmpi@4.1.8",
        "-n",
        "2",
    )
    done = subprocess.run(
        [sys.executable, "-m", "mpigraft.cli.entry", "run", *words, "--", HELLO],
        capture_output=True, text=True, timeout=500, env=dict(outside), cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("of SIZE 2 LIBRARY Open MPI v4.1.8") == 2
