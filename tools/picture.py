"""Draw what a terminal shows of the campaign in tests/data/pictures as an SVG, for the README.

    make pictures

The picture is the real output of `mpigraft compare`, coloured as on a terminal. It has no
font of its own and fetches none. A test holds it against what compare would print now.
"""

from __future__ import annotations

import io
import lzma
import re
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from mpigraft.report import terminal
from mpigraft.report.contents import load_report
from mpigraft.store import Store

ROOT = Path(__file__).parents[1]
STORED = ROOT / "tests/data/pictures/quick.sqlite.xz"
PICTURE = ROOT / "docs/pictures/quick.svg"
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


def picture() -> str:
    """The SVG. Rich's own font comes from a server; a picture in a README may fetch nothing."""
    console = Console(
        file=io.StringIO(), record=True, width=WIDTH, force_terminal=True,
        color_system="truecolor", markup=False, highlight=False, emoji=False,
    )  # fmt: skip
    console.print("$ mpigraft compare")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "quick.sqlite").write_bytes(lzma.decompress(STORED.read_bytes()))
        terminal.print_answer(load_report(Store(Path(folder))), console)
    console.print()  # else the frame cuts the last line
    svg = console.export_svg(title="mpigraft", theme=THEME, unique_id="mpigraft")
    return FACES.sub("", svg).replace("Fira Code, monospace", FONT)


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
