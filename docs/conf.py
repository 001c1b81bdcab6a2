"""Sphinx's settings of `make docs`: the Markdown as it is, as one tree of pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

project = "mpigraft"
extensions = ["myst_parser"]
root_doc = "docs/README"
include_patterns = ["*.md", "docs/*.md", "docs/**/*.md", "evaluation/*.md", "tests/data/*.md"]
html_theme = "alabaster"
html_title = project
html_copy_source = False
html_theme_options = {"page_width": "72em", "sidebar_width": "16em"}
html_sidebars = {"**": ["about.html", "searchbox.html", "navigation.html"]}
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "misc.highlighting_failure"]  # parts of files are no TOML
LINK = re.compile(r"\[([^\]]+)\]\(([^)#:]+)\)")
PARTS = {"Tutorials": "tutorials", "How-to pages": "howto", "Reference": "reference"}
PARTS["Explanations"] = "explanation"
MORE = ["../README", "../CONTRIBUTING", "../CHANGELOG", "../evaluation/README"]
MORE += ["../tests/data/README", "../THIRD-PARTY-NOTICES"]


def prepare(app: Any, name: str, source: list[str]) -> None:
    """Take links to folders away, which are no pages, and give the first page the tree of all."""
    folder = (Path(app.srcdir) / name).parent
    source[0] = LINK.sub(lambda m: m[1] if (folder / m[2]).is_dir() else m[0], source[0])
    if name == root_doc:
        trees = [_tree(title, [f"{part}/*"]) for title, part in PARTS.items()]
        source[0] = "\n\n".join([source[0], *trees, _tree("More", MORE)])


def _tree(title: str, pages: list[str]) -> str:
    return "\n".join(
        ["```{toctree}", ":hidden:", ":glob:", f":caption: {title}", "", *pages, "```"]
    )


def setup(app: Any) -> None:
    """Register the above with Sphinx."""
    app.connect("source-read", prepare)
