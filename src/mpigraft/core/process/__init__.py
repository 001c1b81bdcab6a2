"""The one door to other processes.

Takes argument lists, environments and time limits; makes `Completed`: output, exit code, time.
May start, signal and end processes, and hand this process's standard input to ranks.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.core.process.command import Completed as Completed
    from mpigraft.core.process.command import Listener as Listener
    from mpigraft.core.process.command import clean as clean
    from mpigraft.core.process.command import descendants as descendants
    from mpigraft.core.process.command import echo_to as echo_to
    from mpigraft.core.process.command import helpers as helpers
    from mpigraft.core.process.command import run_command as run_command
    from mpigraft.core.process.stdin import end_stdin as end_stdin
    from mpigraft.core.process.stdin import ensure_stdin as ensure_stdin
    from mpigraft.core.process.stdin import serve_stdin as serve_stdin
    from mpigraft.core.process.stdin import start_silent as start_silent
else:
    __getattr__ = exports(__name__)
