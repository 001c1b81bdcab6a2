"""The progress of a submitted campaign."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpigraft.core.hostlist import fold_hosts
from mpigraft.core.numbers import counted, duration
from mpigraft.knowledge import waiting_reason

if TYPE_CHECKING:
    from mpigraft.bench import ShareStatus, SubmissionStatus

SHOWN = 5  # findings, and words of a list of hosts


def submission_lines(status: SubmissionStatus, *, silent: bool = False) -> Iterator[str]:
    """Describe each share of a campaign and what went wrong. `silent`: the scheduler did not say
    what its jobs do."""
    record = status.record
    jobs, nodes = counted(record.shares, "job"), counted(record.nodes, "node")
    yield f"{record.name} ({record.campaign[:8]}), {jobs} of {nodes} by {record.scheduler}"
    if not status.planned:
        yield "  not planned yet: the first job to start does that"
    for share in status.shares:
        yield f"  share {share.share}/{record.shares}  {_share(share, silent)}"
    for finding, times in status.findings[:SHOWN]:
        yield f"  {times} x {finding.code}: {finding.message.partition(chr(10))[0]}"
    if len(status.findings) > SHOWN:
        yield f"  and {len(status.findings) - SHOWN} other failures: `mpigraft results show`"
    short = record.campaign[:8]
    if all(share.done for share in status.shares):
        yield f"done: `mpigraft compare {short}`"
    elif status.open and not silent:
        yield f"`mpigraft submit --resume {short}` submits what was cut off"


def _share(share: ShareStatus, silent: bool) -> str:
    made = counted(share.launches, "launch")
    if share.to_prove:
        made = f"proving {min(share.proved + 1, share.to_prove)}/{share.to_prove}; {made}"
    where = f" on {fold_hosts(share.nodes.split(','), SHOWN)}" if share.nodes else ""
    if share.done:
        waits = share.status.state == "pending"
        rest = (share.job, *share.behind) if waits else share.behind
        idle = f"; queued with nothing left to do: {', '.join(rest)}" if rest else ""
        return f"done: {made}{where}{idle}"
    if not share.job:
        return "not submitted"
    state = "state not known" if silent else str(share.status.state)
    word = f" ({share.status.word})" if share.status.word.lower() != state else ""
    word += " again after it ran" if share.requeued else ""
    reason = f", {share.status.reason}" if share.status.reason else ""
    if share.status.state == "pending" and (words := waiting_reason(share.status.reason)):
        reason += f": {words}"
    left = f", {share.left} left" if share.left else ""
    eta = "" if share.left_s is None else f", about {duration(share.left_s)}"
    then = f"; then {', '.join(share.behind)}" if share.behind else ""
    return f"job {share.job} {state}{word}{reason}{where}: {made}{left}{eta}{then}"
