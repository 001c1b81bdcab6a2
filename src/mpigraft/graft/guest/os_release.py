"""Read the name of a guest's operating system, and which packages it has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpigraft.binary import Root, RootError

MAX_OS_RELEASE = 1 << 16  # bytes
MAX_DPKG_STATUS = 1 << 26  # of some thousand packages, a kilobyte each


def os_name(root: Root) -> str:
    """Give PRETTY_NAME without control characters. Source: os-release(5)."""
    name = next(_values(_os_release(root), "PRETTY_NAME"), "")
    return "".join(c for c in name if c.isprintable())[:80]


def os_release(root: Root) -> str:
    """Give ID and VERSION_ID: `ubuntu 24.04`."""
    text = _os_release(root)
    return " ".join(next(_values(text, name), "") for name in ("ID", "VERSION_ID"))


def debian_packages(root: Root) -> dict[str, str]:
    """Give the version of each package that dpkg's database has as installed; none where it has no
    such database. Source: dpkg-query(1), deb822(5)."""
    text = _text(root, "/var/lib/dpkg/status", MAX_DPKG_STATUS)
    packages = {}
    for paragraph in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.split("\n") if ": " in line)
        if fields.get("Status", "").endswith(" ok installed") and "Package" in fields:
            packages[fields["Package"]] = fields.get("Version", "")
    return packages


def _os_release(root: Root) -> str:
    places = ("/etc/os-release", "/usr/lib/os-release")
    return next(filter(None, (_text(root, path, MAX_OS_RELEASE) for path in places)), "")


def _text(root: Root, path: str, most: int) -> str:
    try:
        return root.read(path, most).decode("utf-8", "replace")
    except RootError:
        return ""


def _values(text: str, name: str) -> Iterator[str]:
    for text_value in re.findall(rf"^{name}=(.*)$", text, re.MULTILINE):
        value = text_value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        yield re.sub(r"\\([\"'`$\\])", r"\1", value)
