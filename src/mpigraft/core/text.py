"""Texts that every room writes: made printable, cut short, folded into lines of a terminal."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

WIDTH = 80  # of a terminal, where nobody says another
NO_BREAK = "\xa0"  # a blank at which no line ends
COMMAND = re.compile("`[^`]+`")
WIDE = re.compile("[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60]")
BLANK, FILL = "\x01", "\x02"  # in a text while it is folded: in a command, behind a wide letter
LEAST = 40  # columns: below, every word would have a line of its own


def printable(text: str, keep: str = "") -> str:
    """Escape the characters that a terminal could take for commands, except those in `keep`: a
    name must not move the cursor, and a line break must not forge a row."""
    if text.isprintable():  # mostly: then no character needs a test
        return text
    return "".join(c if c in keep or c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def printable_document(value: Any, lines: Collection[str] = ()) -> Any:
    """Make every text of a JSON document printable; those below the keys `lines` keep their line
    breaks."""
    match value:
        case str():
            return printable(value)
        case list():
            return [printable_document(item, lines) for item in value]
        case dict():
            return {
                key: printable(one, "\t\n")
                if key in lines and isinstance(one, str)
                else printable_document(one, lines)
                for key, one in value.items()
            }
    return value


CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def terminal_safe(text: str) -> str:
    """Escape what a terminal obeys in a text of several lines: every control character but line
    breaks and tabs, and those that reverse the order of letters. JSON has none of them."""
    return CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def join_some(texts: Sequence[str], most: int, separator: str = "; ") -> str:
    """Join the first `most` texts and count the rest: `1, 2 and 3 more`, `a; b; and 3 more`."""
    more = len(texts) - most
    rest = f"{'; ' if separator == '; ' else ' '}and {more} more" if more > 0 else ""
    return separator.join(texts[:most]) + rest


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Ask for the known words that a misspelt one is nearest to, before advice that follows: `did
    you mean bw, bibw or lat? `. Empty where none is near."""
    import difflib  # not for every command

    by_case = {one.lower(): one for one in known}
    near = [by_case[one] for one in difflib.get_close_matches(word.lower(), list(by_case))]
    words = " or ".join(", ".join(part) for part in (near[:-1], near[-1:]) if part)
    return f"did you mean {printable(words)}? " if words else ""


def columns(most: int = WIDTH) -> int:
    """Give the columns to write for: COLUMNS, else those of the terminal, else 80; `most` at
    most."""
    import shutil  # not for every command

    return max(LEAST, min(most, shutil.get_terminal_size((WIDTH, WIDTH)).columns))


def fold(
    text: str, first: str = "", rest: int = 2, width: int | None = None, *, whole: bool = True
) -> list[str]:
    """Fold foreign text into lines that begin with `first`, then with `rest` spaces; without a
    width as many `columns` as there are.

    With `whole`, words, paths among them, are never broken: what is shown can be copied. No line
    for no text.
    """
    import textwrap  # not for every command

    return textwrap.wrap(
        printable(text, "\n\t"),  # which become spaces
        width or columns(),
        initial_indent=first,
        subsequent_indent=" " * rest,
        break_long_words=not whole,
        break_on_hyphens=not whole,
    )


def fold_message(text: str) -> str:
    """Fold the lines of a message for a terminal. Commands in backquotes stay whole, to be copied;
    in a pipe nothing is folded, so that logs can be searched."""
    import shutil
    import textwrap  # not for every command

    width = max(LEAST, shutil.get_terminal_size((WIDTH, WIDTH)).columns)
    lines = []
    for line in text.split("\n"):
        begin = line[: len(line) - len(line.lstrip(" "))]
        whole = COMMAND.sub(lambda found: found[0].replace(" ", BLANK), line)
        whole = WIDE.sub(rf"\g<0>{FILL}", whole)
        folded = textwrap.wrap(
            whole, width, subsequent_indent=f"{begin}  ", drop_whitespace=True,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        lines += [one.replace(BLANK, " ").replace(FILL, "") for one in folded] or [line]
    return "\n".join(lines)


def labelled(
    label: str, text: str, width: int | None = None, column: int = 12, *, whole: bool = True
) -> list[str]:
    """Fold `text` beside a label of `column` characters, and under itself."""
    first = f"{label:{column}}"
    return fold(text, first, len(first), width, whole=whole)
