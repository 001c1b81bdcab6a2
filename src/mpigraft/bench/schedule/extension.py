"""Give a campaign more rounds: those that somebody asks for, or one for each disturbed round."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from mpigraft.analysis import is_disturbed, refuse_empty_look
from mpigraft.bench.schedule.campaign import Campaign
from mpigraft.core.clock import utc_now
from mpigraft.core.errors import UsageError
from mpigraft.core.model import CampaignRecord, LaunchRecord
from mpigraft.core.serialize import canonical


def extend_campaign(campaign: CampaignRecord, rounds: int, measured: int) -> CampaignRecord:
    """Make the record of a campaign that goes on to `rounds` rounds; `measured` are begun.

    Its first rounds keep their order: the seed alone makes the schedule. The plan keeps each
    number of rounds that was planned before, and when more were asked for. The number that is
    planned already changes nothing, so the same command goes on after a kill. Raises UsageError
    for fewer.
    """
    if rounds < campaign.rounds:
        raise UsageError.of(
            "rounds-fewer",
            name=campaign.name,
            campaign=campaign.id[:8],
            rounds=campaign.rounds,
            measured=measured,
            requested=rounds,
        )
    if rounds == campaign.rounds:
        return campaign
    stored = json.loads(campaign.plan)
    if "wish" not in stored:
        raise UsageError.of("campaign-not-extendable", name=campaign.name, campaign=campaign.id[:8])
    stored["wish"] |= {"rounds": rounds, "spare_rounds": 0}
    step = {"planned": campaign.rounds, "rounds": rounds, "at": utc_now()}
    stored["extensions"] = [*stored.get("extensions", ()), step]
    refuse_empty_look(longer := replace(campaign, rounds=rounds, plan=canonical(stored)))
    return longer


def with_spare_rounds(
    campaign: Campaign, record: CampaignRecord, launches: Iterable[LaunchRecord]
) -> tuple[Campaign, CampaignRecord]:
    """Give a campaign a round more for each disturbed one of its plan, as far as it has spare
    rounds. How many it gets does not depend on its values, so it keeps its one look, at the end.
    The plan keeps how many there were before, and when more were added."""
    planned = campaign.spec.rounds
    disturbed = {x.round for x in launches if x.round < planned and is_disturbed(x)}
    if not (more := min(campaign.spec.spare_rounds, len(disturbed))):
        return campaign, record
    spec = replace(campaign.spec, rounds=planned + more, spare_rounds=0)
    stored = json.loads(record.plan)
    stored["wish"] |= {"rounds": spec.rounds, "spare_rounds": 0}
    stored["spare"] = {"planned": planned, "rounds": spec.rounds, "at": utc_now()}
    longer = replace(record, rounds=spec.rounds, plan=canonical(stored))
    return replace(campaign, spec=spec), longer


def extended_rounds(campaign: CampaignRecord) -> int:
    """Count the rounds that were planned before the last extension of a campaign, else 0."""
    extensions = json.loads(campaign.plan).get("extensions")
    return int(extensions[-1]["planned"]) if extensions else 0
