"""Files as the witness writes them, and the document of a cached job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from mpigraft.core.fingerprint import boot_id, file_fingerprint
from mpigraft.evidence.world.mapped import LIBMPI
from mpigraft.evidence.world.networks import NETWORK_LIBRARY
from mpigraft.run.cached import start

NODE = "n0-00000000000000a1"
LIBRARY = ("/opt/mpi/lib/libmpi.so.40", 1, 2)  # path, device, inode


def a_rank(content: str = "", **changes: Any) -> dict[str, Any]:
    """What a rank is, in the words of RankRecord; `content` is that of all its libraries."""
    if content:
        changes["contents"] = {path: content for path, _, _ in changes["libraries"]}
    return {
        "rank": 0, "size": 2, "host": "n0", "pid": 7, "library_version": "Open MPI v5.0.11",
        "cores": "0", "libraries": [LIBRARY], "numa": {"0": "0-3"}, "boot": boot_id(),
        **changes,
    }  # fmt: skip


def a_task(process: str = "1.1", **changes: object) -> dict[str, Any]:
    """What a process writes that is not the task's own one (native/preload/task.h)."""
    return {"process": process, "connected": True, "job": "", "spawned": False,
            "above": [process], **changes}  # fmt: skip


def lines(ranks: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The lines that these ranks of one node write; what they have in common is told once."""
    told: set[str] = set()
    found = []
    for rank in ranks:
        disks = list(dict.fromkeys(device for _, device, _ in rank["libraries"]))
        shared = {
            "size": rank["size"],
            "library_version": rank["library_version"],
            "libraries": [[p, disks.index(d), inode] for p, d, inode in rank["libraries"]],
            **{name: rank[name] for name in ("program", "contents") if name in rank},
        }
        digest = sha256(json.dumps([shared, rank["host"]]).encode()).hexdigest()[:16]
        names = ("rank", "pid", "start", "task", "cores", "gpus", "devices")
        own = {name: rank[name] for name in names if name in rank}
        line = {**own, "disks": disks, "map": digest}
        if digest not in told:
            line |= {**shared, "host": rank["host"], "boot": rank["boot"]}
            line["numa"] = rank["numa"]
        told.add(digest)
        found.append(line)
    return found


def encoded(found: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(b"\n" + json.dumps(line).encode() + b"\n" for line in found)


def written(folder: Path, *ranks: Mapping[str, Any], node: str = NODE) -> Path:
    """The file of a node on which these ranks ran."""
    path = folder / f"{node}.ranks"
    path.write_bytes(encoded(lines(ranks)))
    return path


def mapped(what: str, library: Path) -> list[list[Any]]:
    seen = library.stat()
    right = [str(library), seen.st_dev, seen.st_ino]
    other = ["/other/libmpi.so.40", seen.st_dev, seen.st_ino + 1]
    return {
        "right": [right],
        "wrong": [other],
        "twice": [right, other],
        "bindings": [right, ["/x/libmpi_mpifh.so.40", 1, 1], ["/lib/libc.so.6", 1, 2]],
        "deleted": [[f"{library} (deleted)", seen.st_dev, seen.st_ino]],
        "none": [],
    }[what]


def a_document(tmp_path: Path, **changes: Any) -> start.Document:
    """Of a job whose world is right when one rank of `libmpi.so.40` has told."""
    library = tmp_path / "libmpi.so.40"
    library.touch()
    home = tmp_path / "records"
    home.mkdir(exist_ok=True)
    seen = library.stat()
    return {
        "key": "k",
        "argv": ["/bin/sh", "-c", "exit 0", "PID"],
        "parent": 3,
        "home": str(home),
        "drop": [],
        "set": {},
        "ranks": 1,
        "nodes": 1,
        "libmpi": [str(library), seen.st_dev, seen.st_ino],
        "contents": [],
        "far": changes.get("nodes", 1) > 1,
        "libmpi_name": LIBMPI.pattern,
        "mark": "",
        "networks": {},
        "network_name": NETWORK_LIBRARY.pattern,
        "proof": True,
        "placed": False,
        "files": [],
        "stamps": [[str(library), *file_fingerprint(str(library))]],
        "stdin": ["/n/stdin", "none", "1", "near"],
        "leases": [],
        "executed": [],
        "copies": [],
        "listed": [[str(home), "x", ".conf", []]],
        **changes,
    }
