"""A campaign: its rounds, launches, outcomes and looks.

Takes a `CampaignSpec` and a machine; writes launches and values to the store. Rooms inside:
`schedule`, `submission`, `importing`, `exchange`, `suites`.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.bench.measurement import Outcome as Outcome
    from mpigraft.bench.pipeline import run_campaign as run_campaign
else:
    __getattr__ = exports(__name__)
