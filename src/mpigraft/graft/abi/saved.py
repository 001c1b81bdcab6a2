"""Read the description of a machine that `mpigraft discover --json` wrote."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import fields
from pathlib import Path
from typing import Any

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Machine, MpiAbi, MpiInstall
from mpigraft.core.serialize import READABLE, SCHEMA, revive

MAX_BYTES = 1 << 28
# Keys that older versions did not write.
LATER = ("reason", "transports", "modules", "interfaces", "provenance")
WRITER = "mpigraft discover --abi --json"

_piped: dict[Path, bytes] = {}


def read_machine(path: Path) -> Machine:
    """Read a machine. Raises UsageError, which names the file and the problem."""
    document = _document(path)
    for row in document["mpis"]:
        if absent := [f.name for f in fields(MpiInstall) if f.name not in (*row, *LATER)]:
            # A default would describe an MPI without a launcher, which is another machine.
            raise UsageError.of(
                "machine-mpi-incomplete", path=path, id=row.get("id"), absent=", ".join(absent)
            )
    try:
        machine: Machine = revive(Machine, document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError.of("machine-not-described", path=path, error=error) from error
    return machine


FIX = f"write it again: {WRITER} > machine.json"


def _document(path: Path) -> dict[str, Any]:
    """Give the document of a machine, whose `mpis` is a list of objects."""
    try:
        document = json.loads(machine_content(path))
    except (ValueError, RecursionError) as error:
        raise UsageError.of("not-json", path=path, error=error) from error
    if not isinstance(document, dict) or document.get("schema") not in READABLE:
        raise UsageError.of("machine-other-schema", path=path, schema=SCHEMA)
    mpis = document.get("mpis")
    if not isinstance(mpis, list) or not all(isinstance(row, dict) for row in mpis):
        raise UsageError.of("machine-not-described", path=path, error="no list `mpis`")
    return document


def machine_content(path: Path) -> bytes:
    """Read the bytes of a description. A pipe, such as `<(ssh node mpigraft discover ...)`, gives
    them once, so they are kept. Raises UsageError for a file that cannot be read."""
    if path in _piped:
        return _piped[path]
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES)
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                _piped[path] = content
    except OSError as error:
        raise UsageError.of("file-unusable", path=path, reason=error.strerror) from error
    return content


def abi_from_machine(path: Path, spec: str) -> MpiAbi:
    """Read the facts of one MPI from a file that `discover --abi --json` wrote on some machine.

    `spec` is an id, its beginning with `@`, or a family; of several that match, the first.
    Raises UsageError, which names the file and the problem.
    """
    rows = _document(path)["mpis"]
    ids = [str(row.get("id", "")) for row in rows]
    hits = [row for row, id_ in zip(rows, ids, strict=True) if id_ == spec] or [
        row
        for row, id_ in zip(rows, ids, strict=True)
        if row.get("family") == spec or ("@" in spec and id_.startswith(spec))
    ]
    if not hits:
        raise UsageError.of("machine-no-mpi", path=path, spec=spec, known=", ".join(ids) or "none")
    row = hits[0]
    if row.get("abi_facts") is None:
        why = row.get("reason") or "it was written without --abi"
        raise UsageError.of("machine-no-libraries", path=path, id=row.get("id"), why=why)
    try:
        facts: MpiAbi = revive(MpiAbi, row["abi_facts"])
        _check_facts(facts)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError.of(
            "machine-facts-invalid", path=path, id=row.get("id"), error=error
        ) from error
    return facts


def _check_facts(facts: MpiAbi) -> None:
    """Raise ValueError for values that `revive` accepts and later stages cannot use."""
    if not facts.objects:
        raise ValueError("no objects")
    for library in (*facts.objects, *facts.programs):
        if not all(
            isinstance(text, str) for text in (library.soname, library.path, library.digest)
        ):
            raise ValueError(f"object {library.soname!r}: soname, path and digest must be text")
        if "/" in library.soname or not library.path.startswith("/") or _escapes(library.place):
            raise ValueError(f"object {library.soname!r}: {library.path!r}, {library.place!r}")
    for file in facts.data:
        if not file.path.startswith("/") or _escapes(file.place):
            raise ValueError(f"data file {file.path!r}, {file.place!r}")


def _escapes(place: str) -> bool:
    return place.startswith("/") or ".." in place.split("/")
