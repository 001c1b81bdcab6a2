"""A campaign: its rounds, launches, outcomes and looks.

Takes a `CampaignSpec` and a machine; writes launches and values to the store. Rooms inside:
`schedule`, `submission`, `importing`, `exchange`, `suites`.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.bench.exchange.writing import write_export as write_export
    from mpigraft.bench.forecast import Forecast as Forecast
    from mpigraft.bench.forecast import JobsPlan as JobsPlan
    from mpigraft.bench.forecast import forecast_jobs as forecast_jobs
    from mpigraft.bench.forecast import idle_layouts as idle_layouts
    from mpigraft.bench.importing.batches import import_files as import_files
    from mpigraft.bench.importing.pattern import Pattern as Pattern
    from mpigraft.bench.importing.reading import ImportedFile as ImportedFile
    from mpigraft.bench.importing.reading import ImportOptions as ImportOptions
    from mpigraft.bench.importing.reading import read_results as read_results
    from mpigraft.bench.importing.sources import collect_sources as collect_sources
    from mpigraft.bench.measurement import LaunchOutcome as LaunchOutcome
    from mpigraft.bench.pipeline import JobPart as JobPart
    from mpigraft.bench.pipeline import run_campaign as run_campaign
    from mpigraft.bench.schedule.again import benchmark_command as benchmark_command
    from mpigraft.bench.schedule.again import native_launches as native_launches
    from mpigraft.bench.schedule.again import repeated_spec as repeated_spec
    from mpigraft.bench.schedule.benchmarks import benchmark_names as benchmark_names
    from mpigraft.bench.schedule.benchmarks import pairing_spec as pairing_spec
    from mpigraft.bench.schedule.campaign import Campaign as Campaign
    from mpigraft.bench.schedule.campaign import Step as Step
    from mpigraft.bench.schedule.campaign import campaign_record as campaign_record
    from mpigraft.bench.schedule.campaign import plan_campaign as plan_campaign
    from mpigraft.bench.schedule.campaign import resume_campaign as resume_campaign
    from mpigraft.bench.schedule.campaign import schedule_launches as schedule_launches
    from mpigraft.bench.schedule.extension import extend_campaign as extend_campaign
    from mpigraft.bench.schedule.places import Start as Start
    from mpigraft.bench.settings_in_effect import refuse_unknown_settings as refuse_unknown_settings
    from mpigraft.bench.settings_in_effect import with_effects as with_effects
    from mpigraft.bench.submission import ShareStatus as ShareStatus
    from mpigraft.bench.submission import SubmissionStatus as SubmissionStatus
    from mpigraft.bench.submission import agreed_campaign as agreed_campaign
    from mpigraft.bench.submission import extend_submission as extend_submission
    from mpigraft.bench.submission import network_options as network_options
    from mpigraft.bench.submission import parse_duration as parse_duration
    from mpigraft.bench.submission import plan_submission as plan_submission
    from mpigraft.bench.submission import share_done as share_done
    from mpigraft.bench.submission import share_job as share_job
    from mpigraft.bench.submission import submission_status as submission_status
    from mpigraft.bench.submission import submit_jobs as submit_jobs
    from mpigraft.bench.suites.registry import PROGRAM_SUITES as PROGRAM_SUITES
else:
    __getattr__ = exports(__name__)
