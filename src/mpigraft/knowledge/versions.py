"""Versions of libraries and MPIs as numbers, and ranges of them."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """Versions from `low` up to, not including, `high`, as tuples of numbers; None is open."""

    low: tuple[int, ...] | None = None
    high: tuple[int, ...] | None = None

    @classmethod
    def parse(cls, text: str) -> Range:
        """Read `>=2.2,<2.6`. Raises ValueError for anything else, and for an empty range."""
        bounds: dict[str, tuple[int, ...]] = {}
        for part in text.split(","):
            match = re.fullmatch(r"\s*(>=|<)\s*(\d+(?:\.\d+)*)\s*", part)
            if not match or match[1] in bounds:
                raise ValueError(f"{part.strip()!r} is not >=VERSION or <VERSION")
            bounds[match[1]] = version_numbers(match[2])
        span = cls(bounds.get(">="), bounds.get("<"))
        if not span.meets(span):
            raise ValueError("no version is in this range")
        return span

    def __contains__(self, version: tuple[int, ...]) -> bool:
        return (self.low is None or version >= self.low) and (
            self.high is None or version < self.high
        )

    def __str__(self) -> str:
        bounds = ((">=", self.low), ("<", self.high))
        return ",".join(f"{sign}{'.'.join(map(str, v))}" for sign, v in bounds if v is not None)

    def meets(self, other: Range) -> bool:
        """Return whether some version is in both; `low` is in its range, so `high` decides."""
        lows = [r.low for r in (self, other) if r.low is not None]
        highs = [r.high for r in (self, other) if r.high is not None]
        return not lows or not highs or max(lows) < min(highs)


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with, without zeros at the end, so that 5.0 is 5:
    2.4.0-impi is (2, 4), 6.0.0rc2 is (6,)."""
    match = re.match(r"\d+(?:\.\d+)*", text.strip().removeprefix("v"))
    numbers = [int(n) for n in match.group().split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
