"""Probes under other programs' traffic at full speed: false "no evidence" and false proofs.

    .venv/bin/python evaluation/foreign_traffic.py [--probes 300] [--where lo nodes] [--json FILE]

On the loopback of this machine, and between two nodes that are namespaces of it (needs root), a
pump sends as fast as it can through the interface that the ranks use. Each transport over TCP is
probed in turn and has to be proven each time, by one probe without a second try. Beside it: what
the counters of the interfaces alone would have said of the same output. Of each ten probes one is
of a transport by shared memory, which has to be proven too, and one of LNX that was denied its
shared memory and says the same words as ever, which must not be.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mpigraft.core.model import Evidence, Family, Level, Machine
from mpigraft.discovery import inventory
from testbed.cluster import Cluster
from testbed.foreign import SHARED, TCP, Probes, doctored, pumping

LIE = "ofi-lnx without its shared memory"
Case = tuple[Family, str, bool]  # whether it has to be proven


def cases(*, near: bool) -> Iterator[Case]:
    """Without end. Between nodes there is no memory to share."""
    tcp = [(family, name, True) for family, names in TCP.items() for name in names]
    shared = [(family, name, True) for family, names in SHARED.items() for name in names]
    rounds = itertools.cycle(tcp)
    if not near:
        yield from rounds
    for one in itertools.cycle(shared):
        yield from itertools.islice(rounds, 8)
        yield one
        yield Family.OPENMPI, LIE, False


def probe(probes: Probes, case: Case) -> tuple[Evidence, Evidence]:
    family, name, _ = case
    if name == LIE:
        lnx = probes.transport(family, "ofi-lnx")
        return probes.judged(family, doctored(lnx, FI_LNX_DISABLE_SHM="1"))
    return probes.judged(family, probes.transport(family, name))


def errors(evidence: Evidence) -> list[str]:
    return [f"{f.code}: {f.message}" for f in evidence.findings if f.level is Level.ERROR]


def measure(machine: Machine, where: str, count: int) -> dict[str, dict[str, int]]:
    """What became of each case's probes in one place."""
    table: dict[str, Counter[str]] = {}
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(2)) if where == "nodes" else None
        probes = Probes(machine, cluster)
        stack.enter_context(pumping(cluster))
        for case in itertools.islice(cases(near=cluster is None), count):
            family, name, due = case
            evidence, before = probe(probes, case)
            row = table.setdefault(f"{where}: {family} {name}", Counter())
            row["probes"] += 1
            row["proven"] += evidence.ok
            row["wrong"] += evidence.ok is not due
            row["wrong by interfaces alone"] += before.ok is not due
            if evidence.ok is not due:
                print(f"{where}: {family} {name}: {errors(evidence)}", flush=True)
    return {name: dict(row) for name, row in table.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--probes", type=int, default=300, help="in each place")
    parser.add_argument("--where", nargs="+", choices=("lo", "nodes"), default=["lo", "nodes"])
    parser.add_argument("--json", type=Path, help="write what became of each case here too")
    asked = parser.parse_args()
    machine = inventory.discover_machine()
    table: dict[str, dict[str, int]] = {}
    for where in asked.where:
        begin = time.monotonic()
        table |= measure(machine, where, asked.probes)
        print(f"{where}: {asked.probes} probes in {time.monotonic() - begin:.0f} s", flush=True)
    for name, row in table.items():
        print(f"{name}: {', '.join(f'{value} {what}' for what, value in row.items())}")
    if asked.json:
        asked.json.write_text(json.dumps(table, indent=2) + "\n", encoding="ascii")
    return 1 if any(row["wrong"] for row in table.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
