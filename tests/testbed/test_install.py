"""What `make dist` makes, on bare Debians: an ordinary user in an empty home, without a network.
On Debian 11 with a Python that its administrator built, as a site's module is: it has none that is
new enough. And on nodes of Slurm that see the installation on a shared folder, and nothing else."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family, LaunchState
from mpigraft.core.process.command import run_command
from mpigraft.native.programs import PREBUILT
from mpigraft.store import Store
from testbed import rootfs
from testbed.cluster import Cluster, until
from testbed.easybuild import fetch_sources
from testbed.images import Images
from testbed.kept import kept, recipe
from testbed.rootfs import Root
from testbed.slurm import Slurm

PROJECT = rootfs.PROJECT
FOLDER = "/opt/a folder"
BUILD = """
apt-get -q update
apt-get -q -y install --no-install-recommends gcc libc6-dev make zlib1g-dev liblzma-dev \\
    libffi-dev libsqlite3-dev
mkdir /build
cd /build
tar -xf /python.tar --strip-components 1
./configure -q --prefix=/opt/python --disable-test-modules OPT='-O1 -DNDEBUG' \\
    LDFLAGS=-Wl,-rpath,/opt/python/lib
make -s -j2
make -s install
cp -L /usr/lib/*/libffi.so.7 /usr/lib/*/libsqlite3.so.0 /opt/python/lib
rm -r /opt/python/lib/python3.11/config-* /opt/python/lib/libpython3.11.a
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder dist/, of a copy of the tree: a build writes beside its sources."""
    folder = tmp_path_factory.mktemp("made")
    tree = folder / "tree"
    rootfs.copy_project(tree)
    shutil.copytree(PREBUILT, tree / PREBUILT.relative_to(PROJECT))
    wheel = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    steps: list[list[str | Path]] = [
        [*wheel, "--wheel-dir", folder, tree],
        [PROJECT / "tools/release/make.py", folder / "dist", "WHEEL"],
    ]
    for step in steps:
        words = [next(folder.glob("*.whl")) if word == "WHEEL" else word for word in step]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        done = run_command([sys.executable, *words], env=environment, limit_s=600)
        assert done.ok, done.text()
    return folder / "dist"


@pytest.fixture(scope="module")
def python(images: Images, cache_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tar with Python 3.11 for Debian 11 in opt/python, which is built once: in five minutes."""

    def make(new: Path) -> None:
        folder = tmp_path_factory.mktemp("python")
        root = Root(images.tar("bullseye"), folder / "root", folder / "cache", images.as_root)
        try:
            fetch_sources(["python3.11"], folder, "bookworm")
            root.do("cp", next(folder.glob("python3.11_*")), root.folder / "python.tar")
            done = root.enter(f"sh -ec {shlex.quote(BUILD)}", limit_s=900)
            assert done.ok, done.text()
            root.do("tar", "--create", "--file", new, "--directory", root.folder, "opt/python")
        finally:
            root.close()

    return kept(cache_folder / "python-bullseye.tar", recipe(BUILD), make)


def home_of(root: Root, made: Path, before: str = "true") -> Callable[[str], str]:
    """Bring what was made, make an ordinary user; how that one starts a line without a network."""
    root.do("cp", "--recursive", made, root.folder / FOLDER.lstrip("/"))
    user = rootfs.USER
    done = root.enter(f"useradd --create-home {user} && chmod -R a+rX '{FOLDER}' && {before}")
    assert done.ok, done.text()

    def run(command: str) -> str:
        done = root.enter(command, user=user, cwd=f"/home/{user}", offline=True)
        assert done.ok, f"{command}: exit {done.code}\n{done.text()}"
        return done.stdout.decode()

    return run


def install(run: Callable[[str], str], python: str) -> None:
    """Install the file, and from the wheelhouse."""
    for command in (
        f"cd '{FOLDER}' && sha256sum --check --quiet SHA256SUMS",
        f"{python} '{FOLDER}/mpigraft.pyz' --version",
        f"{python} '{FOLDER}/mpigraft.pyz' discover",
        f"{python} '{FOLDER}/mpigraft.pyz' doctor",
        f"tar -xf '{FOLDER}'/mpigraft-*-wheelhouse.tar && {python} -m venv 'an env'",
        "'an env/bin/pip' install --no-index --find-links mpigraft-*-wheelhouse mpigraft",
        "'an env/bin/mpigraft' discover",
    ):
        run(command)


