"""Readers of benchmark output, one module per suite.

A new suite is one new file with a `parse` and one line here.
"""

from __future__ import annotations

from mpigraft.suites import imb, native, osu
from mpigraft.suites.base import Parsed, Suite

SUITES: dict[str, Suite] = {
    "native": native,
    "osu": osu,
    "imb": imb,
}

__all__ = ["SUITES", "Parsed", "Suite"]
