"""Commands of mpigraft on a store, started in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpigraft.cli import main


def run_on_store(store: Path, *words: object) -> int:
    """Run `mpigraft --store STORE WORDS...`; return its exit code."""
    with pytest.raises(SystemExit) as ended:
        main.main(["--store", str(store), *map(str, words)])
    return int(ended.value.code or 0)


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]
