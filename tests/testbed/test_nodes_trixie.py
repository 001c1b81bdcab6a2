"""Two nodes that are Debian 13: Open MPI 5.0.7 over libfabric 2.1.0, whose LNX has other words."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from testbed.cluster import Cluster
from testbed.images import Images
from testbed.nodes import SHORT, Told, User, crossed, lanes

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

LNX = "shm+tcp;ofi_rxm:lnx (shm+e0:ofi_lnx_domain)"
BETWEEN = {"ofi-lnx": LNX, "ofi-tcp": "tcp (e0)", "ob1-tcp": "tcp", "ucx": "ucx (tcp/e0)"}


def test_the_image_s_own_mpi_over_each_transport(
    clusters: Callable[..., Cluster],
    images: Images,
    mpis: Mapping[Family, Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its settings in /etc/openmpi switch OFI and UCX off (SEL-05), and every row says otherwise.
    mpigraft itself runs in the nodes, by this project's Python."""
    root = images.folder("trixie")
    switched = (root / "etc/openmpi/openmpi-mca-params.conf").read_text()
    assert "mtl = ^ofi" in switched
    with clusters(2, root=root) as cluster:
        user = User(cluster, mpis)
        (user.home / "mpi").unlink()
        done = user.on("n1", "bench", *user.nodes(), "--layout", "2x1", *SHORT)
        told = user.shown()
        for name in [n for n, one in told.items() if ended_early(one)]:
            with capsys.disabled():  # seen once in 40 campaigns, and not why: shown, once more
                sys.stdout.write(json.dumps(told[name], indent=1) + done.stderr)
            again = ("--layout", "2x1", "--transport", name.partition("/")[2], *SHORT)
            user.on("n1", "bench", *user.nodes(), *again)
            told |= user.shown()
        user.on("n1", "bench", "--here", "--transport", "ob1-tcp", *SHORT)
        (alone,) = user.shown().values()
    assert {name.partition("/")[2] for name in told} == {*BETWEEN}, done.stderr
    for name, one in told.items():
        assert name.startswith("openmpi@5.0.7/")
        assert one["proven"], json.dumps(one["findings"], indent=1)
        assert one["launches"].keys() == {"ok"}
        assert lanes(one, "off-node")["p2p"] == BETWEEN[one["requested"]]
        assert 1 <= crossed(one)["bytes"] / crossed(one)["payload"] < 1.2
    # Its libnl asks the kernel for the way to this very node, which is not e0 (TCP-02).
    assert lanes(alone, "on-node")["p2p"] == BETWEEN["ob1-tcp"], alone["findings"]


def ended_early(told: Told) -> bool:
    return any("the probe ended before it" in f["message"] for f in told["findings"])
