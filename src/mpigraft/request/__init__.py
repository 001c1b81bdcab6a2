"""What was asked for, from flags, TOML and a site's profile, and the user's environment.

Takes options and files; makes a `CampaignSpec` and environment rows. Reads files alone. Rooms
inside: `selection`, `fit`, `job`.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.request.apps import App as App
    from mpigraft.request.environment import ANOTHER_PLACE as ANOTHER_PLACE
    from mpigraft.request.environment import STEERING as STEERING
    from mpigraft.request.environment import UserEnvironment as UserEnvironment
    from mpigraft.request.environment import filter_environment as filter_environment
    from mpigraft.request.site import flag_of_key as flag_of_key
    from mpigraft.request.site import read_site as read_site
    from mpigraft.request.spec import CampaignSpec as CampaignSpec
    from mpigraft.request.spec import given_fields as given_fields
    from mpigraft.request.spec import merge_specs as merge_specs
    from mpigraft.request.spec import read_spec as read_spec
    from mpigraft.request.spec import stored_spec as stored_spec
else:
    __getattr__ = exports(__name__)
