"""A campaign that `mpigraft export` wrote, taken back as it was."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

from mpigraft.bench.exchange.reading import read_export
from mpigraft.bench.exchange.rows import ExportedLaunch
from mpigraft.bench.importing.reading import ImportOptions, ImportSource
from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    AllocationRecord,
    CampaignRecord,
    ConfigurationRecord,
    EvidenceRecord,
    Origin,
)
from mpigraft.core.serialize import canonical
from mpigraft.store import Store, Writer

EDITED = uuid.UUID("b1c0a9b2-7f0b-5d52-8a54-0d6c1d3b9a10")  # for ids of edited ones


def take_export(
    store: Store,
    source: ImportSource,
    form: str,
    options: ImportOptions,
    open_writer: Callable[[], Writer] | None,
) -> tuple[str, int, int]:
    """Store an exported campaign, the whole file in one transaction, without the launches that
    are there; without `open_writer` only count. Returns the campaign's name, its new launches
    and their values. Raises UsageError, and nothing of it is stored.
    """
    if replace(options, edited=False) != ImportOptions():
        flags = "no flag says what it holds: it says so itself"
        raise UsageError.of("import-conflict", path=source.name, conflict=flags)
    writer = open_writer() if open_writer else None
    campaign: CampaignRecord | None = None
    known: set[str] = set()
    launches = values = 0
    with writer.batch() if writer else nullcontext():
        try:
            read = read_export(source.path, form, source.name, edited=options.edited)
            for launched in (_edited(one, source) for one in read) if options.edited else read:
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


def _edited(launched: ExportedLaunch, source: ImportSource) -> ExportedLaunch:
    """Return the records under other ids and another name: the edited campaign is an import beside
    the measured one. The ids are the same for the same content."""
    content = hashlib.sha256(source.path.read_bytes()).hexdigest()

    def own(identity: str) -> str:
        return str(uuid.uuid5(EDITED, f"{content} {identity}"))

    def mark(record: CampaignRecord) -> CampaignRecord:
        try:
            plan = canonical({**json.loads(record.plan), "edited": True})
        except (ValueError, TypeError, RecursionError):
            plan = record.plan  # which is refused
        name, origin = f"{record.name}-edited", Origin.IMPORT
        return replace(record, id=own(record.id), name=name, origin=origin, plan=plan)

    heads = [
        mark(one) if isinstance(one, CampaignRecord) else replace(one, campaign=own(one.campaign))
        for one in launched.heads
    ]
    launch = launched.launch
    if launch:
        launch = replace(launch, id=own(launch.id), campaign=own(launch.campaign))
    return ExportedLaunch(launch, launched.measurements, heads)


def _campaign(launched: ExportedLaunch, source: ImportSource) -> CampaignRecord:
    """Return the campaign, which the first row has. Raises UsageError."""
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


def _check(launched: ExportedLaunch, campaign: CampaignRecord, source: ImportSource) -> None:
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


def _refusal(source: ImportSource, problem: str) -> UsageError:
    return UsageError.of("export-invalid", place=source.name, problem=problem)


def _write(launched: ExportedLaunch, writer: Writer, *, new: bool) -> None:
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
