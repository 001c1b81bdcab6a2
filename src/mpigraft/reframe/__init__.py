"""A ReFrame test class that runs a campaign: `from mpigraft.reframe import MpigraftCheck`.

Takes a ReFrame session; makes a test whose performance variables are medians and verdicts. Touches
what `mpigraft bench` touches. ReFrame is imported when the class is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

CLASS = "MpigraftCheck"


def __getattr__(name: str) -> Any:
    """Return the class. Raises AttributeError for any other name, MissingError without ReFrame."""
    if name != CLASS:
        raise AttributeError(f"mpigraft.reframe exports no {name!r}")
    return getattr(import_module("mpigraft.reframe.checks"), name)
