"""What of an easyconfig decides the files that are built, and what only describes them."""

from __future__ import annotations

import ast
from typing import Any

from mpigraft.core.parsers import parse_python

# The types only spare EasyBuild a script of its own: configure guesses the same.
DESCRIBES = frozenset({"description", "homepage", "source_urls", "build_type", "host_type"})


def read_easyconfig(text: str) -> dict[str, Any]:
    """Read the parameters of an easyconfig that are literals; others count by their source text.
    Raises ValueError for a text that is no Python."""
    try:
        tree = parse_python(text.encode("utf-8", "surrogateescape"))
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno} is no Python") from None
    values: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                values[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                values[node.targets[0].id] = ast.unparse(node.value)
    return values


def recipe_of(text: str) -> dict[str, Any]:
    """Return the parameters of an easyconfig that decide what is built. The order of configure's
    options does not count."""
    values = {k: v for k, v in sorted(read_easyconfig(text).items()) if k not in DESCRIBES}
    if isinstance(options := values.get("configopts"), str):
        values["configopts"] = sorted(options.split())
    return values
