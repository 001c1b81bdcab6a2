"""What one `run` means: its command, its guest, its layout.

Takes options; makes a `RunSpec`, the guest of it and a placement. Reads files alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.request.job.layout import JobPlacement as JobPlacement
    from mpigraft.request.job.layout import decide_layout as decide_layout
    from mpigraft.request.job.layout import mpmd_programs as mpmd_programs
    from mpigraft.request.job.spec import STDIN as STDIN
    from mpigraft.request.job.spec import JobSubject as JobSubject
    from mpigraft.request.job.spec import RunSpec as RunSpec
    from mpigraft.request.job.spec import folders_of_job as folders_of_job
    from mpigraft.request.job.spec import job_subject as job_subject
    from mpigraft.request.job.spec import parse_bind as parse_bind
    from mpigraft.request.job.spec import program_of as program_of
    from mpigraft.request.job.spec import suggest_programs as suggest_programs
    from mpigraft.request.job.spec import without_host_mpi as without_host_mpi
else:
    __getattr__ = exports(__name__)
