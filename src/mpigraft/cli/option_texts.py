"""Values of options that have a form of their own: `--looks 9,14`, `--share 2/3`."""

from __future__ import annotations

import re

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Shard


def read_looks(text: str) -> list[int]:
    """`9,14,20` -> these numbers; none for an empty text. Raises UsageError."""
    words = text.split(",") if text else []
    if not all(re.fullmatch(r"\d{1,6}", word, re.ASCII) for word in words):
        raise UsageError.of("looks-invalid", text=text)
    return [int(word) for word in words]


def read_share(text: str) -> Shard:
    """`2/3` -> the second of three; all for an empty text. Raises UsageError."""

    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text or "1/1", re.ASCII)
    number, of = map(int, match.groups()) if match else (0, 0)
    if not 1 <= number <= of:
        raise UsageError.of("share-invalid", text=text)
    return Shard(number, of)
