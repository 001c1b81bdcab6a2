"""Other machines of a cluster, described through a job: a login node is not a compute node."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mpigraft.core import cache
from mpigraft.core.errors import LaunchFailed, MissingError
from mpigraft.core.messages import Lines
from mpigraft.core.model import JobRequest
from mpigraft.core.write import make_folder, write_whole
from mpigraft.launch.schedulers.registry import run_on_nodes

LINE = re.compile(r"\s*(\d+): ?(.*)")  # of srun --label and flux run --label-io
OWN = ("hostname", "scheduler", "findings")  # differ between nodes that are alike
NEARLY = 0.02  # of the memory, which firmware takes a little of


def discover_partition(scheduler: str, request: JobRequest) -> list[dict[str, Any]]:
    """Return what `request.command`, a `discover --json`, prints on each node, in their order.
    Raises LaunchFailed when the job does not run or prints no such document."""
    output = run_on_nodes(scheduler, request)
    documents = parse_documents(output.stdout.decode("utf-8", "replace"))
    if len(documents) < request.nodes:
        raise LaunchFailed.of(
            "nodes-not-described",
            count=len(documents),
            nodes=request.nodes,
            output=Lines(output.text()[-300:].strip()),
        )
    return documents


def parse_documents(text: str) -> list[dict[str, Any]]:
    """Read the JSON documents in labelled lines, by label. Other lines, such as a site's greetings,
    are ignored, and so is a node whose lines are not a document."""
    parts: dict[int, list[str]] = defaultdict(list)
    for line in text.split("\n"):  # not splitlines: JSON text may hold what that takes for an end
        if match := LINE.fullmatch(line):
            parts[int(match[1])].append(match[2])
    documents = []
    for number in sorted(parts):
        begin = next((n for n, line in enumerate(parts[number]) if line == "{"), None)
        try:
            document = json.loads("\n".join(parts[number][begin:]))
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and isinstance(document.get("hostname"), str):
            documents.append(document)
    return documents


def node_differences(documents: Sequence[Mapping[str, Any]]) -> list[tuple[str, tuple[str, ...]]]:
    """Return (host, keys) of each node that is not like the first."""
    first, *others = documents
    differences = []
    for other in others:
        keys = [k for k in first if k not in OWN and not _alike(k, first[k], other.get(k))]
        if keys:
            differences.append((str(other["hostname"]), tuple(keys)))
    return differences


def _alike(key: str, first: Any, other: Any) -> bool:
    if key == "memory_mib" and isinstance(first, int) and isinstance(other, int):
        return abs(first - other) <= NEARLY * first
    if key == "fabrics":  # addresses are each node's own
        first, other = ([_without_address(r) for r in rows or ()] for rows in (first, other))
    return bool(first == other)


def _without_address(row: Any) -> Any:
    return {k: v for k, v in row.items() if k != "address"} if isinstance(row, dict) else row


def kept_document(name: str) -> Path:
    """Return where the document of a partition is kept; it need not be there."""
    file = f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name) or 'default'}.json"
    return cache.folders().data / "machines" / file


def keep_document(name: str, document: str) -> Path:
    """Write the document of a partition where later commands and people find it."""
    path = kept_document(name)
    try:
        make_folder(path.parent)
        write_whole(path, document.encode())
    except OSError as error:
        raise MissingError.of("file-unwritable", path=path, reason=error.strerror) from error
    return path
