"""The size of the report's page of 100 benchmarks x 6 configurations x 23 sizes, and the time until
its first figure is drawn in Chromium, from a cold start of its tab; then all figures, one by one.

    python -m evaluation.page_speed  (needs Chromium)
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from mpigraft.report.html.page import render_html
from tests.browser.chromium import Browser, draw_all
from tests.builders.reports import campaign_data, hundred_benchmarks

OPENINGS = 7


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(Path(folder) / "profile")
        try:
            measure(browser, Path(folder) / "page.html")
        finally:
            browser.close()


def measure(browser: Browser, path: Path) -> None:
    print(f"page of six benchmarks: {len(render_html(campaign_data()).encode()) / 2**20:.2f} MiB")
    start = time.process_time()
    page = render_html(hundred_benchmarks()).encode()
    print(f"page of 100 benchmarks: {len(page) / 2**20:.2f} MiB (bound: 3 MiB), ", end="")
    print(f"written in {time.process_time() - start:.1f} s of processor time")
    path.write_bytes(page)
    times = []
    for _ in range(OPENINGS):
        start = time.perf_counter()
        browser.open(path)
        browser.until("document.querySelector('.chart[data-drawn] svg')")
        times.append(time.perf_counter() - start)
        browser.call("Page.close")
    print(
        f"first figure, {OPENINGS} times: {min(times):.2f} to {max(times):.2f} s, "
        f"median {statistics.median(times):.2f} s (bound: 1 s)"
    )
    browser.open(path)
    start = time.perf_counter()
    count = draw_all(browser)
    spent = time.perf_counter() - start
    print(f"all {count} figures brought into view one by one: {spent:.1f} s")
    start = time.perf_counter()
    browser.call("Page.printToPDF")
    print(f"printed to PDF: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
