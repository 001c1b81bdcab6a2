"""Lines of a foreign report: figures that are refused with file and line where they are none."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from pathlib import Path

from mpigraft.core.errors import UsageError

LARGEST = 1e18  # of any figure: seconds, bytes or calls
ROUTINE = re.compile(r"P?MPI_(\w+)", re.IGNORECASE)


class ReportLines:
    """A report line by line."""

    def __init__(self, text: str, path: Path) -> None:
        self.path = path
        self.all = text.split("\n")

    def refused(self, number: int, reason: str) -> UsageError:
        """Return the error for a line, which is counted from 0 here."""
        return UsageError.of("profile-damaged", path=self.path, line=number + 1, reason=reason)

    def figure(self, word: str, number: int) -> float:
        """Return a time, a size or a count: `1,024.5`, `4.6e+05`. Raises UsageError."""
        try:
            value = float(word.replace(",", ""))
        except ValueError:
            value = math.nan
        if not 0 <= value <= LARGEST:
            raise self.refused(number, f"{word[:40]!r} is no figure")
        return value

    def count(self, word: str, number: int) -> int:
        """Return a whole number. Raises UsageError."""
        return round(self.figure(word, number))

    def share(self, run_s: float, word: str, percent: str, number: int) -> float:
        """MPI's part of a run's time. A report's percentage was made of times that were not
        rounded, so it decides, unless the time in `word` contradicts it. Raises UsageError."""
        part = self.figure(word, number)
        exact = run_s * self.figure(percent, number) / 100
        step = 10.0 ** float(Decimal(word.replace(",", "")).as_tuple().exponent)
        return exact if abs(exact - part) <= step else part


def routine_name(word: str) -> str:
    """`Allreduce` of MPI_Allreduce and of Fortran's MPI_ALLREDUCE; empty for what is no routine."""
    match = ROUTINE.fullmatch(word.strip())
    if not match:
        return ""
    name = match[1]
    return name.capitalize() if name.isupper() or name.islower() else name
