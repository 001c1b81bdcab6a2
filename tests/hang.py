"""A guard against hangs: what takes minutes where it should take milliseconds fails a test."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

MOST_S = 60.0  # of the processor, whatever else runs: hundreds of times what is needed


def no_hang() -> AbstractContextManager[None]:
    """Fail when the block used a minute of the processor; re has no such limit of its own."""
    return limit_cpu(MOST_S)


@contextmanager
def limit_cpu(most_s: float) -> Iterator[None]:
    """Raise AssertionError in the block once it used so many seconds of the processor."""

    def end(*_: object) -> None:
        raise AssertionError(f"more than {most_s:g} s of the processor")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, most_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
