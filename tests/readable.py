"""Waiting for files to have something to read.

`select.select` knows no file numbered 1024 or more, and a run of the tests has had more open.
"""

from __future__ import annotations

import select
from typing import Any


def readable(*files: Any, wait_s: float | None = None) -> list[Any]:
    """Those of the files (numbers, or what has a `fileno`) with something to read or at their
    end, after at most `wait_s` seconds; none is without end."""
    poll = select.poll()
    by_number = {file if isinstance(file, int) else file.fileno(): file for file in files}
    for number in by_number:
        poll.register(number, select.POLLIN)
    ready = poll.poll(None if wait_s is None else wait_s * 1000)
    return [by_number[number] for number, _ in ready]
