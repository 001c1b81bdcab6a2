"""The plan that the jobs of one campaign agree on: the one that was offered first."""

from __future__ import annotations

import os
from pathlib import Path

from mpigraft.core.errors import MissingError
from mpigraft.core.model import CampaignRecord
from mpigraft.core.serialize import canonical, revive
from mpigraft.core.write import write_whole
from mpigraft.store import bounds, file
from mpigraft.store.rows import DAMAGE


def agreed_plan(folder: Path, campaign: str) -> CampaignRecord | None:
    """Read the record that jobs of one campaign agreed on; None before the first has started.
    They start what it says, so it must not be another user's. Raises MissingError."""
    path = _place(folder, campaign)
    return _record(path) if os.path.lexists(path) else None


def agree_on_plan(folder: Path, record: CampaignRecord) -> CampaignRecord:
    """Offer a campaign as it was planned; returns the one that was offered first, by whichever
    job. Raises MissingError when the folder cannot be written."""
    with file.translate_errors(folder):
        text = canonical(record).encode()
        write_whole(_place(folder, record.id), text, 0o600, links=False, first=True)
    return _record(_place(folder, record.id))


def _place(folder: Path, campaign: str) -> Path:
    return folder / f"{campaign}.campaign"


def _record(path: Path) -> CampaignRecord:
    try:
        text = bounds.read_text(path, own=True)
        record: CampaignRecord = revive(CampaignRecord, bounds.parse_json(text))
    except (OSError, *DAMAGE) as error:
        raise MissingError.of("store-plan-unreadable", path=path, error=error) from error
    return record
