"""Records of ranks on two nodes: one file each, and what goes wrong between nodes."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Configuration, Family, Layout, RankRecord
from mpigraft.evidence.world.records import read_witness
from mpigraft.evidence.world.witness import check_witness
from mpigraft.native.programs import PREBUILT, WITNESS
from testbed.cluster import Cluster
from tests.native.native_world import compile_c

pytestmark = [pytest.mark.root, pytest.mark.mpi]

ANY = Configuration("key", "mpich@5", None, None)


@pytest.fixture(scope="module")
def program(mpis: Mapping[Family, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    mpich = mpis[Family.MPICH]
    return compile_c(
        "enter.c", tmp_path_factory.mktemp("enter") / "enter", "-isystem", mpich / "include",
        mpich / "lib/libmpi.so.12", "-Wl,--allow-shlib-undefined",
    )  # fmt: skip


def start(
    cluster: Cluster, mpich: Path, folder: Path, *words: str | Path, per_node: int = 2
) -> str:
    """MPICH's launcher over both nodes; what ranks and launcher said."""
    argv: list[str | Path] = [
        mpich / "bin/mpiexec", "-launcher", "ssh", "-launcher-exec", cluster.remote,
        "-hosts", ",".join(cluster.nodes), "-iface", cluster.device, "-ppn", str(per_node),
        "-n", str(2 * per_node), "env", f"LD_LIBRARY_PATH={mpich / 'lib'}",
        f"LD_PRELOAD={PREBUILT / platform.machine() / WITNESS}", f"MPIGRAFT_WITNESS={folder}",
    ]  # fmt: skip
    done = cluster.run("n1", [*argv, *words], check=True)
    return done.stdout + done.stderr


def records_on(node: str, cluster: Cluster, folder: Path) -> tuple[RankRecord, ...]:
    """What a reader on that node finds."""
    seen = cluster.shared / f"seen-by-{node}"
    shutil.rmtree(seen, ignore_errors=True)
    cluster.said(node, "cp", "-r", folder, seen)
    return read_witness(seen)


def test_ranks_of_two_nodes_write_a_file_each_at_once(
    cluster: Cluster, mpis: Mapping[Family, Path], program: Path, tmp_path: Path
) -> None:
    start(cluster, mpis[Family.MPICH], tmp_path, program, per_node=16)
    assert len([f for f in tmp_path.iterdir() if f.suffix == ".ranks"]) == 2
    ranks = read_witness(tmp_path)
    assert [(r.rank, r.size) for r in ranks] == [(n, 32) for n in range(32)]
    assert [r.host for r in ranks] == ["n1"] * 16 + ["n2"] * 16
    told = check_witness(ANY, Layout(2, 16, bind="none"), ranks)
    assert [f.code for f in told] == ["libmpi-unknown"]  # nobody said which was due


def test_two_nodes_of_one_host_name_are_two(
    cluster: Cluster, mpis: Mapping[Family, Path], program: Path, tmp_path: Path
) -> None:
    same = ("unshare", "--uts", "sh", "-c", 'hostname localhost; exec "$@"', "sh", program)
    start(cluster, mpis[Family.MPICH], tmp_path, *same)
    ranks = read_witness(tmp_path)
    assert [r.rank for r in ranks] == [0, 1, 2, 3]
    assert all(r.host.startswith("localhost (") for r in ranks)
    told = check_witness(ANY, Layout(2, 2, bind="none"), ranks)
    assert [f.code for f in told] == ["libmpi-unknown"]


def test_a_folder_that_each_node_has_for_itself_is_told_with_the_node(
    cluster: Cluster, mpis: Mapping[Family, Path], program: Path
) -> None:
    folder = Path("/tmp/records")
    for node in cluster.nodes:
        cluster.said(node, "mkdir", folder)
    try:
        start(cluster, mpis[Family.MPICH], folder, program)
        for node, other in (("n1", "n2"), ("n2", "n1")):
            ranks = records_on(node, cluster, folder)
            assert {r.host for r in ranks} == {node}
            layout = Layout(2, 2, bind="none")
            first, *_ = check_witness(ANY, layout, ranks, hosts=cluster.nodes)
            assert first.code == "witness-unshared"
            assert f"the ranks on {other} left no record" in first.message
            assert "every node sees" in first.fix
    finally:
        for node in cluster.nodes:
            cluster.said(node, "rm", "-r", folder)


def test_a_folder_that_only_one_node_has_is_said_where_it_is_missing(
    cluster: Cluster, mpis: Mapping[Family, Path], program: Path
) -> None:
    folder = Path("/tmp/mine")
    cluster.said("n1", "mkdir", folder)
    try:
        said = start(cluster, mpis[Family.MPICH], folder, program)
        assert said.count(" of 4\n") == 4
        for rank in (2, 3):
            assert f"n2: no record of rank {rank} in {folder}: No such file" in said
        ranks = records_on("n1", cluster, folder)
        told = check_witness(ANY, Layout(2, 2, bind="none"), ranks, hosts=cluster.nodes)
        assert told[0].code == "witness-unshared"
    finally:
        cluster.said("n1", "rm", "-r", folder)
