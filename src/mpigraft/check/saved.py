"""The machine that `mpigraft discover --json` described, read back on another one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mpigraft.errors import UsageError
from mpigraft.jsonout import SCHEMA, revive
from mpigraft.model import Machine

MAX_BYTES = 1 << 28
PAIRS = ("details", "wrappers", "components")  # objects in the document, pairs in the model


def machine(path: Path) -> Machine:
    """Raises UsageError, which names the file and what is wrong with it."""
    try:
        with path.open("rb") as file:
            document = json.loads(file.read(MAX_BYTES))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UsageError(
            f"{path}: no description of a machine of schema {SCHEMA}",
            mend="mpigraft discover --abi --json > machine.json",
        )
    try:
        for rows in (document["fabrics"], document["gpus"], document["mpis"]):
            for row in rows:
                row.update({key: _pairs(row[key]) for key in PAIRS if key in row})
        found: Machine = revive(Machine, document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{path}: not what `mpigraft discover --abi --json` writes: {error}"
        ) from error
    return found


def _pairs(found: Any) -> list[tuple[str, Any]]:
    return list(found.items())
