"""Profiles as an application of some ranks would leave them."""

from __future__ import annotations

from mpigraft.trace import PeerTraffic, Profile, RankUse, Routine
from mpigraft.trace.profile.values import CallSite, PeerKind, SizeUse, Spread

NAMES = ("Alltoallv", "Allreduce", "Sendrecv", "Waitall", "Ineighbor_alltoallw", "Bcast")


def a_profile(ranks: int) -> Profile:
    """Ranks send to their neighbours, and all to all unevenly; the last ones wait most."""
    peers = [
        PeerTraffic(a, (a + step) % ranks, PeerKind.P2P, 100, 4096 * 100)
        for a in range(ranks)
        for step in {1 % ranks, -1 % ranks}
    ]
    peers += [
        PeerTraffic(a, b, PeerKind.COLLECTIVE, 10, 10 * (8 << abs(a - b) % 12))
        for a in range(min(ranks, 64))
        for b in range(min(ranks, 64))
    ]
    sizes = tuple(
        SizeUse(1 << k, (2 << k) - 1, 1000 >> k // 3, (1000 >> k // 3) << k, 0.01 * (k + 1))
        for k in range(3, 18, 2)
    )
    routines = tuple(
        Routine(
            name, time_s=ranks * 8.0 / 2**k, calls=ranks * 12345 * 10**k, bytes=ranks * 7 << 4 * k,
            waited_s=ranks * 3.0 / 2**k, longest_s=0.5, errors=0,
            spread=Spread(4.0 / 2**k, 8.0 / 2**k, 12.0 / 2**k, ranks - 1),
            sizes=sizes if k < 3 else (),
        )
        for k, name in enumerate(NAMES)
    )  # fmt: skip
    each = tuple(
        RankUse(k, f"nid{1000 + k // 128:06}", 30.0, 12.0 + 8.0 * k / ranks, k != ranks - 1,
                "Recv" if k == ranks - 1 else "", 2.0)
        for k in range(ranks)
    )  # fmt: skip
    sites = tuple(
        CallSite(
            name, (f"exchange_{name.lower()} (app+0x40{k:02x})", "main (app+0x1f2)"), 10, 1.0, 64
        )
        for k, name in enumerate(NAMES)
    )
    return Profile(
        "castep.mpi", ranks=ranks, hosts=tuple(dict.fromkeys(one.host for one in each)),
        began="2026-01-02T03:04:05+00:00", run_s=30.0, total_s=30.0 * ranks,
        mpi_s=sum(one.mpi_s or 0 for one in each), waits=True, routines=routines, each=each,
        peers=tuple(sorted(peers, key=lambda one: -one.bytes)), sites=sites, exit_code=0,
        labels=(("mpi", "openmpi@5.0.11"), ("transport", "ofi-lnx")),
    )  # fmt: skip
