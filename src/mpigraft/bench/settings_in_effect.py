"""Ask the MPIs of a campaign which variables of its settings they take, before any measurement.

One program starts alone for each arm that has a setting; no rank is launched.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from mpigraft.bench.schedule.campaign import Campaign
from mpigraft.core.model import Configuration, SettingEffect
from mpigraft.evidence import refuse_unknown_names, setting_effects

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
