"""`mpigraft check STACK` as a command: page, document, exit codes, progress."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import mpigraft
from mpigraft.cli.main import run_command
from mpigraft.core.model import Abi, Family
from mpigraft.discovery import inventory
from mpigraft.selection.mpi import broken_mpis
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.elf import compiled, program
from tests.builders.messages import shows
from tests.builders.outputs import assert_output
from tests.builders.stacks import StackFiles, libmpi

SCHEMA = json.loads(
    (Path(mpigraft.__file__).parent / "report/schemas/check-stack.json").read_text()
)


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackFiles:
    """A stack, on a machine with an MPI of its family and one of another."""
    openmpi = an_mpi("openmpi@5.0.11")
    openmpi = replace(openmpi, libmpi=libmpi(tmp_path / "openmpi"), family=Family.OPENMPI)
    mpich = an_mpi("mpich@5.0.2")
    library = libmpi(tmp_path / "mpich", "libmpi.so.12")
    mpich = replace(mpich, libmpi=library, family=Family.MPICH, abi=Abi.MPICH)
    gone = replace(openmpi, id="openmpi@5.0.7", version="5.0.7", libmpi=tmp_path / "gone")
    monkeypatch.setattr(inventory, "discover_machine", lambda: a_machine(openmpi, mpich, gone))
    files = StackFiles(tmp_path / "a stack", [tmp_path / "site/lib"])
    files.program("One/1")
    files.program("Two/1")
    return files


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run_command(["check", *words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_page(stack: StackFiles, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, page, progress = run(capsys, str(stack.root), "--mpi", "openmpi@5.0.11")
    assert code == 0, page
    assert_output("check/stack", page + progress, TMP=tmp_path)
    _, page, _ = run(capsys, str(stack.root), "--mpi", "openmpi@5.0.11", "--full")
    assert_output("check/stack-full", page, TMP=tmp_path)


def test_a_refusal_says_why(
    stack: StackFiles, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, page, _ = run(capsys, str(stack.root), "--mpi", "mpich")
    assert code == 1
    assert_output("check/stack-refused", page, TMP=tmp_path)
    _, page, _ = run(capsys, str(stack.root), "--mpi", "mpich", "--full")
    assert_output("check/stack-refused-full", page, TMP=tmp_path)


def test_all_mpis_are_tried(
    stack: StackFiles, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, page, _ = run(capsys, str(stack.root))
    assert code == 0
    assert_output("check/stack-mpis", page, TMP=tmp_path)
    _, page, _ = run(capsys, str(stack.root), "--full")
    assert_output("check/stack-mpis-full", page, TMP=tmp_path)


def test_a_large_stack_is_one_screen(
    stack: StackFiles, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    old = compiled(
        stack.root / "software/OpenMPI/3/lib/libmpi.so.40",
        "int MPI_Init(void) { return 0; }\nint MPI_Old(void) { return 0; }\n",
        soname="libmpi.so.40",
    )
    source = "extern int MPI_Old(void);\nint (*use)(void) = MPI_Old;\n"
    for number in range(20):
        stack.program(f"Fits{number}-gompi-2023b/1")
        place = stack.root / f"software/Old{number}/1/bin/old"
        program(place, source, flags=stack.path(*stack.overrides), needs=(old,))
    for words in ((), ("--mpi", "openmpi@5.0.11")):
        _, page, _ = run(capsys, str(stack.root), *words)
        lines = page.splitlines()
        assert len(lines) <= 40
        assert max(map(len, lines[2:])) <= 80
    assert shows(page, "no", "22 of 42 programs")
    assert shows(page, "what to do")
    assert shows(page, "mpi-symbols", "Old0/1", "and 17 more")
    assert shows(page, "and 30 more modules", "--full")


def test_a_stack_of_two_families_fits_in_part(
    stack: StackFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    other = compiled(
        stack.root / "software/MPICH/4/lib/libmpi.so.12", "int MPI_Init(void) { return 0; }\n",
        soname="libmpi.so.12",
    )  # fmt: skip
    source = "extern int MPI_Init(void);\nint (*use)(void) = MPI_Init;\n"
    program(stack.root / "software/Other/1/bin/other", source, needs=(other,))
    for flags in ((), ("--full",)):
        code, page, _ = run(capsys, str(stack.root), "--mpi", "openmpi@5.0.11", *flags)
        assert code == 0
        text = " ".join(page.split())
        assert shows(text, "fits", "in part")
        assert shows(text, "2 of 3 programs would load", "1 program would stay as it is")


def test_the_document(stack: StackFiles, capsys: pytest.CaptureFixture[str]) -> None:
    for words, ok in ((["--mpi", "openmpi@5.0.11"], True), (["--mpi", "mpich"], False), ([], True)):
        _, text, _ = run(capsys, str(stack.root), "--json", *words)
        found = json.loads(text)
        jsonschema.validate(found, SCHEMA, jsonschema.Draft202012Validator)
        assert found["ok"] is ok
    assert found["stack"]["programs"] == 2
    assert {c["mpi"]: c["fits"] for c in found["checks"]} == {"openmpi@5.0.11": 2, "mpich@5.0.2": 0}


def test_a_program_of_a_stack(stack: StackFiles, capsys: pytest.CaptureFixture[str]) -> None:
    path = stack.root / "software/One/1/bin/one"
    code, page, _ = run(capsys, str(path), "--stack", "--mpi", "openmpi@5.0.11")
    assert code == 0
    assert shows(page, 1, "openmpi@5.0.11")


def test_a_broken_mpi_that_comes_first_is_named(
    stack: StackFiles, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that works is taken, and who named the family is told so."""
    machine = inventory.discover_machine()
    found, reason = ("mpirun in PATH: /broken/bin/mpirun",), "libmpi does not load: gone"
    broken = replace(machine.mpis[0], id="openmpi@5.0.12", usable=False, found=found, reason=reason)
    machine = replace(machine, mpis=(broken, *machine.mpis))
    monkeypatch.setattr(inventory, "discover_machine", lambda: machine)
    code, page, errors = run(capsys, str(stack.root), "--mpi", "openmpi")
    assert code == 0, page
    assert shows(errors, "/broken/bin/mpirun", reason)
    assert shows(errors, "openmpi@5.0.11")
    for name in ("openmpi", ""):  # `run` lists it among those that are not taken
        assert broken_mpis(name, machine) == (broken.problem,)


