"""Make the kept file of the current schema version: run once per version, then never change it.

    python tests/data/store/make.py

Tests read the files of all versions, so that results of years ago stay readable.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from mpigraft.core import model as m
from mpigraft.store import Store
from mpigraft.store.file import VERSION

CONDITIONS = m.Conditions(
    m.NodeState((0.5, 0.25, 0.125), 12.5, 8.0, 0.25, "performance"),
    m.NodeState((0.75, 0.25, 0.125), 25.0, 8.5, 0.5, "performance"),
    (
        m.CpuUse("n1", 1, 1, 1.0, 0.875, 0.125, 0.5, 0.5, 7),
        m.CpuUse("n2", 1, 1, 1.0, 0.5, 0.0, 0.5, 0.0, 3),
    ),
)
LIBRARY = m.MappedLibrary("/opt/mpi/lib/libmpi.so.40", 8, 9)
RANKS = tuple(
    m.RankRecord(n, 2, f"n{n + 1}", 11 + n, "Open MPI v5.0.11", (n,), (LIBRARY,), (0,))
    for n in (0, 1)
)


def main() -> None:
    target = Path(__file__).parent / f"version{VERSION}.sqlite"
    if target.exists():
        raise SystemExit(f"{target} exists and stays as it is")
    owner = "00000000-0000-4000-8000-000000000001"
    asked = m.ConfigurationRecord(owner, "k0", "openmpi@5.0.11/ob1-sm", "{}")
    proof = m.Proof(m.Peer.ON_NODE, m.Kind.P2P, m.ProofStatus.PROVEN, "sm", "btl: sm")
    evidence = m.Evidence("ob1-sm", "ob1-sm", (proof,), (), RANKS)
    finding = m.Finding(m.Level.WARNING, "unbound", "rank 0 may run anywhere")
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder)).writer() as writer:
        writer.add_campaign(
            m.CampaignRecord(
                owner, "kept", "2026-01-01T00:00:00+00:00", m.Origin.RUN, 1, 2, "k0", "{}", "0.1"
            )
        )
        writer.add_allocation(
            m.AllocationRecord(
                "a0",
                owner,
                "2026-01-01T00:00:00+00:00",
                "n1",
                "{}",
                ("n1", "n2"),
                "42",
                "1/1",
                2,
                "2026-01-01T00:00:02+00:00",
            )
        )
        writer.add_submission(
            m.SubmissionRecord(owner, "kept", "2026-01-01T00:00:00+00:00", "slurm", "{}", 2, 600, 1)
        )
        writer.add_job(m.JobRecord(owner, 1, "42", "2026-01-01T00:00:00+00:00", "#!/bin/sh"))
        writer.add_configuration(asked)
        writer.add_evidence(m.EvidenceRecord(owner, "k0", "1x2", evidence, "a0"))
        for turn in (0, 1):
            first, second = 0.5 + turn / 4, 0.625 + turn / 4
            latency = m.Benchmark("native", "latency")
            values = [
                m.Measurement(latency, "latency", 1, first, iterations=9, samples=(0.5, 0.25)),
                m.Measurement(latency, "latency", 8, second, valid=True, resolution=0.001),
            ]
            record = m.LaunchRecord(
                f"l{turn}", owner, "a0", "k0", "1x2", turn, 0, 0,
                f"2026-01-01T00:00:0{turn}+00:00", 1.0, 0, m.LaunchState.OK, (finding,),
                ended=f"2026-01-01T00:00:0{turn + 1}+00:00", conditions=CONDITIONS,
                program="osu:latency" if turn else "",
            )  # fmt: skip
            writer.add_launch(record, values, {"stdout": b"kept output\n"})
        target.write_bytes(writer.path.read_bytes())


if __name__ == "__main__":
    main()
