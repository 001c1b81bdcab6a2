"""A job whose ranks do not come: some launchers wait for ever for a node that lacks the MPI.

Standard library only, as `start`. After a while the nodes are compared, once and by a process of
its own: signals that come for the job are waited for here.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from mpigraft.core.process import start_silent
from mpigraft.run.foreground import END, GO_ON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mpigraft.run.cached.start import Document

AFTER_S = 10.0
PER_RANK_S = 0.05  # more: thousands of ranks take minutes to start
LIMIT_S = 60
FATAL = 4  # the exit code of COMPARE where the job cannot run
COMPARE = (
    "import sys; from mpigraft.run.cached.document import nodes_findings; "
    f"sys.exit({FATAL} if nodes_findings(sys.argv[1]) else 0)"
)


class Stall:
    """Whether a job waits in vain for ranks on a node."""

    def __init__(self, document: Document, world: Callable[[], int]) -> None:
        self.world = world  # a look at the ranks that have come
        self.due = time.monotonic() + AFTER_S + PER_RANK_S * document["ranks"]
        self.words = [document["argv"][0], "--limit", str(LIMIT_S), "--parent", str(os.getpid()),
                      "--", sys.executable, "-c", COMPARE, document["key"]]  # fmt: skip
        self.pid = 0  # of the comparison while it runs
        self.fatal = False

    def look(self) -> int:
        """For `attached`: the world's answer, but END where a node keeps the job from running."""
        if (answer := self.world()) != GO_ON:
            return answer
        if self.pid:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.pid = 0 if ended else self.pid
            self.fatal = bool(ended) and os.waitstatus_to_exitcode(status) == FATAL
        elif time.monotonic() >= self.due:
            self.due = float("inf")
            self.pid = start_silent(self.words)
        return END if self.fatal else GO_ON

    def end(self) -> None:
        """End a comparison that nobody waits for any more: the guard ends all that it started."""
        if self.pid:
            os.kill(self.pid, signal.SIGTERM)
            os.waitpid(self.pid, 0)
