"""What ranks and nodes cost mpigraft where it keeps, reads and shows evidence.

    python evaluation/rank_cost.py [--world 2x32 64x64 4096x1] [--libraries 100]

For each world (nodes x ranks per node) hand-made records of the witness, and of them a campaign of
two configurations and six rounds: bytes of evidence in store and cache, seconds and peak memory of
reading the records and of each command that reads a store, each in a process of its own. The
smallest world is what the programs cost by themselves; what a larger one adds is the ranks' cost.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mpigraft.core import cache
from mpigraft.core.model import (
    AllocationRecord,
    Benchmark,
    CampaignRecord,
    ConfigurationRecord,
    Evidence,
    EvidenceRecord,
    Kind,
    LaunchRecord,
    LaunchState,
    Layout,
    Measurement,
    Origin,
    Peer,
    Proof,
    ProofStatus,
    RankRecord,
    SubmissionRecord,
)
from mpigraft.evidence.world.records import read_witness
from mpigraft.store import Store, flatten_evidence

CAMPAIGN = "00000000-0000-4000-8000-000000000001"
DAY = "2026-01-02T03:04"
LATENCY = Benchmark("native", "latency")
COMMANDS = (
    ("results", "show"),
    ("results", "show", "--json"),
    ("compare",),
    ("status",),
    ("report", "-o", "page.html"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--world", nargs="+", default=["1x2", "2x32", "64x64", "4096x1"])
    parser.add_argument("--libraries", type=int, default=100)
    given = parser.parse_args()
    for world in given.world:
        nodes, per_node = map(int, world.split("x"))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            told(folder, Layout(nodes, per_node), given.libraries)
    return 0


def told(folder: Path, layout: Layout, libraries: int) -> None:
    """One world's figures on lines of their own."""
    print(f"{layout.key}, {layout.ranks} ranks, {libraries} libraries each")
    records = folder / "records"
    records.mkdir()
    for node in range(layout.nodes):
        write_node(records, layout, node, libraries)
    size = sum(path.stat().st_size for path in records.iterdir())
    print(f"    records {kib(size)}; reading them: {cost(lambda: read_witness(records))}")
    store = folder / "store"
    os.environ["MPIGRAFT_HOME"] = str(folder / "home")
    # Never in this process: the peak of a child is no lower than its parent's memory (execve(2)).
    print(f"    reading, writing a campaign: {cost(lambda: fill(store, layout, records))}")
    (kept,) = (cache.folders().cache / "evidence").iterdir()
    print(f"    evidence {kib(in_store(store))} in the store, {kib(kept.stat().st_size)} in the "
          f"cache, by the rank {kept.stat().st_size / layout.ranks:.0f} B")  # fmt: skip
    entry = (sys.executable, "-m", "mpigraft.cli.entry", "--store", str(store))
    for words in COMMANDS:
        said = cost(partial(command, (*entry, *words), folder))
        print(f"    {' '.join(words)}: {said}")
    print(f"    the page {kib((folder / 'page.html').stat().st_size)}")


def kib(size: int) -> str:
    return f"{size / 1024:.1f} KiB"


def cost(action: Callable[[], object]) -> str:
    """Seconds and peak memory of a child process that does it."""
    sys.stdout.flush()
    began = time.perf_counter()
    child = os.fork()
    if not child:
        action()
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    wall = time.perf_counter() - began
    failed = f", FAILED ({status})" if status else ""
    return f"{wall:.2f} s, {used.ru_utime + used.ru_stime:.2f} s of processor, " + (
        f"{used.ru_maxrss / 1024:.0f} MiB{failed}"
    )


def command(argv: tuple[str, ...], folder: Path) -> None:
    os.chdir(folder)
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    os.execv(argv[0], argv)


# ------------------------------------------------------------------ hand-made


def write_node(folder: Path, layout: Layout, node: int, libraries: int) -> None:
    """The file that the witness leaves on a node (native/witness/rank_record.h)."""
    common = {
        "map": "a1",
        "size": layout.ranks,
        "host": f"nid{node:06}",
        "boot": f"{node:08}-0000-4000-8000-000000000000",
        "library_version": "Open MPI v5.0.11, package: Open MPI builder@host Distribution",
        "libraries": [
            [f"/opt/software/openmpi/5.0.11-gcc-14.2/lib/libcomponent_{n:03}.so.40.0.1", n % 2, n]
            for n in range(libraries)
        ],
        "numa": {str(n): f"{16 * n}-{16 * n + 15}" for n in range(4)},
    }
    lines = []
    for seat in range(layout.ranks_per_node):
        rank = node * layout.ranks_per_node + seat
        own = {"map": "a1", "rank": rank, "pid": 40_000 + 7 * rank, "cores": str(seat),
               "disks": [64768, 40 + node], "gpus": [f"ROCR_VISIBLE_DEVICES={seat % 8}"],
               "devices": [f"/dev/cxi{seat % 4}"]}  # fmt: skip
        lines.append(json.dumps({**own, **common} if not seat else own))
    (folder / f"nid{node:06}-{node:016x}.ranks").write_text("\n".join(lines) + "\n")


def evidence(ranks: tuple[RankRecord, ...]) -> Evidence:
    proof = tuple(Proof(Peer.OFF_NODE, kind, ProofStatus.PROVEN, "cxi", "mtl:ofi:prov: cxi")
                  for kind in Kind)  # fmt: skip
    return Evidence("ofi-cxi", "cxi", proof, (), ranks)


def fill(folder: Path, layout: Layout, records: Path) -> None:
    ranks = read_witness(records)
    cache.put("evidence", "key", flatten_evidence(evidence(ranks)))
    hosts = tuple(f"nid{node:06}" for node in range(layout.nodes))
    names = ("k0", "openmpi@5.0.11/ofi-cxi"), ("k1", "openmpi@5.0.11/ob1-tcp")
    with Store(folder).writer() as writer:
        writer.add_campaign(
            CampaignRecord(CAMPAIGN, "ranks", f"{DAY}:00", Origin.RUN, 1, 6, "k0", "{}", "0")
        )
        writer.add_allocation(
            AllocationRecord("a", CAMPAIGN, f"{DAY}:01", hosts[0], "{}", hosts, "42", "1/1", 18)
        )
        writer.add_submission(
            SubmissionRecord(CAMPAIGN, "ranks", f"{DAY}:00", "slurm", "{}", layout.nodes, 600, 1)
        )
        for key, name in names:
            writer.add_configuration(ConfigurationRecord(CAMPAIGN, key, name, "{}"))
            writer.add_evidence(EvidenceRecord(CAMPAIGN, key, layout.key, evidence(ranks), "a"))
        for turn in range(6):
            for slot, key in enumerate(("k0", "k1", "k0")):
                record = LaunchRecord(
                    f"{turn}-{slot}", CAMPAIGN, "a", key, layout.key, turn, slot, int(slot == 2),
                    f"{DAY}:{turn:02}", 1.0, 0, LaunchState.OK, (),
                )  # fmt: skip
                sizes = [Measurement(LATENCY, "latency", 1 << n, 1.0 + n + slot / 9 + turn / 99)
                         for n in range(20)]  # fmt: skip
                writer.add_launch(record, sizes, {"stdout": b"a line\n"})


def in_store(folder: Path) -> int:
    """Bytes of one configuration's evidence."""
    (path,) = folder.glob("*.sqlite")
    db = sqlite3.connect(path)
    size = db.execute("SELECT max(length(CAST(evidence AS BLOB))) FROM evidence").fetchone()[0]
    db.close()
    return int(size)


if __name__ == "__main__":
    sys.exit(main())
