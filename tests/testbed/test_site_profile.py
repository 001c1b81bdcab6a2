"""A site's profile for real: an ordered list of MPIs, options of the engine, names of images."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.images import Images

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

HELLO = "/opt/app/hello"


def test_one_line_for_users_of_two_abis(
    outside: Mapping[str, str], images: Images, tmp_path: Path
) -> None:
    profile = tmp_path / "site.toml"
    profile.write_text(
        '[run]\nmpi = ["cray-mpich", "openmpi@5", "intel"]\nengine = "bwrap"\nranks = 2\n'
        '[run.engine_option]\nbwrap = ["--setenv", "FROM_SITE", "yes"]\n'
        f'[images]\nompi = "{images.folder("bookworm")}"\n'
        f'mpich = "{images.folder("bookworm-mpich")}"\n'
    )
    environ = {**outside, "MPIGRAFT_SITE": str(profile)}

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "mpigraft.cli.entry", *map(str, words)]
        return subprocess.run(
            argv, capture_output=True, text=True, timeout=300, env=environ, cwd=tmp_path
        )

    first = run("run", "--image", "ompi", "--explain", "--", HELLO)
    assert first.stdout.count("of SIZE 2 LIBRARY Open MPI v5") == 2, first.stderr
    second = run("run", "--image", "mpich", "--explain", "--", HELLO)
    assert second.stdout.count("of SIZE 2 LIBRARY Intel(R) MPI") == 2, second.stderr
    order = f"[{profile}:2: the first that fits of cray-mpich, openmpi@5, intel]"
    for done in (first, second):
        assert order in done.stderr
        assert f"engine options: --setenv FROM_SITE yes  [{profile}:5]" in done.stderr
    assert f"[command line, mpich of {profile}:9]" in second.stderr
    told = run("run", "--image", "ompi", "--no-proof", "--", "sh", "-c", "echo $FROM_SITE")
    assert told.stdout.split() == ["yes", "yes"], told.stderr
    planned = run("plan", "ompi", "--mpi", "openmpi@5", "--program", HELLO, "--as", "command")
    assert "--setenv FROM_SITE yes" in planned.stdout, planned.stderr
    assert run("check", "ompi", "--mpi", "openmpi@5", "--program", HELLO).returncode == 0
    none = run("run", "--image", "omp", "--", HELLO)
    assert none.returncode == 2
    assert f"or an image of {profile}: ompi, mpich" in none.stderr


def test_a_campaign_and_a_profile_start_the_engine_with_the_sites_options(
    outside: Mapping[str, str], images: Images, tmp_path: Path
) -> None:
    """An option that bubblewrap does not know ends each start of it."""
    profile = tmp_path / "site.toml"
    profile.write_text(
        f'[run]\nengine = "bwrap"\nengine_option = {{ bwrap = ["--no-such"] }}\n'
        f'[images]\nompi = "{images.folder("bookworm")}"\n'
    )
    environ = {**outside, "MPIGRAFT_SITE": str(profile)}
    campaign = ("--transport", "ob1-sm", "--guest", "grafted", "--quick", "--here")
    jobs = (("bench", *campaign), ("profile", "-n", "1"), ("record", "-n", "1"))
    for command, *words in jobs:
        argv = [sys.executable, "-m", "mpigraft.cli.entry", "--store", str(tmp_path / "store")]
        argv += [command, "--image", "ompi", "--mpi", "openmpi@5", *words]
        argv += [] if command == "bench" else ["--", HELLO]
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=300, env=environ, cwd=tmp_path
        )
        assert done.returncode != 0, command
        problem = "nothing ran" if command == "bench" else "Unknown option --no-such"
        assert problem in done.stderr, f"{command}: {done.stderr}"
