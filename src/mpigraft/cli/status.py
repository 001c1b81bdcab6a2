"""`mpigraft status`: how far the jobs of a campaign are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import out, settings, tell
from mpigraft.errors import MissingError
from mpigraft.report import words

if TYPE_CHECKING:
    from mpigraft.submission import ShareStatus, Status

SHOWN = 5  # findings, and words of a list of hosts


def command(
    ctx: typer.Context,
    campaign: Annotated[
        str,
        typer.Argument(help="Id, its beginning, or name.", show_default="the last submitted"),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON document.")] = False,
) -> None:
    """Show how far the jobs of a submitted campaign are, and what went wrong.

    Example: mpigraft status night
    """
    from mpigraft import schedulers, submission
    from mpigraft.cli.submit import find
    from mpigraft.jsonout import document
    from mpigraft.store import Store

    store = Store(settings(ctx).store)
    record = find(store, campaign)
    jobs = [job.job for job in store.jobs(record.campaign)]
    silent = ""
    try:
        states = schedulers.states(record.scheduler, jobs)
    except MissingError as error:  # what is in the store is worth a look all the same
        states, silent = {}, str(error)
    found = submission.status(store, record, states)
    if as_json:
        out(document(submission=found, scheduler_silent=silent, findings=store.findings))
        return
    if silent:
        tell(silent)
    out("\n".join(lines(found, silent=bool(silent))))


def lines(found: Status, *, silent: bool = False) -> Iterator[str]:
    record = found.record
    jobs, nodes = words.many(record.shares, "job"), words.many(record.nodes, "node")
    yield f"{record.name} ({record.campaign[:8]}), {jobs} of {nodes} by {record.scheduler}"
    if not found.planned:
        yield "  not planned yet: the first job to start does that"
    for share in found.shares:
        yield f"  share {share.share}/{record.shares}  {_share(share, silent)}"
    for finding, times in found.findings[:SHOWN]:
        yield f"  {times} x {finding.code}: {finding.seen.partition(chr(10))[0]}"
    if len(found.findings) > SHOWN:
        yield f"  and {len(found.findings) - SHOWN} other failures: `mpigraft results show`"
    short = record.campaign[:8]
    if all(share.done for share in found.shares):
        yield f"done: `mpigraft compare {short}`"
    elif found.open and not silent:
        yield f"`mpigraft submit --resume {short}` hands in what was cut off"


def _share(share: ShareStatus, silent: bool) -> str:
    from mpigraft.launchers.hostlist import folded

    made = words.many(share.launches, "launch")
    where = f" on {folded(share.nodes.split(','), SHOWN)}" if share.nodes else ""
    if share.done:
        waits = share.status.state == "pending"
        rest = (share.job, *share.behind) if waits else share.behind
        idle = f"; queued with nothing left to do: {', '.join(rest)}" if rest else ""
        return f"done: {made}{where}{idle}"
    if not share.job:
        return "was never handed in"
    state = "state not known" if silent else str(share.status.state)
    word = f" ({share.status.word})" if share.status.word.lower() != state else ""
    reason = f", {share.status.reason}" if share.status.reason else ""
    left = f", {share.left} left" if share.left else ""
    eta = "" if share.left_s is None else f", about {words.duration(share.left_s)}"
    then = f"; then {', '.join(share.behind)}" if share.behind else ""
    return f"job {share.job} {state}{word}{reason}{where}: {made}{left}{eta}{then}"
