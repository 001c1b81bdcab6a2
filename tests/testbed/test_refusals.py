"""A refusal names what would work, and that does work."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.images import Images

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

Done = subprocess.CompletedProcess[str]


def mpigraft(outside: Mapping[str, str], cwd: Path, *words: object) -> Done:
    argv = [sys.executable, "-m", "mpigraft.cli.entry", *map(str, words)]
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=300, env=dict(outside), cwd=cwd
    )


def test_the_mpi_that_a_refusal_names_runs_the_job(
    outside: Mapping[str, str], images: Images, tmp_path: Path
) -> None:
    """Of the module mpi_f08, which Open MPI 5's wheel lacks: 4.1.8 lets the image's own stay."""
    of = ("--image", images.folder("bookworm"), "--engine", "bwrap", "-n", 2)
    program = ("--", "/opt/app/hello_f08")
    refused = mpigraft(outside, tmp_path, "run", *of, "--mpi", "openmpi@5", *program)
    assert refused.returncode == 1, refused.stderr
    named = re.search(r"what to do: --mpi (\S+) fits, which was checked", refused.stderr)
    assert named, refused.stderr
    done = mpigraft(outside, tmp_path, "run", *of, "--mpi", named[1], *program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("of SIZE 2") == 2, done.stdout
    # Where a site has fixed the MPI, none is named.
    profile = tmp_path / "site.toml"
    profile.write_text('[run]\nmpi = "openmpi@5"\n[policy]\nfixed = ["mpi"]\n')
    sited = {**outside, "MPIGRAFT_SITE": str(profile)}
    refused = mpigraft(sited, tmp_path, "run", *of, *program)
    assert refused.returncode == 1
    assert "--mpi" not in refused.stderr
    assert "use a host MPI" not in refused.stderr
    ask = "ask those who keep the site's profile, which does not leave the rest to users"
    assert f"{ask} ({profile}:2)" in refused.stderr
    # Nor one that the transport, which was asked for, does not go with.
    refused = mpigraft(
        outside, tmp_path, "run", *of, "--mpi", "openmpi@5", "--transport", "ofi-lnx", *program
    )  # fmt: skip
    assert refused.returncode == 1
    assert "no other MPI of this machine does" in refused.stderr, refused.stderr


def test_a_program_of_this_machine_is_told_what_does(
    outside: Mapping[str, str], tmp_path: Path
) -> None:
    """A program whose own search path leads to one MPI, under another: with --image it would."""
    image = Path(outside["MPIGRAFT_HOME"]) / "mpi/openmpi-4.1.8"
    program = tmp_path / "app"
    source = tmp_path / "app.c"
    source.write_text("#include <mpi.h>\nint main(int c, char **v)\n"
                      "{ MPI_Init(&c, &v); return MPI_Finalize(); }\n")  # fmt: skip
    compile_ = ("cc", source, f"-I{image}/include", f"-Wl,-rpath,{image}/lib,--disable-new-dtags",
                f"{image}/lib/libmpi.so.40", "-o", program)  # fmt: skip
    subprocess.run([*map(str, compile_)], check=True)
    no = mpigraft(outside, tmp_path, "run", "--mpi", "openmpi@5", "-n", 1, "--", program)
    assert no.returncode == 1, no.stderr
    assert "--mpi openmpi@4.1.8 fits, which was checked" in no.stderr
    assert f"--image {program} puts it under the program, which was checked" in no.stderr
    way = ("--image", program, "--mpi", "openmpi@5")
    done = mpigraft(outside, tmp_path, "run", *way, "-n", 1, "--", program)
    assert done.returncode == 0, done.stderr
