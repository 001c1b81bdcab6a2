"""Doors of rooms: a package's names, each imported from its module when it is first used.

A room is a package. Others import its names from the package, never from its modules, and what
they do not use is not imported (PEP 562). A door lists its names once, as imports that only type
checkers run.
"""

from __future__ import annotations

import re
import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LISTED = re.compile(r"^    from (mpigraft\.\S+) import (\w+) as \2$", re.MULTILINE)


def exports(room: str) -> Callable[[str], object]:
    """Make the `__getattr__` of a room from the names that its file imports for type checkers.

    Values are looked up each time and not kept in the package, so a replaced function is replaced
    for all of its users. Raises AttributeError for a name that the room does not export.
    """
    modules: dict[str, str] = {}

    def value(name: str) -> object:
        if not modules:
            modules.update((listed, module) for module, listed in LISTED.findall(_source(room)))
        if name not in modules:
            raise AttributeError(f"{room} exports no {name!r}")
        return getattr(_module(modules[name]), name)

    return value


class _Deferred(ModuleType):
    """A module that is imported when a name of it is first used, and keeps those names."""

    def __getattr__(self, name: str) -> object:
        value = getattr(_module(self.__name__), name)
        setattr(self, name, value)
        return value


def deferred(module: str) -> ModuleType:
    """Import a slow module when it is first used: other users of the file may not need it."""
    return _Deferred(module)


def _module(name: str) -> ModuleType:
    __import__(name)  # importlib would cost the second start of a job another 2 ms
    return sys.modules[name]


def _source(room: str) -> str:
    """Return text of a room's file, from a folder or from within an archive of Python."""
    spec = sys.modules[room].__spec__
    assert spec is not None
    assert spec.origin is not None
    data: bytes = getattr(spec.loader, "get_data")(spec.origin)  # noqa: B009
    return data.decode()
