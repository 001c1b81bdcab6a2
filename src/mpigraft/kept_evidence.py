"""Under which key evidence is kept: one for `run` and for `bench`.

It names all that can make another transport of the one that was proven: contents, settings,
configuration files, programs, and where it was proven. Evidence is kept as long as all of it
stays the same.
"""

from __future__ import annotations

import os
from pathlib import Path

from mpigraft import __version__
from mpigraft.config_files import OURS, Surroundings, config_files
from mpigraft.jsonout import digest
from mpigraft.launch import HERE, IN_GUEST
from mpigraft.model import Allocation, Configuration, Layout
from mpigraft.natives import Natives
from mpigraft.used_files import fingerprint, launchers, libraries, named_digests

BOOT = Path("/proc/sys/kernel/random/boot_id")


def evidence_key(
    configuration: Configuration,
    layout: Layout,
    natives: Natives,
    nodes: Allocation = HERE,
    around: Surroundings = OURS,
) -> str:
    """The key. After a boot, drivers and NICs may not be what they were; what is proven of some
    nodes is not of others."""
    transport, plan = configuration.transport, configuration.graft
    return digest(
        {
            "configuration": configuration.key,
            "layout": layout.key,
            "environment": transport.env if transport else (),
            "probe": transport.probe_env if transport else (),
            "signs": transport.signs if transport else (),
            "files": config_files(configuration, around).digests(),
            "surroundings": [around.steering, [[b.source, b.target] for b in around.binds]],
            "programs": natives.digest,
            "libraries": _libraries(configuration),
            "launcher": tuple(named_digests([fingerprint(launchers(configuration))])),
            "graft": plan.key if plan else "",
            "tool": __version__,
            "user": os.getuid(),
            "network": network_namespace(),
            "boot": boot_id(),
            "nodes": () if nodes.here else (nodes.hosts, nodes.job),
        }
    )


def _libraries(configuration: Configuration) -> tuple[tuple[str, str], ...]:
    """(name, SHA-256) of an MPI's libraries, where the configuration's own key does not say them:
    of a job that leaves the transport to its MPI."""
    mpi = configuration.mpi
    if mpi is None or mpi.source == IN_GUEST or configuration.libraries:
        return ()
    return tuple(named_digests([fingerprint(libraries(mpi))]))


def boot_id() -> str:
    """Of this boot of this kernel; empty where it is not told."""
    try:
        return BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def network_namespace() -> str:
    """Which network this process sees; other interfaces are other lanes."""
    try:
        return os.readlink("/proc/self/ns/net")  # noqa: PTH115  it links to no path
    except OSError:
        return ""
