"""An HTML report as its reader meets it: elements, texts, words."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from mpigraft.report.contents import ReportData
from mpigraft.report.html import page

VOID = {"meta", "br", "link", "img", "input", "hr", "col"}


class Page(HTMLParser):
    """Elements with their attributes and text; fails on a tag that is not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def words(self) -> str:
        """All that is read, no-break spaces as plain ones."""
        read = (t for tag, t in self.texts.items() if tag not in ("script", "style"))
        return " ".join(" ".join(t) for t in read).replace("\xa0", " ")


def body_of(data: ReportData) -> str:
    """A rendered page less its script, which has markup of its own in its strings."""
    return re.sub(r"<script>.*?</script>", "", page.render_html(data), flags=re.DOTALL)
