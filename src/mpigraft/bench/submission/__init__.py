"""A campaign in jobs of a scheduler.

Takes a `CampaignSpec` and nodes; makes jobs, hands them in and says how they stand. Writes the
store and starts the scheduler's commands.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.bench.submission.jobs import ShareStatus as ShareStatus
    from mpigraft.bench.submission.jobs import Status as Status
    from mpigraft.bench.submission.jobs import agreed_campaign as agreed_campaign
    from mpigraft.bench.submission.jobs import extend_submission as extend_submission
    from mpigraft.bench.submission.jobs import network_options as network_options
    from mpigraft.bench.submission.jobs import parse_duration as parse_duration
    from mpigraft.bench.submission.jobs import plan_submission as plan_submission
    from mpigraft.bench.submission.jobs import share_done as share_done
    from mpigraft.bench.submission.jobs import share_job as share_job
    from mpigraft.bench.submission.jobs import submission_status as submission_status
    from mpigraft.bench.submission.jobs import submit_jobs as submit_jobs
else:
    __getattr__ = exports(__name__)
