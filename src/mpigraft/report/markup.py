"""HTML as values: what is not `Html` already is escaped, so no name can become markup, nor a
command to the terminal on which somebody reads the file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from mpigraft.core.env import redact
from mpigraft.core.text import terminal_safe

VOID = frozenset(("br", "col", "input", "meta", "link"))


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def el(name: str, /, *children: object, **attributes: object) -> Html:
    """Return one element. Children that are not Html are escaped; None and False are left out.

    An attribute's trailing underscore is dropped (`class_`), others become hyphens
    (`aria_label`); True gives the bare attribute, None and False leave it out.
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        words.append(word if value is True else f'{word}="{escape(terminal_safe(str(value)))}"')
    start = f"<{' '.join(words)}>"
    return Html(start) if name in VOID else Html(f"{start}{join(*children)}</{name}>")


def join(*children: object) -> Html:
    """Children one after another."""
    return Html(
        "".join(
            child if isinstance(child, Html) else escape(terminal_safe(str(child)), quote=False)
            for child in children
            if child is not None and child is not False
        )
    )


def foreign(text: object) -> Html:
    """Return text of another program or machine: secrets struck out, then escaped."""
    return join(redact(str(text)))


def hidden(text: str) -> Html:
    """Return words for a screen reader, where the eye has a sign or a place."""
    return el("span", text, class_="vh")


def table_row(head: object, *cells: object) -> Html:
    """Render a row of a table, which `head` names. A cell that is an element of its own stays as
    it is."""
    return el("tr", el("th", head, scope="row"), *map(_data, cells))


def _data(cell: object) -> Html:
    is_cell = isinstance(cell, Html) and cell.startswith(("<td>", "<td "))
    return cell if is_cell else el("td", cell)  # type: ignore[return-value]


def table(
    caption: object, heads: Sequence[object], rows: Iterable[Html], **attributes: object
) -> Html:
    """Render a table with a caption and column headers, in a box that scrolls when it is too
    wide."""
    header = el("tr", *(el("th", head, scope="col") for head in heads))
    parts = (el("caption", caption), el("thead", header), el("tbody", *rows))
    return scrolling(el("table", *parts, **attributes))


def scrolling(content: Html) -> Html:
    """Render a box that scrolls when its content is too wide; the page's script lets keys reach
    it."""
    return el("div", content, class_="scroll")
