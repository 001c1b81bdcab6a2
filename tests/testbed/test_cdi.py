"""A device of the Container Device Interface, which a site's profile has podman give to ranks.

podman 4.3 looks for specifications in /etc/cdi and /run/cdi alone; the job gets a /run/cdi of its
own, in a mount namespace.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.images import Images
from tests.testbed.conftest import Need

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root, pytest.mark.long]

DEVICE = "site.example/gpu"
OWN_FOLDER = 'mount -t tmpfs none /run && mkdir /run/cdi && cp "$0" /run/cdi && exec "$@"'


@pytest.mark.covering
def test_ranks_get_a_device_of_the_site(
    outside: Mapping[str, str], images: Images, need: Need, tmp_path: Path
) -> None:
    need("podman")
    driver = tmp_path / "driver"
    driver.mkdir()
    (driver / "libgpu.so").write_text("")
    mount = {"hostPath": str(driver), "containerPath": "/from-cdi", "options": ["ro", "rbind"]}
    edits = {"env": ["FROM_CDI=yes"], "mounts": [mount]}
    specification = tmp_path / "site.json"
    device = {"name": "all", "containerEdits": edits}
    specification.write_text(
        json.dumps({"cdiVersion": "0.5.0", "kind": DEVICE, "devices": [device]})
    )
    profile = tmp_path / "site.toml"
    profile.write_text(f'[run.engine_option]\npodman = ["--device", "{DEVICE}=all"]\n')
    words = ("--image", images.folder("bookworm"), "--engine", "podman", "--mpi", "openmpi@4.1.8")
    look = "echo FROM=$FROM_CDI; ls /from-cdi"
    run = (sys.executable, "-m", "mpigraft.cli.entry", "run", *map(str, words), "-n", "1")
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", OWN_FOLDER, specification, *run, "--no-proof", "--",
         "sh", "-c", look],
        capture_output=True, text=True, timeout=300, cwd=tmp_path,
        env={**outside, "MPIGRAFT_SITE": str(profile)},
    )  # fmt: skip
    assert done.stdout.split() == ["FROM=yes", "libgpu.so"], done.stderr
