"""Commands of the documentation, typed one after the other in a folder that has a program of the
user's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from tests.builders.code_blocks import PAGES, ROOT, commands_for, shortened, typed
from tests.native.native_world import compile_c

pytestmark = [pytest.mark.mpi, pytest.mark.long]


IN_ORDER = ("README.md", "docs/tutorials/first-comparison.md")  # each in a folder of its own
OTHERS = [str(page.relative_to(ROOT)) for page in PAGES]
LIMIT_S = 240.0  # of one command


@pytest.mark.parametrize(
    "pages",
    [*((page,) for page in IN_ORDER), tuple(page for page in OTHERS if page not in IN_ORDER)],
    ids=[*IN_ORDER, "others"],
)
def test_documented_commands_end_well(
    mpis: Mapping[Family, Path],
    fresh_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pages: tuple[str, ...],
) -> None:
    """Of a page from the first to the last, as a reader types them, in a store of their own."""
    monkeypatch.setenv("MPIGRAFT_STORE", str(tmp_path / "results-of-the-page"))
    prefix = mpis[Family.OPENMPI]
    solver = compile_c(
        Path(__file__).with_name("phases.c"), tmp_path / "solver",
        "-isystem", prefix / "include", prefix / "lib/libmpi.so.40",
    )  # fmt: skip
    (tmp_path / "app").symlink_to(solver)
    (tmp_path / "results").symlink_to(ROOT / "tests/data/archer2/OFI")
    failed, lines = {}, commands_for(__file__, *pages)
    assert len(lines) > 5
    for line in lines:
        done = typed(shortened(line), cwd=tmp_path, timeout=LIMIT_S)
        if done.returncode or not (done.stdout or "-o" in line):
            failed[line] = done.stderr
    assert failed == {}


def test_the_pages_build_without_a_warning(cache_folder: Path) -> None:
    """Dead links and anchors are warnings."""
    environ = {**os.environ, "MPIGRAFT_CI_CACHE": str(cache_folder)}
    done = subprocess.run(
        ["make", "-s", "docs"], cwd=ROOT, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert (ROOT / "build/docs/docs/tutorials/first-comparison.html").is_file()
