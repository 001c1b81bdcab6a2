"""Under which key evidence is kept: one for `run` and for `bench`.

It names all that can make another transport of the one that was proven: contents, settings,
configuration files, programs, and where it was proven. Evidence is kept as long as all of it
stays the same.
"""

from __future__ import annotations

import os

from mpigraft.core.fingerprint import boot_id, network_namespace, own_state
from mpigraft.core.model import Allocation, Configuration, Layout
from mpigraft.core.serialize import digest
from mpigraft.evidence.files.config import OWN_SURROUNDINGS, Surroundings, mpi_config_files
from mpigraft.evidence.files.used import fingerprint_files, launcher_files, mpi_libraries
from mpigraft.launch import IN_GUEST, THIS_HOST
from mpigraft.native import Natives


def evidence_key(
    configuration: Configuration,
    layout: Layout,
    natives: Natives,
    nodes: Allocation = THIS_HOST,
    surroundings: Surroundings = OWN_SURROUNDINGS,
) -> str:
    """Compute the key. After a boot, drivers and NICs may have changed; evidence of some nodes is
    not evidence of others."""
    transport, plan = configuration.transport, configuration.graft
    return digest(
        {
            "configuration": configuration.key,
            "layout": layout.key,
            "environment": configuration.rows,
            "probe": transport.probe_env if transport else (),
            "signs": transport.signs if transport else (),
            "files": mpi_config_files(configuration, surroundings).digests(),
            "surroundings": [
                surroundings.steering,
                [[b.source, b.target] for b in surroundings.binds],
            ],
            "programs": natives.digest,
            "libraries": _libraries(configuration),
            "launcher": fingerprint_files(launcher_files(configuration)).named,
            "graft": plan.key if plan else "",
            "tool": own_state(),
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
    return fingerprint_files(mpi_libraries(mpi)).named