def test_an_mpich_of_another_soname_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's is libmpich.so.12: the override has it by the name that programs need, too."""
    library = libmpi(tmp_path / "mpich", "libmpich.so.12")
    mpich = replace(an_mpi("mpich@4.0.2"), libmpi=library, family=Family.MPICH, abi=Abi.MPICH)
    monkeypatch.setattr(inventory, "discover_machine", lambda: a_machine(mpich))
    files = StackFiles(tmp_path / "stack", [tmp_path / "site/lib"])
    own = libmpi(files.root / "software/MPICH/5/lib", "libmpi.so.12")
    for name in ("One/1", "Two/1"):
        files.program(name, own)
    code, page, _ = run(capsys, str(files.root), "--mpi", "mpich")
    assert code == 0, page
    assert shows(page, 2, mpich.id)


def test_options_of_a_single_guest_are_refused(
    stack: StackFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, message = run(capsys, str(stack.root), "--no-glibc")
    assert code == 2
    assert "[stack-option]" in message


def test_a_loop_of_links_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    code, _, message = run(capsys, str(loop), "--stack")
    assert code == 2
    assert "[stack-link-loop]" in message


def test_an_image_with_a_folder_software_is_no_stack(
    stack: StackFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    (stack.root / "etc").mkdir()
    (stack.root / "etc/os-release").touch()
    _, page, _ = run(capsys, str(stack.root), "--mpi", "openmpi@5.0.11")
    assert "stack" not in page.partition("guest")[0]
    assert "(folder)" in page
