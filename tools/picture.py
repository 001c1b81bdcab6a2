"""Draw the pictures of the README and of the documentation from what is stored for them.

    make pictures

`quick.svg` is the real output of `mpigraft compare`, coloured as on a terminal. It has no font of
its own and fetches none. The others are parts of pages that `mpigraft report --public` writes, as
Chromium shows them. Such a picture has in it the digest of all that it shows, so that a test can
say without a browser that it is stale.
"""

from __future__ import annotations

import base64
import hashlib
import io
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PIL import Image, PngImagePlugin
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from mpigraft.report import load_report, render_html, terminal
from mpigraft.report.contents import ReportData
from mpigraft.store import Store
from tests.browser.chromium import Browser

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests/data"
PICTURES = ROOT / "docs/pictures"
PICTURE = PICTURES / "quick.svg"
COLUMNS = 80
WIDTH, COLOURS = 1000, 64  # of a photograph
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
PARTS = re.compile(r"<(style|script|header|section)\b([^>]*)>.*?</\1>", re.DOTALL)
DIGEST = "Digest"  # of the text chunk of a PNG
# What a reader of a picture cannot use, and what the other parts of the page show.
LEFT_OUT = (
    "nav, footer, details, button, #controls, .benchmark .scroll, .benchmark p:has(code),"
    " .benchmark figure ~ figure"
)


def stored(name: str) -> ReportData:
    """Read a campaign that is kept for a picture."""
    with tempfile.TemporaryDirectory() as folder:
        kept = (DATA / f"pictures/{name}.sqlite.xz").read_bytes()
        (Path(folder) / f"{name}.sqlite").write_bytes(lzma.decompress(kept))
        return load_report(Store(Path(folder)))


def archer2() -> ReportData:
    """Import the published files as their user does."""
    with tempfile.TemporaryDirectory() as folder:
        words = (sys.executable, "-m", "mpigraft.cli.main", "--store", folder, "import")
        for name in ("OFI", "UCX"):
            files = map(str, sorted((DATA / "archer2" / name).glob("*.dat")))
            named = ("--configuration", f"cray-mpich@8.1.4/{name.lower()}", "--machine", "ARCHER2")
            home = {**os.environ, "MPIGRAFT_HOME": f"{folder}/home"}
            subprocess.run((*words, *files, *named), check=True, capture_output=True, env=home)
        return load_report(Store(Path(folder)))


def picture() -> str:
    """The SVG. Rich's own font comes from a server; a picture in a README may fetch nothing."""
    console = Console(
        file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True,
        color_system="truecolor", markup=False, highlight=False, emoji=False,
    )  # fmt: skip
    console.print("$ mpigraft compare")
    terminal.print_answer(stored("quick"), console)
    console.print()  # else the frame cuts the last line
    svg = console.export_svg(title="mpigraft", theme=THEME, unique_id="mpigraft")
    return FACES.sub("", svg).replace("Fira Code, monospace", FONT)


# ------------------------------------------------------------------ parts of pages


@dataclass(frozen=True, slots=True)
class Photograph:
    """Parts of a page: its header, and sections by their ids."""

    name: str
    data: Callable[[], ReportData]
    parts: tuple[str, ...]

    @property
    def file(self) -> Path:
        """Where it is kept."""
        return PICTURES / f"{self.name}.png"

    def page(self) -> str:
        """The page that it shows."""
        return render_html(self.data(), public=True)

    def digest(self, page: str) -> str:
        """Of these parts and of what draws them; the rest of a page may change."""
        kept = hashlib.sha256()
        for found in PARTS.finditer(page):
            named = re.search(r'\bid="([^"]+)"', found[2])
            drawn = found[1] in {"style", "script"}
            if drawn or (named[1] if named else found[1]) in self.parts:
                kept.update(found[0].encode())
        return kept.hexdigest()[:32]


SHOWN = ("header", "glance", "b-native-latency-1x2-host-latency")
PHOTOGRAPHS = (
    Photograph("nodes", archer2, ("nodes",)),
    Photograph("stack", partial(stored, "stack"), SHOWN),
    Photograph("container", partial(stored, "container"), SHOWN),
)


def photograph(photographs: Sequence[Photograph]) -> Iterator[tuple[Photograph, bytes]]:
    """Yield each as Chromium shows it, with few colours, since it is kept in the repository."""
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(Path(folder) / "profile")
        for one in photographs:
            page = Path(folder) / f"{one.name}.html"
            page.write_text(one.page(), encoding="utf-8")
            taken = Image.open(io.BytesIO(_taken(browser, page, one.parts)))
            text = PngImagePlugin.PngInfo()
            text.add_text(DIGEST, one.digest(page.read_text(encoding="utf-8")))
            out = io.BytesIO()
            few = taken.convert("RGB").quantize(
                COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
            )
            few.save(out, "PNG", optimize=True, pnginfo=text)
            yield one, out.getvalue()
        browser.close()


def _taken(browser: Browser, page: Path, parts: Sequence[str]) -> bytes:
    browser.open(page, width=WIDTH)
    browser.ask(
        f"""(() => {{
          const parts = {list(parts)!r};
          for (const one of document.querySelectorAll("header, main > section, {LEFT_OUT}"))
            if (!parts.includes(one.id || one.localName)) one.style.display = "none";
        }})()"""
    )
    charts = "[...document.querySelectorAll('.chart')].filter((one) => one.checkVisibility())"
    for number in range(browser.ask(f"{charts}.length")):
        browser.ask(f"{charts}[{number}].scrollIntoView()")
        browser.until(f"'drawn' in {charts}[{number}].dataset")
    browser.ask("scrollTo(0, 0)")
    tall = browser.ask("document.querySelector('main').getBoundingClientRect().bottom")
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": tall, "scale": 1}
    shot = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
    return base64.b64decode(shot["data"])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    if shutil.which("chromium") is None:
        sys.exit("the other pictures need Debian's package chromium")
    for one, png in photograph(PHOTOGRAPHS):
        one.file.write_bytes(png)
