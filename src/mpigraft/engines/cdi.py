"""The graft as a device of the Container Device Interface, for engines that know it (podman,
Docker, containerd, CRI-O): `--device mpigraft/graft=NAME` puts it under any image that it fits.

Source: the CDI specification, container-device-interface SPEC.md and schema, version 0.5.0: the
first with a device's path on the host. CDI only ever sets a variable, so what the plan drops is
not in the document; engines that know CDI hand nothing on by themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mpigraft.engines.mounts import GRAFT, RANKS, present
from mpigraft.errors import UsageError
from mpigraft.model import Bind, BindKind, GraftPlan
from mpigraft.plan import ANYWHERE

VERSION = "0.5.0"
KIND = "mpigraft/graft"


def name(plan: GraftPlan) -> str:
    """The device's name: letters and digits, as the specification wants them."""
    return plan.key[:32]


def document(plan: GraftPlan, folder: Path) -> dict[str, Any]:
    """A CDI specification with one device; `folder` is the graft folder on this host. Optional
    devices are in it when they are on this machine. Raises UsageError for a plan of no engine,
    whose libraries look for each other on the host."""
    if plan.place == ANYWHERE:
        raise UsageError("a plan without an engine is no device", mend="plan with --engine podman")
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
