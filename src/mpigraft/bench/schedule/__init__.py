"""A campaign's plan: configurations, layouts, sizes and the order of launches.

Takes a `CampaignSpec` and a machine; makes a `Campaign` and its steps. Computes alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.bench.schedule.again import repeated_spec as repeated_spec
    from mpigraft.bench.schedule.campaign import Campaign as Campaign
    from mpigraft.bench.schedule.campaign import Step as Step
    from mpigraft.bench.schedule.campaign import allocation_record as allocation_record
    from mpigraft.bench.schedule.campaign import campaign_record as campaign_record
    from mpigraft.bench.schedule.campaign import completed_spec as completed_spec
    from mpigraft.bench.schedule.campaign import extend_campaign as extend_campaign
    from mpigraft.bench.schedule.campaign import extended_rounds as extended_rounds
    from mpigraft.bench.schedule.campaign import plan_campaign as plan_campaign
    from mpigraft.bench.schedule.campaign import resume_campaign as resume_campaign
    from mpigraft.bench.schedule.campaign import schedule_launches as schedule_launches
    from mpigraft.bench.schedule.starts import Start as Start
else:
    __getattr__ = exports(__name__)
