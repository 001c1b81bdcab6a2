"""The host's MPI under a container against the same MPI on the host: does the graft cost anything?

One campaign: the same MPI, transport, benchmark binary and rounds, on the host and grafted into
a guest. The bar: no cell slower, and each benchmark's pooled ratio over its sizes within 10 % of
1, interval and all. Run it on a quiet machine:

    .venv/bin/python evaluation/graft_vs_native.py IMAGE --engine apptainer --rounds 20
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from mpigraft.analysis.comparison import compare
from mpigraft.bench import pipeline
from mpigraft.bench.schedule import campaign
from mpigraft.cli.progress import Progress
from mpigraft.core.model import Measured, Verdict
from mpigraft.discovery import inventory
from mpigraft.request.spec import CampaignSpec
from mpigraft.store import Store

BAR = 0.10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image")
    parser.add_argument("--mpi", default="openmpi@5")
    parser.add_argument("--transport", default="ob1-sm")
    parser.add_argument("--engine", default="apptainer")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    machine = inventory.discover_machine()
    planned = campaign.plan_campaign(
        CampaignSpec(
            name="graft",
            mpi=(given.mpi,),
            transport=(given.transport,),
            benchmark=("latency", "bibw", "allreduce"),
            image=given.image,
            engine=given.engine,
            guest=("native", "grafted"),
            rounds=given.rounds,
        ),
        machine,
    )
    for who, why in planned.skipped:
        print(f"left out: {who}: {why}")
    progress = Progress()
    with tempfile.TemporaryDirectory() as folder, progress.bar:
        store = Store(Path(folder))
        identity = pipeline.run_campaign(planned, machine, store, progress)
        arms, values = store.configurations(identity), store.values(identity)
        found = compare(Measured(store.campaign(identity), tuple(arms), (), (), tuple(values)))
    slower = 0
    worst = 0.0
    for group in found.groups:
        verdicts = [cell.verdict for cell in group.cells]
        slower += verdicts.count(Verdict.SLOWER)
        low, high = group.pooled_low or 0.0, group.pooled_high or 0.0
        worst = max(worst, 1 - low, high - 1)
        print(
            f"{group.configuration} {group.benchmark}: pooled {group.pooled:.3f} "
            f"[{low:.3f}, {high:.3f}], {len(verdicts)} sizes, "
            f"{verdicts.count(Verdict.SLOWER)} slower, {verdicts.count(Verdict.FASTER)} faster"
        )
    for noise in found.noise:
        print(
            f"{noise.benchmark}: the baseline against itself {noise.false_verdicts} of "
            f"{noise.cells} cells called, margin {noise.margin:.3f}"
        )
    met = found.groups and not slower and worst <= BAR
    print("bar met" if met else "bar not met", f"(no cell slower, intervals within {BAR:.0%} of 1)")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
