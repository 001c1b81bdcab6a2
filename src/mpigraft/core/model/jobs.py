"""Campaigns that run as jobs of a scheduler: what was submitted, and its state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Shard:
    """The part of a campaign's rounds that one of several jobs measures: every `of`-th."""

    number: int = 1  # from 1
    of: int = 1

    def has(self, round_: int) -> bool:
        return round_ % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class JobState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"
    GONE = "gone"  # the scheduler does not know it any more


@dataclass(frozen=True, slots=True)
class JobStatus:
    """A job's state as the scheduler reports it."""

    state: JobState
    word: str = ""  # its own word: TIMEOUT, NODE_FAIL, R
    reason: str = ""  # why it waits, or how it ended


@dataclass(frozen=True, slots=True)
class SubmissionRecord:
    """A campaign that was handed to a scheduler, before any node of it was seen."""

    campaign: str  # UUID, of the campaign that the first job to start will plan
    name: str
    created: str  # ISO 8601, UTC
    scheduler: str  # slurm, pbs, flux
    wish: str  # canonical JSON of the CampaignSpec, its rounds and seed set; named as stored
    nodes: int
    limit_s: int  # of each job
    shares: int


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job of a submission; a share that did not end has another later."""

    campaign: str
    share: int  # from 1
    job: str  # its id at the scheduler
    submitted: str  # ISO 8601, UTC
    script: str  # the text that was handed in


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What a job script is to say, in no scheduler's words."""

    folder: str  # where it starts
    name: str = "mpigraft"
    nodes: int = 1
    limit_s: int = 600
    output: str = ""  # file for what it prints, without its ending
    command: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    partition: str = ""
    network: str = ""  # Slingshot: single_node_vni, job_vni
    after: str = ""  # id of a job that must have ended, however it did
    extra: tuple[str, ...] = ()  # words for the scheduler as the user gave them
