"""The second start of a job: what the first decided, read back.

Takes the words of a command; makes a finished command line, or nothing where in doubt. Reads and
writes the cache, with the standard library alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.run.cached.document import launch_findings as launch_findings
    from mpigraft.run.cached.document import may_be_kept as may_be_kept
    from mpigraft.run.cached.document import start_document as start_document
    from mpigraft.run.cached.document import watched_files as watched_files
    from mpigraft.run.cached.refusal import keep_refusal as keep_refusal
    from mpigraft.run.cached.refusal import kept_refusal as kept_refusal
    from mpigraft.run.cached.start import keep_start as keep_start
    from mpigraft.run.cached.start import start_job as start_job
    from mpigraft.run.cached.start import start_kept as start_kept
    from mpigraft.run.cached.start import start_key as start_key
else:
    __getattr__ = exports(__name__)
