"""Values as canonical JSON: one way to write a dataclass, a digest or a document."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from enum import Enum
from pathlib import PurePath
from typing import Any

SCHEMA = 1  # added keys keep the number, changed ones do not


def plain(value: Any) -> Any:
    """A value of the model as what JSON knows: dict, list, str, number, bool, None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in value]
    return value


def canonical(value: Any) -> str:
    """The same text for the same value: sorted keys, no spaces, no NaN."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256, hex, over the canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def document(**keys: Any) -> str:
    """A document for other tools: indented, with the schema's number first."""
    return json.dumps({"schema": SCHEMA, **plain(keys)}, indent=2, allow_nan=False)
