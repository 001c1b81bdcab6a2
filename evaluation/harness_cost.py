"""What the harness costs on top of the launches' own wall time, in one campaign.

    python evaluation/harness_cost.py --rounds 6

Prints the campaign's wall time, the launches' wall time (probes included, since a proof is a
launch too) and their ratio. The first campaign on a machine also discovers it; both are shown.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from mpigraft.bench import pipeline
from mpigraft.bench.schedule import campaign
from mpigraft.cli.progress import Progress
from mpigraft.core.process import command
from mpigraft.discovery import inventory
from mpigraft.evidence import runner
from mpigraft.request.spec import CampaignSpec
from mpigraft.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6)
    given = parser.parse_args()
    launched = 0.0
    plain_run = command.run_command

    def timed(*args: object, **words: object) -> command.Completed:
        nonlocal launched
        ended = plain_run(*args, **words)  # type: ignore[arg-type]
        launched += ended.wall_s
        return ended

    begun = time.monotonic()
    machine = inventory.discover_machine()
    discovered = time.monotonic() - begun
    planned = campaign.plan_campaign(CampaignSpec(quick=True, rounds=given.rounds), machine)
    runner.run_command = timed  # type: ignore[attr-defined]
    begun = time.monotonic()
    progress = Progress()
    with tempfile.TemporaryDirectory() as folder, progress.bar:
        pipeline.run_campaign(planned, machine, Store(Path(folder)), progress)
    wall = time.monotonic() - begun
    print(f"discover: {discovered:.2f} s")
    print(f"campaign: {wall:.2f} s, launches: {launched:.2f} s")
    print(f"harness: {100 * (wall - launched) / launched:.1f} % on top of the launches")
    with_look = 100 * (wall + discovered - launched) / launched
    print(f"with discover: {with_look:.1f} % on top of the launches")


if __name__ == "__main__":
    main()
