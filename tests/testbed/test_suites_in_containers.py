"""Benchmarks of other suites in containers, in every engine: of the image, or bound from here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family, LaunchState
from mpigraft.store import Store
from testbed.engines import Engines
from testbed.images import Images
from tests.native.native_world import compile_c
from tests.testbed.conftest import Need

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]
Done = subprocess.CompletedProcess[str]
HELLO = 'hello={command="/opt/app/hello", figure="SIZE (.)", take="first", better="higher"}'
SHORT = ("--rounds", "1", "--max", "8", "--ms-per-size", "1", "--quick")
OTHERS = [
    pytest.param(engine, marks=pytest.mark.long)
    for engine in ("podman", "apptainer", "charliecloud")
]
VARIANTS = ("--guest", "native", "--guest", "grafted", "--guest", "own")


@pytest.fixture
def bench(outside: Mapping[str, str], tmp_path: Path):  # type: ignore[no-untyped-def]
    def start(*words: object) -> Done:
        argv = [sys.executable, "-m", "mpigraft.cli.entry", "--store", str(tmp_path / "store")]
        return subprocess.run(
            [*argv, "bench", "--here", *map(str, words)],
            capture_output=True, text=True, timeout=300, env=dict(outside), cwd=tmp_path,
        )  # fmt: skip

    return start


@pytest.fixture
def osu(mpis: Mapping[Family, Path], tmp_path: Path) -> Path:
    """A build for Open MPI's binary interface; its options are those of version 5.9."""
    prefix = mpis[Family.OPENMPI]
    (tmp_path / "osu").mkdir()
    words = ("-isystem", prefix / "include", prefix / "lib/libmpi.so.40")
    compile_c("osu_latency.c", tmp_path / "osu/osu_latency", *words)
    return tmp_path / "osu"


def _measured(store: Path) -> dict[str, set[str]]:
    """{benchmark: ids of the configurations that have a value of it}."""
    opened = Store(store)
    identity = opened.campaign().id
    names = {c.key: c.id for c in opened.configurations(identity)}
    launches = opened.launches(identity)
    assert {x.state for x in launches} == {LaunchState.OK}, [x.findings for x in launches]
    measured: dict[str, set[str]] = {}
    for value in opened.values(identity):
        measured.setdefault(value.benchmark, set()).add(names[value.configuration])
    return measured


@pytest.mark.parametrize("engine", ["bwrap", *OTHERS])
def test_a_round_mixes_suites_in_every_engine(  # type: ignore[no-untyped-def]
    bench, osu: Path, images: Images, engines: Engines, need: Need, engine: str, tmp_path: Path
) -> None:
    """A build of this machine is bound into the container, an application is the image's own."""
    need(engine)
    image = (
        images.sif("bookworm", engines.apptainer)
        if engine == "apptainer"
        else engines.image("bookworm", engine)
    )
    done = bench(
        "--image", image, "--engine", engine, "--mpi", "openmpi@5", "--transport", "ob1-sm",
        "--benchmark", "latency,osu:latency,app:hello", "--osu", osu, "--app", HELLO, *SHORT,
        *VARIANTS,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    name = image.name
    inside = {f"openmpi@5.0.11/ob1-sm@{name}", f"{name}:openmpi@4.1.4/ob1-sm"}
    assert _measured(tmp_path / "store") == {
        "native:latency": {"openmpi@5.0.11/ob1-sm", *inside},
        "osu:latency": {"openmpi@5.0.11/ob1-sm", *inside},
        "app:hello": inside,
    }


@pytest.mark.long
@pytest.mark.parametrize("engine", ["podman", "bwrap"])
def test_intels_benchmarks_run_in_a_container_under_each_mpi_of_their_interface(  # type: ignore[no-untyped-def]
    bench, images: Images, need: Need, engine: str, tmp_path: Path
) -> None:
    """The image's own MPI has another soname: that pair is left out, with the reason."""
    need(engine)
    words = (
        "--image", images.folder("bookworm-mpich"), "--engine", engine, "--mpi", "mpich@5",
        "--mpi", "intel", "--transport", "ucx", "--transport", "shm", "--benchmark",
        "latency,imb:PingPong,imb:Allreduce", *SHORT, *VARIANTS,
    )  # fmt: skip
    done = bench(*words)
    assert done.returncode == 0, done.stderr
    here = {"mpich@5.0.2/ucx", "intel@2021.18.1/shm"}
    able = here if engine == "bwrap" else {"mpich@5.0.2/ucx"}  # podman closes Intel's PMI_FD
    every = {*here, *(f"{one}@bookworm-mpich" for one in able)}
    own = "bookworm-mpich:mpich@4.0.2/ucx"
    assert _measured(tmp_path / "store") == {
        "imb:PingPong": every, "imb:Allreduce": every, "native:latency": {*every, own},
    }  # fmt: skip
    shown = bench(*words, "--dry-run", "--full").stdout
    assert f"left out: {own} imb:PingPong" in shown
    assert "bound into the container: " in shown


def test_a_build_of_the_image_is_measured_where_this_machine_has_none(  # type: ignore[no-untyped-def]
    bench, osu: Path, images: Images, tmp_path: Path
) -> None:
    image = tmp_path / "site"
    shutil.copytree(images.folder("bookworm"), image, symlinks=True, copy_function=_linked)
    shutil.copytree(osu, image / "opt/osu/libexec/pt2pt")
    words = (
        "--image", image, "--engine", "bwrap", "--mpi", "openmpi@5", "--transport", "ob1-sm",
        "--benchmark", "osu:latency", *SHORT,
    )  # fmt: skip
    named = bench(*words, "--osu", "/opt/osu", "--guest", "native", "--guest", "grafted")
    assert named.returncode == 1
    assert "no osu_latency in /opt/osu" in named.stderr
    done = bench(*words, "--osu", "/opt/osu")
    assert done.returncode == 0, done.stderr
    inside = {"openmpi@5.0.11/ob1-sm@site", "site:openmpi@4.1.4/ob1-sm"}
    assert _measured(tmp_path / "store") == {"osu:latency": inside}
    absent = bench(*words, "--osu", "/opt/none")
    assert absent.returncode == 2
    assert "--osu /opt/none: no such folder, neither in site nor on this machine" in absent.stderr


def _linked(source: str, to: str) -> None:
    Path(to).hardlink_to(source)
