"""Ask the MPIs of a campaign which variables of its settings they take, before any measurement.

One program starts alone for each arm that has a setting; no rank is launched.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from mpigraft.bench.schedule.campaign import Campaign, plan_campaign
from mpigraft.core.errors import MpigraftError
from mpigraft.core.model import Configuration, Machine, SettingEffect
from mpigraft.evidence import refuse_unknown_names, setting_effects
from mpigraft.request import AXES, CampaignSpec

UNKNOWN = "setting-name-unknown"
WORKERS = 4  # an MPI that starts waits more than it computes


def with_effects(campaign: Campaign) -> Campaign:
    """Return the campaign with what its MPIs say of settings. Raises UsageError for a name that a
    version does not have, unless that is allowed."""
    arms = [one for one in campaign.configurations if one.setting is not None]

    def query(one: Configuration) -> tuple[SettingEffect, ...]:
        return setting_effects(one, os.environ, campaign.spec.native_build)

    with ThreadPoolExecutor(WORKERS) as pool:
        effects = dict(zip((one.key for one in arms), pool.map(query, arms), strict=True))
    for one in arms if not campaign.spec.allow_unknown else ():
        refuse_unknown_names(one, effects[one.key])
    return replace(campaign, effects=effects)


def refuse_unknown_settings(spec: CampaignSpec, machine: Machine) -> None:
    """Raise UsageError for a variable of a setting that an MPI of this login node does not have,
    before jobs wait for nodes. What else this node lacks says nothing of the nodes of a job."""
    axes = {key: getattr(CampaignSpec(), key) for key in AXES}
    spec = replace(spec, layout=("1x2",), benchmark=("latency",), matrix="", limits=(), **axes)
    try:
        with_effects(plan_campaign(spec, machine))
    except MpigraftError as error:
        if error.code == UNKNOWN:
            raise
