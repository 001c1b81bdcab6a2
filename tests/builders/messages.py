"""What errors and findings say, by their codes and values and not by their sentences."""

from __future__ import annotations

import re
import string
from collections.abc import Collection
from typing import Protocol

from mpigraft.core.messages import message_of


class Coded(Protocol):
    """A finding or an error."""

    @property
    def code(self) -> str: ...


def matches(found: Coded | str, code: str, **values: object) -> bool:
    """Whether a finding or an error has this code, or a text for people its message; with
    `values` in the fields of these names, of its reason and advice too. Several of one field are a
    tuple."""
    row = message_of(code)
    parts = [row.message, row.why, row.fix]
    known = {name for part in parts for _, name, _, _ in string.Formatter().parse(part) if name}
    assert values.keys() <= known, f"{code} has {', '.join(sorted(known))}"
    texts = [found] * 3 if isinstance(found, str) else [getattr(found, n, "") for n in PARTS]
    if not isinstance(found, str) and found.code != code:
        return False
    if not values:
        fixed = [part for part in parts if len(re.sub(r"{.*?}", "", part)) > LEAST]
        return not isinstance(found, str) or any(_fits(part, found) for part in fixed)
    wanted = [(n, v) for n, vs in values.items() for v in (vs if isinstance(vs, tuple) else (vs,))]
    return all(
        any(_fits(part, text, name, str(value)) for part, text in zip(parts, texts, strict=True))
        for name, value in wanted
    )


PARTS = ("message", "why", "fix")
BETWEEN = 80  # characters
MOST = 20_000  # characters: the search takes their number to the power of the fields
LEAST = 8  # of a message, beside its fields: less is in any text


def _fits(template: str, text: str, name: str = "", value: str = "") -> bool:
    """Whether `text` has the template, with a value in a field; how it is folded is nothing."""
    fields = list(string.Formatter().parse(" ".join(template.split())))
    if not template or (name and name not in _names(fields)):
        return False
    assert len(text) < MOST, "give the lines that are meant, and not all of a page"
    pattern = ""
    for literal, field, _, _ in fields:
        pattern += re.escape(literal)
        if field is not None:
            pattern += f".*?{_word(value)}.*?" if field == name else ".*?"
    return re.search(pattern, " ".join(text.split())) is not None


def _names(fields: Collection[tuple[str, str | None, str | None, str | None]]) -> set[str | None]:
    return {name for _, name, _, _ in fields}


def _word(value: str) -> str:
    """A pattern of a value that is no part of a longer word or number."""
    value = " ".join(value.split())
    before = r"(?<!\w)" if value[:1].isalnum() else ""
    after = r"(?!\w)" if value[-1:].isalnum() else ""
    return f"{before}{re.escape(value)}{after}"


def shows(text: str | Collection[str], *values: object) -> bool:
    """Whether a text, or a line of several, has these values in this order, close to each other,
    whatever words are between them and however it is folded."""
    pattern = rf".{{0,{BETWEEN}}}?".join(_word(str(value)) for value in values)
    lines = [text] if isinstance(text, str) else text
    return any(re.search(pattern, " ".join(line.split())) for line in lines)
