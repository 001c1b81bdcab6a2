"""HTML as values: what is not `Html` already is escaped, so no name can become markup."""

from __future__ import annotations

from html import escape

from mpigraft.env import redact

VOID = frozenset(("br", "col", "meta", "link"))


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def el(name: str, /, *children: object, **attributes: object) -> Html:
    """One element. Children that are not Html are escaped; None and False are left out.

    An attribute's trailing underscore is dropped (`class_`), others become hyphens
    (`aria_label`); True gives the bare attribute, None and False leave it out.
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        words.append(word if value is True else f'{word}="{escape(str(value))}"')
    start = f"<{' '.join(words)}>"
    return Html(start) if name in VOID else Html(f"{start}{join(*children)}</{name}>")


def join(*children: object) -> Html:
    """Children one after another."""
    return Html(
        "".join(
            child if isinstance(child, Html) else escape(str(child), quote=False)
            for child in children
            if child is not None and child is not False
        )
    )


def foreign(text: object) -> Html:
    """Text of another program or machine: secrets struck out, then escaped."""
    return join(redact(str(text)))


def hidden(text: str) -> Html:
    """Words for a screen reader, where the eye has a sign or a place."""
    return el("span", text, class_="vh")


def table(
    caption: object, heads: tuple[object, ...], rows: list[Html], *, class_: str = ""
) -> Html:
    """A table with a caption and column headers, in a box that scrolls when it is too wide."""
    header = el("tr", *(el("th", head, scope="col") for head in heads))
    return scrolling(
        el(
            "table",
            el("caption", caption),
            el("thead", header),
            el("tbody", *rows),
            class_=class_ or None,
        )
    )


def scrolling(content: Html) -> Html:
    return el("div", content, class_="scroll")