@pytest.mark.long
@pytest.mark.testbed
@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_what_is_handed_out_works_without_a_network(
    made: Path, suite: str, cache_folder: Path, as_root: tuple[str, ...], tmp_path: Path
) -> None:
    root = Root(
        rootfs.make(suite, cache_folder, as_root),
        tmp_path / "root",
        cache_folder / f"inside-{suite}",
        as_root,
    )
    try:
        venv = "apt-get -q update && apt-get -q -y install python3-venv"
        install(home_of(root, made, venv), "python3")
    finally:
        root.close()


@pytest.mark.long
@pytest.mark.testbed
@pytest.mark.mpi
def test_debian_11_with_a_python_of_the_site_measures(
    made: Path, python: Path, images: Images, tmp_path: Path
) -> None:
    """Its own Open MPI is 4.1.0; its glibc is 2.31, with which C programs and packages load."""
    root = Root(images.tar("bullseye"), tmp_path / "root", tmp_path / "cache", images.as_root)
    try:
        root.do("tar", "--extract", "--file", python, "--directory", root.folder)
        run = home_of(root, made)
        install(run, "/opt/python/bin/python3.11")
        mpigraft = "'an env/bin/mpigraft' --store results"
        doctor = json.loads(run(f"{mpigraft} doctor --json"))
        (programs,) = (one for one in doctor["checks"] if one["name"] == "programs")
        assert programs["level"] == "info", programs
        run(f"{mpigraft} bench --here --mpi openmpi --transport ob1-tcp --transport ob1-sm"
            " --benchmark native:latency --max 64 --rounds 1")  # fmt: skip
        shown = json.loads(run(f"{mpigraft} results show --json"))["configurations"]
        assert {row["requested"]: row["proven"] for row in shown} == {
            "ob1-tcp": True, "ob1-sm": True,
        }  # fmt: skip
        assert run("getconf GNU_LIBC_VERSION") == "glibc 2.31\n"
    finally:
        root.close()


CAMPAIGN = """
name = "shared"
mpi = ["openmpi@5"]
transport = ["ofi-tcp"]
benchmark = ["latency"]
layout = ["2x1-none"]
max = 8
ms_per_size = 1
rounds = 2
"""


@pytest.mark.long
@pytest.mark.testbed
@pytest.mark.mpi
@pytest.mark.root
def test_nodes_need_the_installation_on_a_shared_folder_alone(
    made: Path, clusters: Callable[..., Cluster], slurms_here: None, mpis: Mapping[Family, Path]
) -> None:
    with clusters(2) as cluster, Slurm(cluster) as slurm:
        shared = cluster.shared
        root, home, results = (shared / name for name in ("apps", "home", "results"))
        fetched = mpis[Family.OPENMPI]
        shutil.copytree(fetched, home / "mpi" / fetched.name, symlinks=True)
        environment = {
            **slurm.environ, "HOME": str(home), "MPIGRAFT_HOME": str(home),
            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }  # fmt: skip

        def run(*words: object) -> str:
            done = run_command([*map(str, words)], env=environment, cwd=shared, limit_s=300)
            assert done.ok, done.text()
            return done.text()

        (wheelhouse,) = made.glob("*-wheelhouse.tar")
        run("tar", "--extract", "--warning=no-timestamp", "--file", wheelhouse)
        run(cluster.python, "-m", "venv", root)
        run(root / "bin/pip", "install", "--quiet", "--no-index", "--find-links",
            shared / wheelhouse.stem, "mpigraft")  # fmt: skip
        for node in cluster.nodes:
            hidden = {PROJECT, Path.home(), Path(sys.base_prefix), Path("/opt")} - {Path("/usr")}
            for place in (place for place in hidden if not shared.is_relative_to(place)):
                cluster.said(node, "mount", "-t", "tmpfs", "none", place)
        mpigraft = root / "bin/mpigraft"
        doctor = json.loads(run("srun", "-N1", mpigraft, "doctor", "--json"))
        assert doctor["ok"], doctor["answer"]
        (shared / "campaign.toml").write_text(CAMPAIGN)
        run(mpigraft, "--store", results, "submit", "campaign.toml", "--nodes", 2, "--time", "10m")
        until(lambda: not run("squeue", "--noheader"), "the job's end", patience_s=180)
        printed = "".join(path.read_text() for path in results.rglob("*.out"))
        store = Store(results)
        assert store.campaigns(), printed
        states = [one.state for one in store.launches(store.campaigns()[0].id)]
        assert states == [LaunchState.OK] * 4, printed
