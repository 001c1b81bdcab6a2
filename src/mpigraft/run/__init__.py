"""One job of a user: plan, proof, start.

Takes a `RunSpec`; makes a `Job` and its exit code. Starts the job in the foreground with this
process's own streams. `cached` starts a job again without planning it.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.run.foreground import DONE as DONE
    from mpigraft.run.foreground import END as END
    from mpigraft.run.foreground import GO_ON as GO_ON
    from mpigraft.run.foreground import run_attached as run_attached
    from mpigraft.run.plan import Job as Job
    from mpigraft.run.plan import job_records as job_records
    from mpigraft.run.plan import plan_job as plan_job
    from mpigraft.run.plan import prepare_job as prepare_job
    from mpigraft.run.proof import proof_step as proof_step
    from mpigraft.run.proof import prove_job as prove_job
    from mpigraft.run.proof import surroundings as surroundings
    from mpigraft.run.scratch import new_folder as new_folder
else:
    __getattr__ = exports(__name__)
