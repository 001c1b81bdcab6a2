"""Chromium over its debugging pipe, so that nothing is injected into the page and its own policy
stays in force."""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

from mpigraft.native.programs import GUARD, PREBUILT

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE_S = 120


class Browser:
    """One Chromium, spoken to in the DevTools protocol: JSON, each message ended by a NUL."""

    def __init__(self, profile: Path) -> None:
        # above the numbers that Chromium takes its pipe from
        ends = (*os.pipe(), *os.pipe())
        to_read, self.to, self.answers, to_write = (
            fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends
        )
        for end in ends:
            os.close(end)
        script = f'exec "$0" "$@" 3<&{to_read} 4>&{to_write} {to_read}<&- {to_write}>&-'
        program = shutil.which("chromium") or "chromium"
        # Its crash handlers leave their parent and outlive it for a while: the guard ends them.
        guard = PREBUILT / platform.machine() / GUARD
        shell = ["bash", "-c", script, program, *FLAGS, f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            [guard, "--", *shell],
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(profile)},
        )
        os.close(to_read)
        os.close(to_write)
        self.numbers = itertools.count(1)
        self.events: list[dict[str, Any]] = []
        self.rest = b""

    def close(self) -> None:
        self.call("Browser.close", session="")
        self.process.wait(PATIENCE_S)
        os.close(self.to)
        os.close(self.answers)

    def call(self, method: str, *, session: str | None = None, **params: Any) -> dict[str, Any]:
        """The result of one command; events that come meanwhile are kept."""
        number = next(self.numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if chosen := self.session if session is None else session:
            message["sessionId"] = chosen
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    session = ""

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            block = os.read(self.answers, 1 << 20)
            assert block, "the browser ended"
            self.rest += block
        first, _, self.rest = self.rest.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message

    def open(
        self, path: Path, *, width: int = 1200, dark: bool = False, scripts: bool = True
    ) -> None:
        """A new page on a file; returns when it has loaded, offline."""
        target = self.call("Target.createTarget", session="", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", session="", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        self.events.clear()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Network.emulateNetworkConditions",
            offline=True, latency=0, downloadThroughput=0, uploadThroughput=0,
        )  # fmt: skip
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.scheme(dark=dark)
        self.size(width)
        self.call("Page.navigate", url=path.as_uri())
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._next())

    def size(self, width: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=900, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def scheme(self, *, dark: bool) -> None:
        value = "dark" if dark else "light"
        features = [{"name": "prefers-color-scheme", "value": value}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        """Return when a condition holds; the browser looks again at each of its turns."""
        self.ask(
            f"""new Promise((done) => {{
                  const look = () => ({condition} ? done() : setTimeout(look, 10));
                  look();
                }})"""
        )

    def key(self, name: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def complaints(self) -> list[str]:
        """Errors of scripts, of the console, and of the page's policy."""
        bad = {"Runtime.exceptionThrown", "Log.entryAdded"}
        self.ask("1")  # what was said before has come by now
        return [
            json.dumps(e["params"])
            for e in self.events
            if e.get("method") in bad
            or (e.get("method") == "Runtime.consoleAPICalled" and e["params"]["type"] == "error")
        ]

    def requests(self) -> list[str]:
        """Addresses that the page asked for, less the file itself and what is in it."""
        asked = [
            e["params"]["request"]["url"]
            for e in self.events
            if e.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]

    def picture(self, path: Path) -> None:
        """Screenshot of the whole page."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))


def draw_all(browser: Browser) -> int:
    """Bring every chart into view, each of which draws itself then: those that have curves or
    marks of some size in them."""
    count: int = browser.ask(
        """(async () => {
             for (const box of document.querySelectorAll(".chart")) {
               box.scrollIntoView();
               while (!("drawn" in box.dataset)) await new Promise((done) => setTimeout(done, 5));
             }
             window.scrollTo(0, 0);
             return [...document.querySelectorAll(".chart")].filter((chart) =>
               [...chart.querySelectorAll(".curve path, .curve circle")].some((path) => {
                 const box = path.getBoundingClientRect();
                 return box.width > 2 || box.height > 2;
               })).length;
           })()"""
    )
    return count


def overflow(browser: Browser) -> int:
    """Pixels by which the page is wider than its window."""
    wide: int = browser.ask("document.documentElement.scrollWidth - window.innerWidth")
    return wide


AXE = Path(__file__).parents[1] / "data" / "axe" / "axe.min.js"


def violations(browser: Browser, part: str = "html") -> list[str]:
    """What axe finds in a part of the page as it is: the rule, how often, the first element."""
    browser.ask(f"{AXE.read_text(encoding='utf-8')}; 0")
    found: list[str] = browser.ask(
        f"axe.run('{part}')"
        """.then((result) => result.violations.map((one) =>
             `${one.id} ${one.nodes.length} ${one.nodes[0].html.slice(0, 200)}`))"""
    )
    return found
