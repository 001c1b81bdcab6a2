"""Slurm, PBS and Flux: scripts, submission, states of jobs.

Takes a `JobRequest`; makes scripts and reads what the scheduler prints. Starts its commands. One
module for each scheduler.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.launch.schedulers.flux import decimal_id as decimal_id
    from mpigraft.launch.schedulers.reasons import waiting_reason as waiting_reason
    from mpigraft.launch.schedulers.registry import SCHEDULERS as SCHEDULERS
    from mpigraft.launch.schedulers.registry import cancel_jobs as cancel_jobs
    from mpigraft.launch.schedulers.registry import find_scheduler as find_scheduler
    from mpigraft.launch.schedulers.registry import job_states as job_states
    from mpigraft.launch.schedulers.registry import run_on_nodes as run_on_nodes
    from mpigraft.launch.schedulers.registry import submit_script as submit_script
    from mpigraft.launch.schedulers.slurm import STEP_OPTIONS as STEP_OPTIONS
else:
    __getattr__ = exports(__name__)
