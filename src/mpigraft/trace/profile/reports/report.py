"""The reports of other profilers that are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mpigraft.trace.profile.reports.craypat import is_craypat, parse_craypat
from mpigraft.trace.profile.reports.ipm import is_ipm, parse_ipm
from mpigraft.trace.profile.reports.mpip import is_mpip, parse_mpip
from mpigraft.trace.profile.reports.mpitrace import is_mpitrace, parse_mpitrace
from mpigraft.trace.profile.values import Profile


@dataclass(frozen=True, slots=True)
class Report:
    is_one: Callable[[str], bool]  # the program's own output may be around it
    parse: Callable[[str, Path], Profile]


REPORTS = {
    "mpiP": Report(is_mpip, parse_mpip),
    "mpitrace": Report(is_mpitrace, parse_mpitrace),
    "IPM": Report(is_ipm, parse_ipm),
    "CrayPat-lite": Report(is_craypat, parse_craypat),
}
