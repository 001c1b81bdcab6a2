"""Other machines of a cluster, looked at through a job: a login node is no compute node."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpigraft import cache, schedulers
from mpigraft.errors import LaunchFailed, MissingError
from mpigraft.model import JobWish

LINE = re.compile(r"\s*(\d+): ?(.*)")  # of srun --label and flux run --label-io
OWN = ("hostname", "scheduler", "findings")  # differ between nodes that are alike
NEARLY = 0.02  # of the memory, which firmware takes a little of


def look(scheduler: str, wish: JobWish) -> list[dict[str, Any]]:
    """What `wish.command`, a `discover --json`, prints on each node, in their order. Raises
    LaunchFailed when the job does not run or what it prints is no such document."""
    said = schedulers.through(scheduler, wish)
    found = documents(said.stdout.decode("utf-8", "replace"))
    if len(found) < wish.nodes:
        raise LaunchFailed(
            f"{len(found)} of {wish.nodes} nodes said what they have: {said.text()[-300:].strip()}",
            mend="see that the nodes have this mpigraft: its folder must be shared",
        )
    return found


def documents(text: str) -> list[dict[str, Any]]:
    """The JSON documents in labelled lines, by label. Other lines, such as a site's greetings,
    are passed over, and so is a node whose lines are no document."""
    parts: dict[int, list[str]] = defaultdict(list)
    for line in text.split("\n"):  # not splitlines: JSON text may hold what that takes for an end
        if match := LINE.fullmatch(line):
            parts[int(match[1])].append(match[2])
    found = []
    for number in sorted(parts):
        begin = next((n for n, line in enumerate(parts[number]) if line == "{"), None)
        try:
            document = json.loads("\n".join(parts[number][begin:]))
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and isinstance(document.get("hostname"), str):
            found.append(document)
    return found


def differences(documents: Sequence[Mapping[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
    """(host, keys) of each node that is not like the first."""
    first, *others = documents
    told = []
    for other in others:
        keys = [k for k in first if k not in OWN and not _alike(k, first[k], other.get(k))]
        if keys:
            told.append((str(other["hostname"]), tuple(keys)))
    return told


def _alike(key: str, one: Any, other: Any) -> bool:
    if key == "memory_mib" and isinstance(one, int) and isinstance(other, int):
        return abs(one - other) <= NEARLY * one
    if key == "fabrics":  # addresses are each node's own
        one, other = ([_nameless(row) for row in rows or ()] for rows in (one, other))
    return bool(one == other)


def _nameless(row: Any) -> Any:
    return {k: v for k, v in row.items() if k != "address"} if isinstance(row, dict) else row


def keep(name: str, document: str) -> Path:
    """Write the document of a partition where later commands and people find it."""
    folder = cache.folders().data / "machines"
    path = folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name) or 'default'}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(document, encoding="utf-8")
    except OSError as error:
        raise MissingError(f"{path} cannot be written: {error.strerror}") from error
    return path
