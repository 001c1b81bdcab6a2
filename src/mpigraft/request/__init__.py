"""What was asked for, from flags, TOML and a site's profile, and the user's environment.

Takes options and files; makes a `CampaignSpec`, a `RunSpec` and environment rows. Reads files
alone.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.request.apps import App as App
    from mpigraft.request.environment import ANOTHER_PLACE as ANOTHER_PLACE
    from mpigraft.request.environment import STEERING as STEERING
    from mpigraft.request.environment import UserEnvironment as UserEnvironment
    from mpigraft.request.environment import filter_environment as filter_environment
    from mpigraft.request.job.layout import decide_layout as decide_layout
    from mpigraft.request.job.layout import mpmd_programs as mpmd_programs
    from mpigraft.request.job.spec import INJECTED as INJECTED
    from mpigraft.request.job.spec import STDIN as STDIN
    from mpigraft.request.job.spec import GraftSpec as GraftSpec
    from mpigraft.request.job.spec import InjectSpec as InjectSpec
    from mpigraft.request.job.spec import JobPlacement as JobPlacement
    from mpigraft.request.job.spec import RunSpec as RunSpec
    from mpigraft.request.job.spec import replaced_part as replaced_part
    from mpigraft.request.job.spec import without_host_mpi as without_host_mpi
    from mpigraft.request.job.subject import JobSubject as JobSubject
    from mpigraft.request.job.subject import folders_of_job as folders_of_job
    from mpigraft.request.job.subject import job_subject as job_subject
    from mpigraft.request.job.subject import parse_bind as parse_bind
    from mpigraft.request.job.subject import program_of as program_of
    from mpigraft.request.job.subject import suggest_programs as suggest_programs
    from mpigraft.request.options import Asked as Asked
    from mpigraft.request.options import RequestOption as RequestOption
    from mpigraft.request.options import asked_for as asked_for
    from mpigraft.request.options import option_words as option_words
    from mpigraft.request.options import options_of as options_of
    from mpigraft.request.options import settings_of as settings_of
    from mpigraft.request.settings import RequestedSetting as RequestedSetting
    from mpigraft.request.site import flag_of_key as flag_of_key
    from mpigraft.request.site import read_site as read_site
    from mpigraft.request.spec import AXES as AXES
    from mpigraft.request.spec import USUAL_MAX_SIZE as USUAL_MAX_SIZE
    from mpigraft.request.spec import CampaignSpec as CampaignSpec
    from mpigraft.request.spec import asked_campaign as asked_campaign
    from mpigraft.request.spec import override_spec as override_spec
    from mpigraft.request.spec import read_spec as read_spec
    from mpigraft.request.spec import stored_spec as stored_spec
else:
    __getattr__ = exports(__name__)
