"""HTML as values, for pages of every kind.

Takes texts; makes elements in which foreign text is escaped and secrets are struck out. Touches
nothing.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.report.markup.elements import Html as Html
    from mpigraft.report.markup.elements import el as el
    from mpigraft.report.markup.elements import foreign as foreign
    from mpigraft.report.markup.elements import hidden as hidden
    from mpigraft.report.markup.elements import join as join
    from mpigraft.report.markup.elements import scrolling as scrolling
    from mpigraft.report.markup.elements import table as table
    from mpigraft.report.markup.elements import table_row as table_row
else:
    __getattr__ = exports(__name__)
