"""A library and a program that most tests of the ELF reader look at; a cache for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.elf import NODES, VERSIONED, compiled, program


@pytest.fixture(scope="session")
def versioned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with versions, weak, hidden, protected, data and thread-local symbols."""
    folder = tmp_path_factory.mktemp("versioned")
    script = folder / "nodes"
    script.write_text(NODES)
    return compiled(
        folder / "libversioned.so",
        VERSIONED,
        soname="libversioned.so.3",
        flags=(f"-Wl,--version-script={script}", "-Wl,--build-id=0xabcd"),
    )


@pytest.fixture(scope="session")
def copying(versioned: Path) -> Path:
    """A program that copies a library's variable."""
    source = "extern int data[7]; int own = 3; int use(void) { return data[0] + own; }"
    flags = ("-no-pie", "-fno-pie", "-rdynamic")
    return program(versioned.with_name("copying"), source, needs=[versioned], flags=flags)


@pytest.fixture(autouse=True)
def _own_cache(home: Path) -> None:
    """A cache of each test's own."""
