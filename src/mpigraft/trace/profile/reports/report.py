"""What a report of another profiler is, and those that are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mpigraft.trace.profile.values import Profile


@dataclass(frozen=True, slots=True)
class Report:
    is_one: Callable[[str], bool]  # by the head of a file
    parse: Callable[[str, Path], Profile]


REPORTS: dict[str, Report] = {}
