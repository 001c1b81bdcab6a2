"""Programs that an override does not reach, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mpigraft.graft.stack.reading import read_stack
from mpigraft.graft.stack.stack_check import check_stack
from mpigraft.graft.stack.values import Fate
from tests.builders.stacks import StackFiles, files_of, host, libmpi


def test_programs_on_the_mpi_of_another_override_have_one(tmp_path: Path) -> None:
    """They were said to be without an override, when an accelerator's was judged."""
    gpu, site = (tmp_path / f"rpath_overrides/{name}/lib" for name in ("gpu", "site"))
    files = StackFiles(tmp_path / "stack", [site])
    files.program("One/1")
    files.program("Cuda/1", overrides=[gpu, site])
    stack = read_stack(files.root)
    slot = next(one for one in stack.slots if str(gpu) in one.folders)
    openmpi = host(libmpi(tmp_path / "host"))
    contents: Any = files_of(openmpi)

    def kept() -> list[tuple[str, str]]:
        verdict = check_stack(stack, openmpi, contents, slots=[slot])
        programs = (p for m in verdict.modules for p in m.programs if p.fate is Fate.KEPT)
        return [(p.why, p.slot) for p in programs]

    assert kept() == [("no-override", "")]
    libmpi(site)
    assert kept() == [("other-override", str(site.parent))]
