"""Limits of processes that podman raises where it starts a container, and may not here."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from mpigraft.core.model import Finding, GraftPlan

SYS_RESOURCE = 24  # the bit of CAP_SYS_RESOURCE (capabilities(7))
RAISED = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
MOST = 32768  # podman 4.3.1 lowers its own limit of processes to kernel.pid_max, which is no less


def explain_limits(plan: GraftPlan | None) -> tuple[Finding, ...]:
    """Report why podman may have started no rank of this plan: as root it raises limits, which
    takes a capability, unless it is given others."""
    if plan is None or plan.engine != "podman" or os.geteuid():
        return ()
    if any(word.startswith("--ulimit") for word in plan.options) or _may_raise_limits():
        return ()
    words = []
    for name, number in RAISED.items():
        limits = resource.getrlimit(number)
        soft, hard = (min(limit, MOST) if limit >= 0 else MOST for limit in limits)
        words += ['"--ulimit"', f'"{name}={soft}:{hard}"']
    return (Finding.of("podman-limits", options=f"[{', '.join(words)}]"),)


def _may_raise_limits() -> bool:
    """Also where it is not known."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True
    fields = dict(line.partition(":")[::2] for line in status.splitlines())
    return bool(int(fields.get("CapEff", "").strip() or "-1", 16) >> SYS_RESOURCE & 1)
