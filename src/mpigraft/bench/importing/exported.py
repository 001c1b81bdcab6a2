"""A campaign that `mpigraft export` wrote, taken back as it was."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import nullcontext

from mpigraft.bench.exchange import Launched, read_export
from mpigraft.bench.importing.reading import ImportOptions, Source
from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    AllocationRecord,
    CampaignRecord,
    ConfigurationRecord,
    EvidenceRecord,
)
from mpigraft.store import Store, Writer


def take_export(
    store: Store,
    source: Source,
    form: str,
    options: ImportOptions,
    open_writer: Callable[[], Writer] | None,
) -> tuple[str, int, int]:
    """Store an exported campaign, the whole file in one transaction, without the launches that
    are there; without `open_writer` only count. Returns the campaign's name, its new launches
    and their values. Raises UsageError, and nothing of it is stored.
    """
    if options != ImportOptions():
        flags = "no flag says what it holds: it says so itself"
        raise UsageError.of("import-conflict", path=source.name, conflict=flags)
    writer = open_writer() if open_writer else None
    campaign: CampaignRecord | None = None
    known: set[str] = set()
    launches = values = 0
    with writer.batch() if writer else nullcontext():
        try:
            for launched in read_export(source.path, form, source.name):
                if campaign is None:
                    campaign = _campaign(launched, source)
                    known = {row.launch for row in store.launch_tables(campaign.id)}
                _check(launched, campaign, source)
                new = launched.launch is not None and launched.launch.id not in known
                if writer:
                    _write(launched, writer, new=new)
                if new:
                    launches, values = launches + 1, values + len(launched.measurements)
        except OSError as error:
            reason = error.strerror or str(error)
            raise UsageError.of("import-unreadable", path=source.name, reason=reason) from error
    if campaign is None:
        raise UsageError.of("import-no-value", path=source.name, problem="it has no row")
    return campaign.name, launches, values


def _campaign(launched: Launched, source: Source) -> CampaignRecord:
    """The campaign, which the first row has. Raises UsageError."""
    campaign = next((h for h in launched.heads if isinstance(h, CampaignRecord)), None)
    if campaign is None:
        raise _refusal(source, "its first row, which has the records of the campaign, is missing")
    try:
        uuid.UUID(campaign.id)
        if not isinstance(json.loads(campaign.plan), dict):
            raise ValueError
    except (ValueError, RecursionError) as error:
        raise _refusal(source, "the campaign's id or plan is not one") from error
    return campaign


def _check(launched: Launched, campaign: CampaignRecord, source: Source) -> None:
    """Raise UsageError for records of another campaign, and for names that no table can show."""
    records = [*launched.heads, *([launched.launch] if launched.launch else [])]
    for record in records:
        owner = record.id if isinstance(record, CampaignRecord) else record.campaign
        if owner != campaign.id:
            raise _refusal(source, "it holds records of two campaigns")
    names = [campaign.name]
    for head in launched.heads:
        match head:
            case ConfigurationRecord():
                names += [head.id, head.buffers]
            case AllocationRecord():
                names += [head.host, head.job, *head.hosts]
            case EvidenceRecord():
                names.append(head.layout)
    names += [launched.launch.layout] if launched.launch else []
    if odd := [name for name in names if not name.isprintable() or len(name) > 1000]:
        raise _refusal(source, f"a name in it is {odd[0][:40]!r}")


def _refusal(source: Source, problem: str) -> UsageError:
    return UsageError.of("export-invalid", place=source.name, problem=problem)


def _write(launched: Launched, writer: Writer, *, new: bool) -> None:
    for head in launched.heads:
        match head:
            case CampaignRecord():
                writer.add_campaign(head)
            case ConfigurationRecord():
                writer.add_configuration(head)
            case AllocationRecord():
                writer.add_allocation(head)
            case EvidenceRecord():
                writer.add_evidence(head)
    if new and launched.launch:
        writer.add_launch(launched.launch, launched.measurements, {})
