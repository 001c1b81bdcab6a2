"""A real A/A campaign: the same MPI under several names, compared as if they were different.

Every verdict other than inconclusive or equivalent is false here, so the share of them is the
tool's false-winner rate on this machine, launches, noise and all. Run it on a quiet machine:

    python evaluation/aa_campaign.py --rounds 12 --names 4
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections import Counter
from pathlib import Path

from mpigraft.analysis.comparison import compare
from mpigraft.bench import pipeline
from mpigraft.bench.schedule import benchmarks, campaign
from mpigraft.cli.progress import Progress
from mpigraft.core.model import Measured, Verdict
from mpigraft.discovery import inventory
from mpigraft.request.spec import CampaignSpec
from mpigraft.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mpi", default="mpich")
    parser.add_argument("--transport", default="ofi-tcp")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--names", type=int, default=4, help="configurations that are the same")
    parser.add_argument("--default", action="store_true", help="all six default benchmarks")
    parser.add_argument(
        "--store", type=Path, help="keep the campaign here, for variation.py, verdicts_curves.py"
    )
    given = parser.parse_args()
    machine = inventory.discover_machine()
    spec = CampaignSpec(
        name="a/a",
        mpi=(given.mpi,),
        transport=(given.transport,),
        benchmark=benchmarks.DEFAULT_BENCHMARKS if given.default else benchmarks.QUICK_BENCHMARKS,
        rounds=given.rounds,
        quick=True,
    )
    planned = campaign.plan_campaign(spec, machine)
    one = planned.configurations[0]
    twins = tuple(
        dataclasses.replace(one, key=f"{one.key}-{n}", id=f"{one.id}#{n}")
        for n in range(given.names)
    )
    planned = dataclasses.replace(planned, configurations=twins, baseline=twins[0])
    progress = Progress()
    with tempfile.TemporaryDirectory() as folder, progress.bar:
        store = Store(given.store or Path(folder))
        identity = pipeline.run_campaign(planned, machine, store, progress)
        record = store.campaign(identity)
        arms, values = store.configurations(identity), store.values(identity)
        found = compare(Measured(record, tuple(arms), (), (), tuple(values)))
    cells = [cell for group in found.groups for cell in group.cells]
    counted = Counter(cell.verdict for cell in cells)
    false = counted[Verdict.FASTER] + counted[Verdict.SLOWER]
    covered = sum(c.low is not None and c.low <= 1 <= (c.high or 0) for c in cells)
    print(f"{len(cells)} A/A cells, {given.rounds} rounds: {dict(counted)}")
    print(f"false winners: {false} ({100 * false / len(cells):.1f} %)")
    chance = sum(group.by_chance for group in found.groups)
    print(f"cells that chance alone would call, as `compare` prints it: {chance:.1f}")
    curves = Counter(group.curve for group in found.groups)
    print(f"{len(found.groups)} curves: {dict(curves)}")
    print(f"intervals that hold the true ratio 1: {100 * covered / len(cells):.1f} %")
    for noise in found.noise:
        print(f"{noise.benchmark}: margin {noise.margin:.3f}, typical cell +-{noise.spread:.3f}")


if __name__ == "__main__":
    main()
