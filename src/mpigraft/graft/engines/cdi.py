"""Describe the graft as a device of the Container Device Interface (podman, Docker, containerd,
CRI-O): `--device mpigraft/graft=NAME` puts it under any image that it fits.

Source: the CDI specification, container-device-interface SPEC.md and schema, version 0.5.0: the
first with a device's path on the host. CDI can only set a variable, so the document lacks what the
plan drops; engines with CDI pass nothing on by themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Bind, BindKind, GraftPlan
from mpigraft.graft.engines.mounts import GRAFT, RANKS, present
from mpigraft.graft.injection.plan import PLACE_ON_HOST

VERSION = "0.5.0"
KIND = "mpigraft/graft"


def name(plan: GraftPlan) -> str:
    """Give the device's name: letters and digits, as the specification requires."""
    return plan.key[:32]


def cdi_document(plan: GraftPlan, folder: Path) -> dict[str, Any]:
    """Make a CDI specification with one device; `folder` is the graft folder on this host.

    It has the optional devices that this machine has. Raises UsageError for a plan without an
    engine, whose libraries search each other on the host.
    """
    if plan.place == PLACE_ON_HOST:
        raise UsageError.of("cdi-needs-engine")
    graft = str(folder)
    binds = (
        Bind(graft, plan.place, BindKind.FOLDER),
        Bind(f"{graft}/{RANKS}", f"{plan.place}/{RANKS}", BindKind.FOLDER, writable=True),
        *plan.binds,
        *present(plan.devices),
    )
    nodes = [b for b in binds if b.kind is BindKind.DEVICE]
    edits: dict[str, Any] = {
        "env": [f"{r.name}={r.value}" for r in plan.environment if r.value is not None],
        "mounts": [_mount(b, graft) for b in binds if b.kind is not BindKind.DEVICE],
    }
    if nodes:
        edits["deviceNodes"] = [{"path": b.target, "hostPath": b.source} for b in nodes]
    return {
        "cdiVersion": VERSION,
        "kind": KIND,
        "devices": [{"name": name(plan), "containerEdits": edits}],
    }


def _mount(bind: Bind, graft: str) -> dict[str, Any]:
    mode = "rw" if bind.writable else "ro"
    return {
        "hostPath": bind.source.replace(GRAFT, graft),
        "containerPath": bind.target,
        "options": ["rbind", "rprivate", "nosuid", mode],
    }
