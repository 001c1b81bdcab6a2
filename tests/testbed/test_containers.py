"""check, plan, run and bench on containers, as a person types them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from testbed.engines import Engines
from testbed.images import Images
from tests.builders.code_blocks import commands_for, shortened, typed
from tests.testbed.conftest import two_ranks

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]
HELLO = "/opt/app/hello"
Done = subprocess.CompletedProcess[str]


@pytest.fixture
def mpigraft(outside: Mapping[str, str]):  # type: ignore[no-untyped-def]
    def start(*words: object, cwd: Path = Path("/")) -> Done:
        argv = [sys.executable, "-m", "mpigraft.cli.entry", *map(str, words)]
        return subprocess.run(
            argv, capture_output=True, text=True, timeout=300, env=dict(outside), cwd=cwd
        )

    return start


def _fit(done: Done) -> dict[str, object]:
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("program", "code"),
    [(HELLO, 0), pytest.param("/opt/app/hello_f08", 1, marks=pytest.mark.long)],
)
def test_check_says_the_same_of_every_form(  # type: ignore[no-untyped-def]
    mpigraft, images: Images, engines: Engines, program: str, code: int
) -> None:
    """A folder, a SIF and an archive of one image: nothing is unpacked or run for it."""
    forms = [images.folder("bookworm"), images.oci("bookworm")]
    if not engines.why_no_apptainer:
        forms.append(images.sif("bookworm", engines.apptainer))
    for form in forms:
        done = mpigraft("check", form, "--mpi", "openmpi@5", "--program", program)
        assert done.returncode == code, f"{form}: {done.stdout}{done.stderr}"
        assert done.stdout.startswith("fits: yes" if code == 0 else "fits: no")


@pytest.mark.long
def test_the_tutorial_of_a_first_container(
    outside: Mapping[str, str], images: Images, tmp_path: Path
) -> None:
    """Typed as it stands, with the image and the engine that it was written with."""
    (tmp_path / "hello").symlink_to(images.folder("bookworm"))
    (tmp_path / "site.toml").write_text('[run]\nengine = "bwrap"\n')
    env = {**outside, "MPIGRAFT_SITE": str(tmp_path / "site.toml")}
    lines = commands_for(__file__, "docs/tutorials/first-container.md")
    check, one, refused, run, other, measured = (
        typed(shortened(line), env=env, cwd=tmp_path, timeout=300) for line in lines
    )
    assert "openmpi@5.0.11" in check.stdout, check.stderr
    assert one.stdout.startswith("fits: yes"), one.stderr
    assert refused.stdout.splitlines()[-1] == "1", refused.stderr
    ranks = sorted(line.partition(",")[0] for line in run.stdout.splitlines())
    assert ranks == two_ranks("Open MPI v5.0.11"), run.stderr
    assert other.stdout.splitlines()[-1] == "5", other.stderr
    assert "OMPI_MCA_btl" in other.stderr
    assert measured.returncode == 0, measured.stderr
    assert "curves" in measured.stdout


@pytest.mark.long
def test_the_quick_start_of_a_container(
    outside: Mapping[str, str], engines: Engines, images: Images, tmp_path: Path
) -> None:
    """The README's lines, typed on the image's own program; this machine has no Slingshot."""
    if engines.why_no_apptainer:
        pytest.skip(engines.why_no_apptainer)
    (tmp_path / "app.sif").symlink_to(images.sif("bookworm", engines.apptainer))
    codes = {}
    for line in commands_for(__file__, "README.md"):
        own = shortened(line.replace("/opt/app/solver", HELLO))
        done = typed(own, env=dict(outside), cwd=tmp_path, timeout=300)
        codes[line.partition("#")[0].strip()] = (done.returncode, done.stderr)
    missing = {line: why for line, why in codes.items() if "ofi-cxi" in line}
    assert [code for code, _ in missing.values()] == [3]
    assert {line: why for line, why in codes.items() if why[0] and line not in missing} == {}


def test_check_of_another_architecture(mpigraft, images: Images) -> None:  # type: ignore[no-untyped-def]
    done = mpigraft("check", images.folder("arm64"), "--mpi", "openmpi@5")
    assert done.returncode == 1
    assert "aarch64" in done.stdout
    assert "x86_64" in done.stdout


def test_check_elsewhere_says_what_check_here_says(  # type: ignore[no-untyped-def]
    mpigraft, images: Images, tmp_path: Path
) -> None:
    described = tmp_path / "machine.json"
    described.write_text(mpigraft("discover", "--abi", "--json").stdout)
    for program in (HELLO, "/opt/app/hello_cxx"):
        words = ("check", images.folder("bookworm"), "--mpi", "openmpi@5", "--json")
        here = mpigraft(*words, "--program", program)
        there = mpigraft(*words, "--program", program, "--machine", described)
        assert here.returncode == there.returncode
        assert _fit(here) == _fit(there)


def test_a_script_that_needs_no_mpigraft(  # type: ignore[no-untyped-def]
    mpigraft,
    images: Images,
    mpis: Mapping[Family, Path],
    outside: Mapping[str, str],
    tmp_path: Path,
) -> None:
    script = tmp_path / "app.sh"
    folder = images.folder("bookworm")
    done = mpigraft("plan", folder, "--mpi", "mpich@5", "--engine", "bwrap", "-o", script,
                    "--program", HELLO)  # fmt: skip
    assert done.returncode == 1, "a program of another ABI is refused"
    assert not script.exists()
    done = mpigraft("plan", folder, "--mpi", "openmpi@5", "--engine", "bwrap", "--program", HELLO,
                    "--as", "shell", "-o", script)  # fmt: skip
    assert done.returncode == 0, done.stderr
    prefix = mpis[Family.OPENMPI]
    mpirun = (prefix / "bin/mpirun", "--allow-run-as-root", "--bind-to", "none", "-n", "2")
    started = subprocess.run(
        [*mpirun, script, HELLO],
        capture_output=True, text=True, timeout=60, cwd="/",
        env={"PATH": "/usr/bin:/bin", "HOME": outside["HOME"], "OPAL_PREFIX": str(prefix),
             "LD_LIBRARY_PATH": str(prefix / "lib")},
    )  # fmt: skip
    assert started.returncode == 0, started.stderr
    lines = sorted(line.partition(",")[0] for line in started.stdout.splitlines())
    assert lines == two_ranks("Open MPI v5.0.11")


def test_a_lone_process_in_an_image_starts_what_its_mpi_starts(  # type: ignore[no-untyped-def]
    mpigraft, images: Images, tmp_path: Path
) -> None:
    """Open MPI 4 starts its daemon then; the image has none, and no ssh, which that looks for."""
    script = tmp_path / "app.sh"
    done = mpigraft("plan", images.folder("bookworm-bare"), "--mpi", "openmpi@4.1.8", "--engine",
                    "bwrap", "--program", HELLO, "--as", "shell", "-o", script)  # fmt: skip
    assert done.returncode == 0, done.stderr
    alone = subprocess.run([script, HELLO], capture_output=True, text=True, timeout=60, cwd="/tmp")
    assert alone.returncode == 0, alone.stdout + alone.stderr
    assert "RANK 0 of SIZE 1 LIBRARY Open MPI v4.1.8" in alone.stdout


def test_bench_takes_a_container_as_configurations(  # type: ignore[no-untyped-def]
    mpigraft, images: Images, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    done = mpigraft(
        "--store", store, "bench", "--here", "--image", images.folder("bookworm"), "--engine",
        "bwrap", "--mpi", "openmpi@5", "--transport", "ob1-sm", "--benchmark", "latency", "--max",
        "64", "--ms-per-size", "1", "--rounds", "1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    shown = mpigraft("--store", store, "results", "show", "--json")
    rows = json.loads(shown.stdout)["configurations"]
    assert {row["id"] for row in rows if row["proven"]} == {
        "openmpi@5.0.11/ob1-sm",
        "openmpi@5.0.11/ob1-sm@bookworm",
        "bookworm:openmpi@4.1.4/ob1-sm",
    }
    compared = mpigraft("--store", store, "compare", "--json")
    (comparison, *_) = json.loads(compared.stdout)["comparisons"]
    assert comparison["cells"]
    assert json.loads(compared.stdout)["baseline"] == "openmpi@5.0.11/ob1-sm"
