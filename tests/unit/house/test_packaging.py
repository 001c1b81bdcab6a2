"""What an install gets: the wheel carries the facts, the schemas and the C programs."""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from mpigraft import __version__
from mpigraft.core.process.command import run_command

ROOT = Path(__file__).resolve().parents[3]
PREBUILT = "mpigraft/native/prebuilt"
SKIP = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*")


@pytest.fixture(scope="module")
def modes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Names and modes in a wheel; built from a copy, since a build writes beside its sources."""
    copy = tmp_path_factory.mktemp("tree")
    for path in ROOT.glob("*.*"):
        if path.suffix in {".toml", ".md", ".txt", ".in"}:
            shutil.copy2(path, copy)
    shutil.copy2(ROOT / "LICENSE", copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=SKIP)
    made = copy / "src" / PREBUILT / "x86_64/ompi/mpigraft-bench"
    made.parent.mkdir(parents=True, exist_ok=True)
    made.touch()
    made.chmod(0o755)
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    done = run_command(
        [sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", copy, copy], limit_s=300
    )
    assert done.ok, done.text()
    (built,) = copy.glob("*.whl")
    assert built.name == f"mpigraft-{__version__}-py3-none-any.whl"
    return {
        entry.filename: entry.external_attr >> 16 for entry in zipfile.ZipFile(built).infolist()
    }


@pytest.fixture(scope="module")
def wheel(modes: dict[str, int]) -> set[str]:
    return set(modes)


def sources(pattern: str) -> set[str]:
    return {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src/mpigraft").glob(pattern)
        if path.is_file() and not any(part.startswith(".") for part in path.parts[-4:])
    }


@pytest.mark.parametrize(
    "pattern",
    [
        "**/*.py",
        "knowledge/*.toml",
        "native/*.toml",
        "native/*/*.[ch]",
        "report/*.??*",
        "report/[sv]*/*.??*",
    ],
)
def test_every_file_of_the_package_is_in_the_wheel(wheel: set[str], pattern: str) -> None:
    assert sources(pattern)
    assert sources(pattern) <= wheel


def test_the_c_programs_are_in_the_wheel(wheel: set[str], modes: dict[str, int]) -> None:
    assert modes[f"{PREBUILT}/x86_64/ompi/mpigraft-bench"] & 0o111
    assert sources("native/prebuilt/**/*") <= wheel


def test_licence_and_notices_are_in_the_wheel(wheel: set[str]) -> None:
    info = f"mpigraft-{__version__}.dist-info"
    assert {f"{info}/licenses/LICENSE", f"{info}/licenses/THIRD-PARTY-NOTICES.md"} <= wheel


def test_tests_and_tools_are_not_in_the_wheel(wheel: set[str]) -> None:
    info = f"mpigraft-{__version__}.dist-info"
    assert {name.split("/")[0] for name in wheel} == {"mpigraft", info}


def test_citation_and_package_have_one_version() -> None:
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited
    assert cited[1] == __version__
