"""What `inject --verify` starts besides two ranks of a program: imports of mpi4py, and children."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpigraft.core.model import Finding, Level, MappedLibrary
from mpigraft.core.process import Completed
from mpigraft.graft import read_override
from mpigraft.graft.stack.values import Slot, Stack, StackLoader
from mpigraft.knowledge import Spawn, spawn_facts
from mpigraft.run.injection import alone
from mpigraft.run.injection.alone import is_current, judge_spawning, start_alone
from mpigraft.run.injection.imports import PythonImport, plan_imports
from tests.builders.configuration import an_mpi
from tests.builders.messages import shows

SITE = "lib/python3.11/site-packages"


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    path.chmod(0o755)
    return path


def planned(root: Path, module: str, layer: str = "") -> PythonImport | Finding:
    """The import of the extension module at `module` of a stack in `root`."""
    loader = StackLoader(f"{layer}/lib64/ld.so", layer) if layer else None
    stack = Stack(str(root), str(root), (), (), loader, 0)
    (one,) = plan_imports(stack, [f"{root}/{module}", f"{root}/bin/program"])
    return one


@pytest.mark.parametrize(
    ("module", "python"),
    [
        (f"conda/{SITE}/mpi4py/MPI.abi3.so", "conda/bin/python3.11"),
        (
            f"software/mpi4py/4-gompi/{SITE}/mpi4py/MPI.abi3.so",
            "software/Python/3.11.3/bin/python3.11",
        ),
        (
            f"software/mpi4py/3/{SITE}/mpi4py-3.egg/mpi4py/MPI.cpython-311.so",
            "software/Python/3.11.3/bin/python3.11",
        ),
        (
            f"linux-zen3/gcc-13/py-mpi4py-4-abc/{SITE}/mpi4py/MPI.abi3.so",
            "linux-zen3/gcc-13/python-3.11.9-xyz/bin/python3.11",
        ),
        (f"software/mpi4py/4/{SITE}/mpi4py/MPI.abi3.so", "compat/usr/bin/python3.11"),
    ],
    ids=["its own", "EasyBuild", "egg", "Spack", "compatibility layer"],
)
def test_the_python_of_a_stack_is_used_wherever_it_lies(
    tmp_path: Path, module: str, python: str
) -> None:
    executable(tmp_path / "software/Python/3.9.5/bin/python3.9")
    own = executable(tmp_path / python)
    one = planned(tmp_path, module, f"{tmp_path}/compat")
    assert isinstance(one, PythonImport)
    assert one.words == (str(own), "-s", "-c", "import mpi4py.MPI")
    assert one.environment["PYTHONPATH"] == f"{tmp_path}/{module}".partition("/mpi4py/MPI.")[0]


def test_a_python_that_is_not_in_the_stack_is_reported(tmp_path: Path) -> None:
    executable(tmp_path / "software/Python/3.12/bin/python3.12")
    one = planned(tmp_path, f"software/mpi4py/4/{SITE}/mpi4py/MPI.abi3.so")
    assert isinstance(one, Finding)
    assert (one.code, "python3.11" in one.message) == ("verify-no-python", True)


@pytest.fixture
def generation(tmp_path: Path) -> Path:
    """Generation 2, which is on."""
    folder = tmp_path / ".mpigraft-system/generations/2"
    folder.mkdir(parents=True)
    (tmp_path / "system").symlink_to(".mpigraft-system/generations/2")
    return folder


def mapped(*paths: Path | str) -> list[MappedLibrary]:
    return [MappedLibrary(str(path), 0, 0) for path in paths]


def test_a_library_of_another_override_is_no_other_generation(
    tmp_path: Path, generation: Path
) -> None:
    """Of a libfabric and a UCX that were injected apart, a process has both."""
    override = read_override(Slot(f"{tmp_path}/system", (), None))
    own, before = generation / "lib/libucp.so.0", generation.with_name("1") / "lib/libucp.so.0"
    other = "/site/libfabric/.mpigraft-system/generations/7/lib/libfabric.so.1"
    assert is_current(mapped(own, other), override)
    assert not is_current(mapped(own, before), override)
    assert not is_current(mapped(before), override)
    assert not is_current(mapped(other), override)


def ended(text: str, code: int = 0) -> Completed:
    return Completed((), code, text.encode(), b"", 0.0)


@pytest.mark.parametrize(
    ("own", "places", "code"),
    [
        (None, ["2"], ""),
        (None, [""], "verify-alone"),
        (None, [None], "verify-alone"),
        (["/own/libfabric.so.1"], ["2"], ""),
        (["/own/libfabric.so.1"], [""], ""),  # closed again: its MPI did not choose it
        (["/own/libfabric.so.1"], ["1", "2"], "verify-alone"),
        (["/own/libfabric.so.1"], [None, ""], "verify-alone"),
        (["/own/libfabric.so.1"], [None, None], "verify-alone-own"),
    ],
)
def test_a_program_starts_alone_on_what_is_injected(
    tmp_path: Path,
    generation: Path,
    monkeypatch: pytest.MonkeyPatch,
    own: list[str] | None,
    places: list[str | None],
    code: str,
) -> None:
    """On libfabric alone too. If it starts on the stack's own neither, that is not its fault."""
    preloads, pending = [], list(places)

    def run(words: object, env: dict[str, str], **_: object) -> Completed:
        preloads.append(env["LD_PRELOAD"])
        return ended("no orted here\n", 1)

    def ranks(folder: Path, count: int) -> list[object]:
        place = pending.pop(0)
        paths = [generation.with_name(place) / "lib/libfabric.so.1"] if place else []
        return [] if place is None else [SimpleNamespace(rank=0, libraries=mapped(*paths))]

    monkeypatch.setattr(alone, "run_command", run)
    monkeypatch.setattr(alone, "read_witness", ranks)
    override = read_override(Slot(f"{tmp_path}/system", (), None))
    found = start_alone(["/bin/heat"], {}, Path("/witness.so"), override, own)
    assert (found.code if found else "") == code
    assert not found or shows(found.message, "no orted")
    assert preloads == ["/witness.so", "/own/libfabric.so.1:/witness.so"][: len(places)]


