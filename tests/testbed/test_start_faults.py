"""Jobs of this node that fail at their start for want of something: what `mpigraft run` names."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.images import Images
from tests.arrival import RUN
from tests.testbed.conftest import Need

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]
HELLO = "/opt/app/hello"


def started(
    images: Images,
    env: Mapping[str, str],
    engine: str,
    cwd: Path,
    mount: str = "",
    program: tuple[str, ...] = (HELLO,),
) -> tuple[int, str]:
    """Exit code and words of MPICH in an image, in a mount namespace of its own."""
    words = [*RUN, "--image", str(images.folder("bookworm-mpich")), "--engine", engine,
             "--mpi", "mpich@5", "-n", "2", "--", *program]  # fmt: skip
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{mount or 'true'} && exec {shlex.join(words)}"],
        env=env, cwd=cwd, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "engine", ["bwrap", *(pytest.param(e, marks=pytest.mark.long) for e in ("podman", "apptainer"))]
)
def test_a_full_dev_shm_is_named(
    outside: Mapping[str, str], images: Images, need: Need, engine: str, tmp_path: Path
) -> None:
    """MPICH ends by SIGBUS, of which its launcher says "a problem with your application"."""
    need(engine)
    mount = "mount -t tmpfs -o size=1m tmpfs /dev/shm"
    code, text = started(images, outside, engine, tmp_path, mount)
    assert code != 0
    assert re.search(r"mpigraft: /dev/shm of \S+ has \d of 1 MiB free", text), text
    assert "the reason is in the output" not in text


def test_a_small_dev_shm_is_named_if_a_rank_ends_by_sigbus(
    outside: Mapping[str, str], images: Images, need: Need, tmp_path: Path
) -> None:
    """Most of it is free again then: the file of a large window goes with its ranks."""
    need("bwrap")
    mount = "mount -t tmpfs -o size=100m tmpfs /dev/shm"
    program = ("/bin/sh", "-c", f"{HELLO} && kill -BUS $$")
    code, text = started(images, outside, "bwrap", tmp_path, mount, program)
    assert code == 135, text
    assert re.search(r"mpigraft: /dev/shm of \S+ has \d+ of 100 MiB free", text), text


def test_a_graft_that_cannot_be_executed_is_refused(
    outside: Mapping[str, str], images: Images, tmp_path: Path
) -> None:
    """It ended with 126: env(1) may not execute the relay, nor the loader map a library. So did a
    start that was kept before."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "mpi").symlink_to(Path(outside["MPIGRAFT_HOME"]) / "mpi")
    mount = f"mount --bind {home} {home} && mount -o remount,bind,noexec {home}"
    env = {**outside, "MPIGRAFT_HOME": str(home)}
    for _ in range(2):
        code, text = started(images, env, "bwrap", tmp_path, mount)
        assert code == 3, text
        code, kept = started(images, env, "bwrap", tmp_path)
        assert code == 0, kept
    assert "is on a file system that is mounted noexec [folder-noexec]" in text
    assert "set MPIGRAFT_HOME to a folder of another file system" in text


@pytest.mark.long
def test_podman_that_may_not_raise_limits_is_explained(
    outside: Mapping[str, str], images: Images, need: Need, tmp_path: Path
) -> None:
    """And the words that it names are those with which podman starts the ranks."""
    need("podman")
    if int(re.findall(r"CapEff:\s*(\w+)", Path("/proc/self/status").read_text())[0], 16) >> 24 & 1:
        pytest.skip("this process may raise limits")
    settings = tmp_path / "containers.conf"
    settings.write_text('[engine]\nruntime = "runc"\n')
    env = {**outside, "CONTAINERS_CONF": str(settings)}
    code, text = started(images, env, "podman", tmp_path)
    assert code == 126
    named = re.search(r"below \[run.engine_option\]: (podman = \[.*?\])", text)
    assert named, text
    site = tmp_path / "site.toml"
    site.write_text(f"[run.engine_option]\n{named[1]}\n")
    code, text = started(images, {**env, "MPIGRAFT_SITE": str(site)}, "podman", tmp_path)
    assert (code, text.count("RANK")) == (0, 2), text
