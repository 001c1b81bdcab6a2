"""Values as canonical JSON: one way to write a dataclass, a digest or a document."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import types
import typing
from collections.abc import Callable
from enum import Enum
from pathlib import PurePath
from typing import Any

Row = typing.TypeVar("Row")
SCHEMA = 2  # added keys keep the number, changed ones do not
READABLE = (1, 2)  # 1 named the message and the fix of a finding otherwise
OBJECT = {"object": True}
SCALARS: dict[Any, type | tuple[type, ...]] = {str: str, int: int, float: (float, int), bool: bool}


class Keys:
    """Keys that an object of a document has besides those of values; None: it has no such key."""

    def __init__(self, *without: str, **hints: object) -> None:
        self.hints = dict.fromkeys(without) | hints


def pairs_field() -> Any:
    """Make a field of pairs, empty by default, that documents show as an object."""
    return dataclasses.field(default=(), metadata=OBJECT)


def plain(value: Any, *, shown: bool = False) -> Any:
    """Return a value of the model as what JSON knows: dict, list, str, number, bool, None.

    Sets come out sorted: their own order changes from process to process. `shown` in a document,
    the pairs of a `pairs_field` are an object.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        row = {f.name: plain(getattr(value, f.name), shown=shown) for f in fields}
        return row | {f.name: dict(row[f.name]) for f in fields if shown and f.metadata == OBJECT}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, dict):
        return {str(plain(k)): plain(v, shown=shown) for k, v in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(v) for v in value), key=canonical)
    if isinstance(value, (list, tuple)):
        return [plain(v, shown=shown) for v in value]
    return value


def canonical(value: Any) -> str:
    """Return the same text for the same value: sorted keys, no spaces, no NaN."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256, hex, over the canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def document(**keys: Any) -> str:
    """Return a document for other tools: indented, with the schema's number first."""
    return json.dumps({"schema": SCHEMA, **plain(keys, shown=True)}, indent=2, allow_nan=False)


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Change every text, number and the like of a JSON value; keys stay."""
    if isinstance(value, dict):
        return {key: map_leaves(inner, change) for key, inner in value.items()}
    return [map_leaves(v, change) for v in value] if isinstance(value, list) else change(value)


def parse_object(text: str) -> dict[str, Any]:
    """Read a stored JSON object; nothing of one that redaction made unreadable."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def row_of(kind: type[Row], value: object, **given: Any) -> Row:
    """Make an object of a document, a TypedDict: keys that are not given are attributes of a
    value."""
    names = typing.cast(Any, kind).__annotations__
    row = {name: given[name] if name in given else getattr(value, name) for name in names}
    return typing.cast(Row, row)


def revive(kind: Any, value: Any) -> Any:
    """Rebuild the value of type `kind` from which `plain` made `value`.

    Knows what the model uses: frozen dataclasses, enums, paths, tuples, `X | None`, scalars.
    Keys that this version does not know are passed over, missing ones take their default; a field
    with `was` in its metadata is also read by that name, which older documents have.
    Raises ValueError or TypeError for what cannot be such a value.
    """
    if dataclasses.is_dataclass(kind):
        if not isinstance(value, dict):
            raise ValueError(f"{value!r} is no {kind}")
        types_of = _hints(typing.cast(type, kind))
        keys = ((f.name, f.metadata.get("was", "")) for f in dataclasses.fields(kind))
        known = {name: name if name in value else was for name, was in keys}
        make = typing.cast(Any, kind)
        return make(
            **{n: revive(types_of[n], value[key]) for n, key in known.items() if key in value}
        )
    parts = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        value = list(value.items()) if isinstance(value, dict) else value  # pairs, shown
        if not isinstance(value, list | tuple):  # a text would be taken for its characters
            raise ValueError(f"{value!r} is no list")
        if len(parts) == 2 and parts[1] is Ellipsis:
            return tuple(revive(parts[0], v) for v in value)
        return tuple(revive(p, v) for p, v in zip(parts, value, strict=True))
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        inner = next(p for p in parts if p is not type(None))
        return None if value is None else revive(inner, value)
    if isinstance(kind, type) and issubclass(kind, (Enum, PurePath)):
        return kind(value)
    if kind in SCALARS and not isinstance(value, SCALARS[kind]):
        raise ValueError(f"{value!r} is no {kind.__name__}")
    return value


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