@pytest.mark.parametrize(
    ("place", "code", "works", "level"),
    [
        ("2", 0, True, None),
        ("1", 0, True, Level.ERROR),
        ("2", 9, True, Level.ERROR),
        ("", 9, True, Level.ERROR),
        ("", 9, False, Level.WARNING),
        ("2", 0, False, None),
    ],
)
def test_children_have_to_be_on_the_generation_that_is_on(
    tmp_path: Path, generation: Path, place: str, code: int, works: bool, level: Level | None
) -> None:
    """What is known not to work is a warning, unless it does."""
    override = read_override(Slot(f"{tmp_path}/system", (), None))
    libmpi = f"{generation.parent}/{place}/lib/libmpi.so.40"
    line = json.dumps({"mpigraft": "spawned", "libmpi": libmpi}) if place else "error 14"
    known = Spawn("alone", works, (), ("seen",), fix="take another MPI")
    done = ended(f"[warning]\n{{not JSON\n{line}\n", code)
    finding = judge_spawning(done, "alone", an_mpi(), known, override)
    assert (finding.level if finding else None) is level
    assert finding is None or ("another MPI" in finding.fix and finding.message.endswith(
        f"its child mapped {libmpi}" if place else "error 14"))  # fmt: skip


def test_an_mpi_of_which_nothing_is_known_has_to_spawn(tmp_path: Path, generation: Path) -> None:
    override = read_override(Slot(f"{tmp_path}/system", (), None))
    assert spawn_facts("alone", "mvapich", "2.3") is None
    finding = judge_spawning(ended("", 1), "alone", an_mpi(), None, override)
    assert finding is not None
    assert finding.level is Level.ERROR
