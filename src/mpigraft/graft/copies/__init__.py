"""Copies of libraries with other names and search paths.

Takes a `Copy`; makes its file. Starts patchelf; guests and host libraries are never written to.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.copies.making import FULL as FULL
    from mpigraft.graft.copies.making import edit_words as edit_words
    from mpigraft.graft.copies.making import make_copy as make_copy
    from mpigraft.graft.copies.making import symbol_lines as symbol_lines
else:
    __getattr__ = exports(__name__)
