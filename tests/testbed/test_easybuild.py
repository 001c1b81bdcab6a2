"""The real EasyBuild, as an ordinary user, builds from Debian 13's sources."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from mpigraft.core.process import Completed
from tests.testbed.easybuild import CHAIN, EasyBuilder

pytestmark = pytest.mark.testbed

NAME = "libconfig"
MODULE = f"{NAME}/{CHAIN[NAME]}-gnu"
BUILD = Path(__file__).with_name("build_package.py")


@pytest.fixture(scope="module")
def prefix(easybuilder: EasyBuilder) -> Path:
    return easybuilder.home / "prefix"


def build_one(easybuilder: EasyBuilder, prefix: Path) -> Completed:
    sources = easybuilder.sources(NAME)
    return easybuilder.run(sys.executable, BUILD, NAME, CHAIN[NAME], sources, prefix)


def test_a_small_package_is_built_and_its_modules_load(
    easybuilder: EasyBuilder, prefix: Path
) -> None:
    """One test, since each start of EasyBuild takes seconds."""
    done = build_one(easybuilder, prefix)
    assert done.ok, done.text()
    root = prefix / "software" / MODULE
    lines = done.stdout.decode().splitlines()
    assert lines[-1] == str(root)
    assert "libconfig building" in lines
    by_lmod, by_tcl = (
        easybuilder.module(prefix, MODULE, "env", tool).splitlines() for tool in ("lmod", "tcl")
    )
    assert f"LD_LIBRARY_PATH={root}/lib" in by_lmod
    assert own_rows(by_lmod) == own_rows(by_tcl)
    library = (root / "lib/libconfig.so").resolve()
    before = library.stat().st_mtime_ns
    again = build_one(easybuilder, prefix)
    assert again.stdout.decode().splitlines() == ["libconfig kept", str(root)]
    assert library.stat().st_mtime_ns == before
    assert sorted(path.name for path in easybuilder.home.iterdir()) == ["graft", "prefix"]


def own_rows(lines: list[str]) -> list[str]:
    """What a module sets, without the tool's own variables."""
    own = re.compile(r"EB\w+|[A-Z]\w*PATH|XDG_DATA_DIRS")
    names = [line for line in lines if own.fullmatch(line.partition("=")[0])]
    return sorted(line for line in names if not line.startswith("MODULEPATH"))
