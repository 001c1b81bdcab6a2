"""Home folders in texts that get published."""

from __future__ import annotations

import re
from pathlib import Path

# The n of `\n` in a JSON string ends no word.
HOME = re.compile(r"(?:(?<![\w.])|(?<=-[A-Z])|(?<=\\[bfnrt]))/(?:home|Users)/\w[\w.@+-]*")


def hide_homes(text: str) -> str:
    """`text` with home folders as ~: this user's, and what is named like one, since a store may
    come from another machine. A published report names nobody's home."""
    for home in _homes():
        # /root has to begin a path, or /opt/root would lose its end; longer ones name somebody
        # wherever they are: -L/home/me, file:///home/me.
        before = "" if home.count("/") > 1 else r"(?<![\w./-])"
        text = re.sub(rf"{before}{re.escape(home)}(?![\w.-])", "~", text)
    return HOME.sub("~", text)


def _homes() -> tuple[str, ...]:
    """Return this user's home as it is called and as it is mounted, the longer one first."""
    try:
        home = Path.home()
        names = {str(home), str(home.resolve())}
    except (RuntimeError, OSError):  # no HOME, and no such user
        return ()
    return tuple(sorted((n for n in names if n != "/"), key=len, reverse=True))
