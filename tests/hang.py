"""A guard against hangs: what takes minutes where it should take milliseconds fails a test."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

MOST_S = 60.0  # of the processor, whatever else runs: hundreds of times what is needed


@contextlib.contextmanager
def no_hang() -> Iterator[None]:
    """Fail when the block used a minute of the processor; re has no such limit of its own."""

    def end(*_: object) -> None:
        raise AssertionError(f"more than {MOST_S:g} s of the processor")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
