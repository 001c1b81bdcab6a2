"""The real EasyBuild, as an ordinary user, builds from Debian 13's sources."""

from __future__ import annotations

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


def test_a_small_package_is_built_and_its_module_loads(
    easybuilder: EasyBuilder, prefix: Path
) -> None:
    """One test, since each start of EasyBuild takes seconds."""
    done = build_one(easybuilder, prefix)
    assert done.ok, done.text()
    root = prefix / "software" / MODULE
    assert done.text().split() == ["building", NAME, str(root)]
    assert (root / "lib/libconfig.so").exists()
    loaded = easybuilder.module(prefix, MODULE, "echo $LD_LIBRARY_PATH")
    assert str(root / "lib") in loaded.split(":")
    library = (root / "lib/libconfig.so").resolve()
    before = library.stat().st_mtime_ns
    assert build_one(easybuilder, prefix).ok, "what is there stays"
    assert library.stat().st_mtime_ns == before
    assert sorted(path.name for path in easybuilder.home.iterdir()) == ["graft", "prefix"]
