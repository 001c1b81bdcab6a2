"""Draw what a terminal shows of a stored campaign as an SVG, for the README.

    python tools/picture.py STORE CAMPAIGN docs/pictures/quick.svg

The picture is the real output of `mpigraft compare`, coloured as on a terminal. It has no
font of its own and fetches none.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from mpigraft.report import terminal
from mpigraft.report.contents import load_report
from mpigraft.store import Store

WIDTH = 80
# Ground, ink and the sixteen colours of a dark terminal; each reads well on the ground.
THEME = TerminalTheme(
    (20, 23, 27),
    (226, 230, 235),
    [
        (60, 66, 74), (255, 138, 128), (94, 203, 142), (224, 176, 76),
        (99, 179, 242), (226, 140, 205), (86, 204, 214), (226, 230, 235),
    ],
    [
        (122, 130, 141), (255, 138, 128), (94, 203, 142), (224, 176, 76),
        (99, 179, 242), (226, 140, 205), (86, 204, 214), (255, 255, 255),
    ],
)  # fmt: skip
FACES = re.compile(r"@font-face\s*\{.*?\}", re.DOTALL)
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def picture(store: Store, campaign: str) -> str:
    """The SVG. Rich's own font comes from a server; a picture in a README may fetch nothing."""
    console = Console(
        file=io.StringIO(), record=True, width=WIDTH, force_terminal=True,
        color_system="truecolor", markup=False, highlight=False, emoji=False,
    )  # fmt: skip
    console.print("$ mpigraft compare")
    terminal.print_answer(load_report(store, campaign), console)
    console.print()  # else the frame cuts the last line
    svg = console.export_svg(title="mpigraft", theme=THEME, unique_id="mpigraft")
    return FACES.sub("", svg).replace("Fira Code, monospace", FONT)


def main(words: list[str]) -> int:
    if len(words) != 3:
        sys.stderr.write("usage: picture.py STORE CAMPAIGN OUT.svg\n")
        return 2
    store, campaign, out = words
    Path(out).write_text(picture(Store(Path(store)), campaign), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
