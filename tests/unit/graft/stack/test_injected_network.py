"""libfabric that is injected alone, under programs that came into the stack after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.cli.check_stack import check_stack_of
from mpigraft.cli.verify_injection import verify_injections
from mpigraft.graft.stack import StackVerdict, check_injected
from mpigraft.graft.stack.reading import read_stack
from mpigraft.graft.stack.values import Fate
from tests.builders.configuration import a_machine
from tests.builders.elf import compiled, program
from tests.builders.stacks import CALLS, StackFiles

LIBFABRIC = "libfabric.so.1"


def libfabric(folder: Path, *nodes: str) -> Path:
    """A libfabric with these version nodes, each of which has one function."""
    folder.mkdir(parents=True)
    script = folder / "nodes"
    script.write_text("".join(f"{n} {{ global: fi_{i}; }};\n" for i, n in enumerate(nodes)))
    text = "".join(f"int fi_{i}(void) {{ return 0; }}\n" for i, _ in enumerate(nodes))
    flags = [f"-Wl,--version-script={script}"]
    return compiled(folder / LIBFABRIC, text, flags=flags, soname=LIBFABRIC)


def judged(stack: StackFiles) -> tuple[StackVerdict, ...]:
    return check_injected(read_stack(stack.root), a_machine())


@pytest.fixture
def stack(tmp_path: Path) -> StackFiles:
    files = StackFiles(tmp_path / "stack", [tmp_path / "site/lib", tmp_path / "site/lib64"])
    libfabric(files.root / "software/libfabric/1/lib", "FABRIC_1.0", "FABRIC_1.9")
    for name in ("One/1", "Two/1"):
        calling(files, name, 0)
    libfabric(tmp_path / "site/lib", "FABRIC_1.0")
    return files


def calling(stack: StackFiles, name: str, number: int) -> Path:
    """A program that calls one function of libfabric."""
    own = stack.root / "software/libfabric/1/lib" / LIBFABRIC
    place = stack.root / "software" / name / "bin" / name.partition("/")[0].lower()
    text = f"{CALLS}extern int fi_{number}(void);\nint (*net)(void) = fi_{number};\n"
    flags = stack.path(*stack.overrides)
    flags[-1] += f":{own.parent}"
    return program(place, text, flags=flags, needs=(stack.mpi, own))


def test_programs_that_it_serves_fit(stack: StackFiles) -> None:
    (verdict,) = judged(stack)
    assert verdict.ok
    assert verdict.injected
    assert (verdict.count(Fate.FITS), verdict.mpi.partition(" of ")[0]) == (2, LIBFABRIC)


def test_a_program_that_needs_a_newer_one_is_named(
    stack: StackFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    """By check, and by --verify, which end with 1."""
    calling(stack, "New/1", 1)
    (verdict,) = judged(stack)
    refused = [p.module for m in verdict.modules for p in m.programs if p.fate == Fate.REFUSED]
    assert refused == ["New/1"]
    assert check_stack_of(str(stack.root), "", None, as_json=False) == 1
    assert "FABRIC_1.9" in capsys.readouterr().out
    there = read_stack(stack.root)
    assert verify_injections(there, there.slots, ("", ""), as_json=False) == 1
    assert "FABRIC_1.9" in capsys.readouterr().out


def test_what_no_program_takes_is_no_injection(tmp_path: Path) -> None:
    files = StackFiles(tmp_path / "stack", [tmp_path / "site/lib"])
    files.program("One/1")
    files.program("Two/1")
    libfabric(tmp_path / "site/lib", "FABRIC_1.0")
    assert judged(files) == ()
