"""Whether all nodes have the same build of an MPI.

A node's own disk, an image that was not rolled out everywhere or a file server's stale copy may
hold another build at the same path. Its ranks join the world, and what was measured is of neither.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence

from mpigraft.core.hostlist import fold_hosts
from mpigraft.core.model import Finding, MappedLibrary, RankRecord
from mpigraft.evidence.world.mapped import LIBMPI, DueLibrary, identity_of

FEW = 8  # nodes that are named
Hosts = dict[str, tuple[MappedLibrary, str]]  # host -> what its ranks mapped, under which kernel
Builds = dict[str, dict[str, Hosts]]  # path -> which build -> its hosts


def check_builds(due: DueLibrary | str, ranks: Sequence[RankRecord]) -> list[Finding]:
    """Report the nodes that have another build of a part of the MPI than the others at its path,
    or than this node, where none of the ranks ran here."""
    builds: Builds = defaultdict(lambda: defaultdict(dict))
    kinds = {(id(rank.libraries), rank.host): rank for rank in ranks}  # thousands share a list
    kernels = {rank.boot for rank in kinds.values()}
    for rank in kinds.values():
        for library in rank.libraries:
            path = library.path.removesuffix(" (deleted)")
            if library.content or LIBMPI.fullmatch(path.rpartition("/")[2]):
                build = identity_of(library, rank.boot) if len(kernels) == 1 else library.content
                builds[path][build][rank.host] = library, rank.boot
    here = os.uname().nodename
    if (
        isinstance(due, DueLibrary)
        and due.inode
        and (own := builds.get(os.path.realpath(due.path)))
    ):
        _add_host(own, here, due)
    found: dict[tuple[str, str], list[str]] = {}
    for path, own in builds.items():
        usual = next((b for b in own if here in own[b]), max(own, key=lambda b: len(own[b])))
        for build, hosts in own.items():
            if hosts.keys() != own[usual].keys():
                nodes, others = (fold_hosts(some, FEW) for some in (hosts, own[usual]))
                what = f"{path} ({_described(build)}, not {_described(usual)})"
                found.setdefault((nodes, others), []).append(what)
    return [
        Finding.of("node-build", nodes=nodes, others=others, libraries=", ".join(sorted(libraries)))
        for (nodes, others), libraries in found.items()
    ]


def _add_host(own: dict[str, Hosts], here: str, due: DueLibrary) -> None:
    """Add this node, unless records of its ranks have its builds."""
    if any(here in hosts for hosts in own.values()):
        return
    for hosts in own.values():
        if due.is_mapped(*next(iter(hosts.values()))):
            hosts[here] = next(iter(hosts.values()))
            return
    build = next(iter(due.contents), "")
    own[build] = {here: (MappedLibrary(due.path, due.device, due.inode, build), "")}


def _described(build: str) -> str:
    build_id, _, size = build.partition("/")
    if size:
        return f"build id {build_id[:12]}, {int(size):,} bytes"
    return f"SHA-256 {build[7:19]}" if build.startswith("sha256:") else "a build that is not known"
