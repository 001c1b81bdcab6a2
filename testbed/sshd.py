"""OpenSSH in the nodes of a hard cluster, with keys of the cluster's own.

Its settings lie over /etc/ssh in every node. Root of one node may log in to all.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testbed.cluster import Cluster

SSH = Path("/usr/bin/ssh")
SSHD = Path("/usr/sbin/sshd")
CLIENT = """\
Host *
  IdentityFile {folder}/user
  UserKnownHostsFile {folder}/known
  StrictHostKeyChecking yes
  BatchMode yes
"""
SERVER = """\
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
StrictModes no
UsePAM no
PidFile none
PrintMotd no
"""


def why_not() -> str:
    """Say why hard nodes cannot be had here; empty where they can."""
    return "" if SSHD.exists() else "needs Debian's openssh-server"


def write_settings(folder: Path) -> None:
    """Make the keys and the settings of client and server."""
    folder.mkdir()
    for name in ("host", "user"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(words, check=True)
    key = " ".join((folder / "host.pub").read_text().split()[:2])
    (folder / "known").write_text(f"n*,10.* {key}\n")
    (folder / "ssh_config").write_text(CLIENT.format(folder=folder))
    (folder / "sshd_config").write_text(SERVER.format(folder=folder))


def start(cluster: Cluster) -> None:
    """Start the daemon of each node, and wait until it accepts logins."""
    from testbed.cluster import Service, until

    Path("/run/sshd").mkdir(exist_ok=True)  # in which it separates its privileges
    for node in cluster.nodes:
        log = cluster.folder / "nodes" / node / "sshd.log"
        cluster.services.append(Service(cluster, node, [SSHD, "-D", "-e"], {}, log))
        until(lambda log=log: "listening on" in log.read_text(), f"sshd of {node}")  # type: ignore[misc]
