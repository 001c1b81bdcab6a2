"""Read the name of a guest's operating system."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpigraft.binary import Root, RootError

MAX_OS_RELEASE = 1 << 16  # bytes


def os_name(root: Root) -> str:
    """Give PRETTY_NAME without control characters. Source: os-release(5)."""
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        try:
            text = root.read(path, MAX_OS_RELEASE).decode("utf-8", "replace")
        except RootError:
            continue
        for line in _values(text, "PRETTY_NAME"):
            return "".join(c for c in line if c.isprintable())[:80]
    return ""


def _values(text: str, name: str) -> Iterator[str]:
    for text_value in re.findall(rf"^{name}=(.*)$", text, re.MULTILINE):
        value = text_value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        yield re.sub(r"\\([\"'`$\\])", r"\1", value)
