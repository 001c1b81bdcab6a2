"""What `make dist` makes, on bare Debians: an ordinary user in an empty home, without a network.
And on nodes of Slurm that see the installation on a shared folder, and nothing else."""

from __future__ import annotations

import json
import os
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
from testbed.rootfs import Root
from testbed.slurm import Slurm

PROJECT = rootfs.PROJECT
FOLDER = "/opt/a folder"


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
        root.do("cp", "--recursive", made, root.folder / FOLDER.lstrip("/"))
        prepared = root.enter(
            f"useradd --create-home {rootfs.USER} && chmod -R a+rX '{FOLDER}'"
            " && apt-get -q update && apt-get -q -y install python3-venv"
        )
        assert prepared.ok, prepared.text()
        for command in (
            f"cd '{FOLDER}' && sha256sum --check --quiet SHA256SUMS",
            f"python3 '{FOLDER}/mpigraft.pyz' --version",
            f"python3 '{FOLDER}/mpigraft.pyz' discover",
            f"python3 '{FOLDER}/mpigraft.pyz' doctor",
            f"tar -xf '{FOLDER}'/mpigraft-*-wheelhouse.tar && python3 -m venv 'an env'",
            "'an env/bin/pip' install --no-index --find-links mpigraft-*-wheelhouse mpigraft",
            "'an env/bin/mpigraft' discover",
        ):
            home = f"/home/{rootfs.USER}"
            done = root.enter(command, user=rootfs.USER, cwd=home, offline=True)
            assert done.ok, f"{command}: exit {done.code}\n{done.text()}"
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
