"""Lists as `mpigraft-vars` prints them, hand-made."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mpigraft.core.model import EnvRow
from mpigraft.core.process.command import Completed

TRUTH = [[0, "false"], [1, "true"]]


def control(name: str, value: Any, **changes: Any) -> dict[str, Any]:
    kind = "text" if isinstance(value, str) else "int"
    line = {
        "mpigraft": "control", "name": name, "text": f"what {name} does", "type": kind,
        "verbosity": "user", "binding": "none", "scope": "all", "value": value,
    }  # fmt: skip
    return {k: v for k, v in {**line, **changes}.items() if v is not None}


def performance(name: str, value: Any = None) -> dict[str, Any]:
    line = {
        "mpigraft": "performance", "name": name, "text": "", "type": "int", "verbosity": "user",
        "binding": "none", "class": "counter", "readonly": True, "continuous": True,
    }  # fmt: skip
    return line if value is None else {**line, "value": value}


def listed(
    *variables: dict[str, Any],
    version: str = "An MPI 1.0",
    categories: Mapping[str, str] | None = None,
) -> bytes:
    """The list of these; `categories` has the category of some control variables by name."""
    numbered = [{**variable, "index": n} for n, variable in enumerate(variables)]
    within: dict[str, list[int]] = {}
    for line in numbered:
        if category := (categories or {}).get(line["name"]):
            within.setdefault(category, []).append(line["index"])
    lines = [
        {"mpigraft": "library", "initialised": False, "version": version},
        *numbered,
        *(
            {
                "mpigraft": "category",
                "name": name,
                "text": "",
                "control": indices,
                "performance": [],
            }
            for name, indices in within.items()
        ),
        {"mpigraft": "end"},
    ]
    # As the program does: that key first, and no blanks.
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def ended(stdout: bytes, code: int = 0, stderr: bytes = b"") -> Completed:
    return Completed(("mpigraft-vars",), code, stdout, stderr, 0.1)


Tell = Callable[[dict[str, str], bool], bytes]


def asker(tell: Tell) -> Callable[[Sequence[EnvRow], bool], Completed]:
    """An MPI that answers by its environment, and by whether MPI_Init was called."""

    def ask(rows: Sequence[EnvRow], initialise: bool) -> Completed:
        return ended(tell({row.name: row.value or "" for row in rows}, initialise))

    return ask
