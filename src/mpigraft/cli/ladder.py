"""Measure the steps of an exchange over transports, and say which property moves their ratio."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import Allocation

if TYPE_CHECKING:
    from mpigraft.analysis import StepRatio
    from mpigraft.request import Asked, CampaignSpec
    from mpigraft.store import Store
    from mpigraft.trace import Exchange


class LadderKeys(TypedDict):
    """The ratio of each step of an exchange."""

    campaign: str
    baseline: str
    steps: list[StepRatio]


ROUTINE = "routine=Alltoallv"  # of every step


def write_steps(exchange: Exchange, folder: Path) -> tuple[Path, ...]:
    """Write the synthetic records. Raises MissingError."""
    from mpigraft.core.write import make_folder, write_whole
    from mpigraft.trace import make_ladder

    made = []
    try:
        make_folder(folder)
        for step in make_ladder(exchange):
            made.append(folder / f"{step.name}.record")
            write_whole(made[-1], step.data)
    except OSError as error:
        raise MissingError.of(
            "record-unwritable", path=folder, reason=error.strerror or error
        ) from error
    return tuple(made)


def usual_folder(exchange: Exchange) -> Path:
    """Return where the steps of an exchange lie if nobody names a folder: a stopped campaign needs
    them to continue."""
    from mpigraft.core.cache import folders
    from mpigraft.core.serialize import digest

    return folders().data / "analyse" / digest(asdict(exchange))[:16]


def layout_of(exchange: Exchange, allocation: Allocation) -> str:
    """Return all ranks of the exchange, on all nodes if they divide evenly."""
    nodes = max(1, len(allocation.hosts))
    nodes = nodes if exchange.ranks % nodes == 0 else 1
    return f"{nodes}x{exchange.ranks // nodes}"


def spec_of(paths: tuple[Path, ...], layout: str, asked: Asked[CampaignSpec]) -> CampaignSpec:
    """Return the campaign over the steps: the same options as those of `mpigraft bench`."""
    from mpigraft.request import CampaignSpec, override_spec, read_site

    for path in paths:
        if set(str(path)) & set(",:"):
            raise UsageError.of("analyse-path", path=path)
    steps = tuple(f"app:{path}" for path in paths)
    spec = CampaignSpec(name="analyse", benchmark=steps, layout=(layout,))
    return read_site(os.environ).with_defaults(override_spec(spec, asked))


def judged(store: Store, identity: str, paths: tuple[Path, ...]) -> LadderKeys:
    """Return the ratios of each step as a document: baseline, campaign, a row for each step."""
    from mpigraft.analysis import judge_steps
    from mpigraft.core.serialize import plain

    campaign = store.campaign(identity)
    parts = [(path.stem, f"{path.name},") for path in paths]
    values = [row for row in store.values(identity) if ROUTINE in row.benchmark]
    baseline, rows = judge_steps(campaign, tuple(store.configurations(identity)), values, parts)
    return {"campaign": identity, "baseline": baseline, "steps": [plain(row) for row in rows]}
