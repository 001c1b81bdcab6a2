"""The last good state of a machine, and a short campaign that is compared with it.

A good state is a campaign that somebody accepted. A recheck that finds nothing slower does not
become the good state by itself: else a machine that loses one percent a night would never be
slower than the night before.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from mpigraft.analysis.verdict_rules import MIN_ROUNDS
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import AcrossRule, CampaignRecord, LaunchRecord, Machine, Origin

RECHECK = AcrossRule(level=0.01)  # of a night: a false alarm wakes somebody
MOST_ROUNDS = 20  # more decide nothing that matters in one night
ROUNDS_PART = 0.9  # of the time: the rest is for discovery, proofs and the comparison
START_S = 15.0
PROOF_S = 3.0  # of each configuration on each layout, if no proof is kept


def last_good(
    campaigns: Iterable[CampaignRecord], accepted: Iterable[tuple[str, str]], machine: Machine
) -> CampaignRecord | None:
    """Find the campaign that was accepted last, of those on a machine with these CPUs. None if
    none was."""
    known = {campaign.id: campaign for campaign in campaigns}
    alike = [
        known[name]
        for _, name in sorted(accepted)
        if name in known
        and known[name].origin is Origin.RUN  # an import cannot be repeated
        and _cpu(known[name]) in ("", cpu_of(machine))
    ]
    return alike[-1] if alike else None


def cpu_of(machine: Machine) -> str:
    """Return the CPUs of a machine as a plan has them."""
    cpu = machine.cpu
    return f"{cpu.model}, {cpu.architecture}, {cpu.cores} cores"


def _cpu(campaign: CampaignRecord) -> str:
    try:
        return str(json.loads(campaign.plan).get("cpu", ""))
    except ValueError:
        return ""


def recheck_rounds(launches: Sequence[LaunchRecord] | None, minutes: float, title: str) -> int:
    """Count the rounds of a campaign that fit into the time, by what its launches took; None for
    unknown launches gives as many as are ever useful. Raises MissingError for a campaign without
    launches, UsageError for no time, or if six rounds do not fit."""
    if not math.isfinite(minutes) or minutes <= 0:
        raise UsageError.of("minutes-invalid", minutes=minutes)
    if launches is None:
        return MOST_ROUNDS
    if not launches:
        raise MissingError.of("good-empty", title=title)
    walls: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for launch in launches:
        walls[launch.configuration, launch.layout, launch.replica].append(launch.wall_s)
    round_s = sum(sum(own) / len(own) for own in walls.values())
    proofs = PROOF_S * len({place[:2] for place in walls})
    free = 60 * minutes * ROUNDS_PART - START_S - proofs
    rounds = int(min(free / max(round_s, 0.001), MOST_ROUNDS))  # `free` may overflow to infinity
    if rounds < MIN_ROUNDS:
        needed = (MIN_ROUNDS * round_s + START_S + proofs) / (60 * ROUNDS_PART)
        raise UsageError.of(
            "recheck-too-short",
            title=title,
            minutes=f"{minutes:g}",
            rounds=MIN_ROUNDS,
            needed=math.ceil(needed),
        )
    return rounds
