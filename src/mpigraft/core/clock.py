"""Times as stores have them."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def utc_now() -> str:
    """Return this moment, as `utc_time` formats it."""
    return utc_time(time.time())


def utc_time(seconds: float) -> str:
    """`seconds` since the epoch in ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
