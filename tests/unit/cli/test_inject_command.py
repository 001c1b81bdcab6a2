"""`mpigraft inject` and `undo` as commands, on small stacks: which MPI, and which override."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
import yaml  # type: ignore[import-untyped]

import mpigraft as package
from mpigraft.cli.main import run_command
from mpigraft.core.model import Family
from mpigraft.discovery import inventory
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.elf import compiled, program
from tests.builders.messages import matches, shows
from tests.builders.stacks import CALLS, StackFiles, libmpi, runpath

SCHEMAS = Path(package.__file__).parent / "report/schemas"
SPACK = Path(__file__).parents[2] / "data/spack"
SPACK_PACKAGES, SPACK_CONCRETIZER = SPACK / "packages.json", SPACK / "concretizer.json"


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StackFiles:
    """Three programs search one override, two another; the machine has two Open MPIs."""
    mpis = []
    for version in ("5.0.11", "5.0.7"):
        mpi = an_mpi(f"openmpi@{version}")
        library = libmpi(tmp_path / version)
        mpis.append(replace(mpi, version=version, libmpi=library, family=Family.OPENMPI))
    monkeypatch.setattr(inventory, "discover_machine", lambda: a_machine(*mpis))
    files = StackFiles(tmp_path / "a stack", [tmp_path / "b site/lib"])
    for name in ("Four/1", "Five/1"):
        files.program(name, overrides=[tmp_path / "a site/lib"])
    for name in ("One/1", "Two/1", "Three/1"):
        files.program(name)
    return files


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    code = run_command(list(map(str, words)))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_a_family_with_several_names_the_one_that_is_used(
    stack: StackFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("inject", stack.root, "--dry-run", "--mpi")
    code, page, notes = run(capsys, *words, "openmpi")
    assert code == 0, page + notes
    assert shows(notes, "openmpi@5.0.11", "openmpi@5.0.7")
    code, _, notes = run(capsys, *words, "openmpi@5.0.7")
    assert code == 0
    assert "is used" not in notes


def test_undo_names_the_override_that_most_search_and_what_is_still_on(
    stack: StackFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, page, _ = run(capsys, "undo", stack.root, "--list")
    assert shows(page, tmp_path / "b site", "own MPI")
    code, page, notes = run(capsys, "inject", stack.root, "--mpi", "openmpi@5.0.11")
    assert code == 0, page + notes
    assert page.count("generation 1 is on") == 2
    code, page, _ = run(capsys, "undo", stack.root)
    assert code == 0
    assert shows(page, tmp_path / "b site", "own MPI")
    assert shows(page, "not changed", tmp_path / "a site", "--slot")
    code, page, _ = run(capsys, "undo", stack.root)
    assert shows(page, tmp_path / "a site", "own MPI")
    assert "also on" not in page


def test_a_stack_without_an_override_has_nothing_to_verify(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = StackFiles(tmp_path / "plain", [])
    files.program("One/1")
    code, _, notes = run(capsys, "inject", files.root, "--verify")
    assert code == 2
    assert matches(notes, "stack-no-override", stack=files.root)
    (tmp_path / "bare").mkdir()
    for words in (["undo"], ["inject", "--mpi", "openmpi@5.0.11"]):
        code, _, notes = run(capsys, *words, tmp_path / "bare")
        assert code == 2
        assert matches(notes, "stack-without-mpi", stack=tmp_path / "bare")


def test_verify_with_a_program_without_mpi_names_its_own_flags(
    stack: StackFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "inject", stack.root, "--mpi", "openmpi@5.0.11")[0] == 0
    words = ("inject", stack.root, "--verify", "--program", "/bin/true")
    code, _, notes = run(capsys, *words)
    assert code == 2
    assert shows(notes, "/bin/true", "[verify-not-mpi]")
    assert "--no-proof" not in notes


# ------------------------------------------------------------------ modules and Spack


@pytest.fixture
def by_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[StackFiles, dict[str, Path]]:
    """A stack without overrides whose program searches LD_LIBRARY_PATH first, and MPIs: one in a
    folder of its own, one beside a C library, as in /usr, and one of another family."""
    places = {name: tmp_path / name / "lib" for name in ("own", "system", "other")}
    mpis = []
    for version, (name, place) in enumerate(places.items()):
        soname = "libmpi.so.12" if name == "other" else "libmpi.so.40"
        family = "mpich" if name == "other" else "openmpi"
        mpi = an_mpi(f"{family}@5.0.{version}")
        library = libmpi(place, soname)
        mpis.append(replace(mpi, version=f"5.0.{version}", libmpi=library, family=Family(family)))
    (places["system"] / "libc.so.6").symlink_to("/lib/x86_64-linux-gnu/libc.so.6")
    monkeypatch.setattr(inventory, "discover_machine", lambda: a_machine(*mpis))
    files = StackFiles(tmp_path / "stack")
    place = files.root / "software/One/1/bin/one"
    program(place, CALLS, flags=runpath(files.mpi.parent), needs=[files.mpi])
    return files, places


@pytest.mark.parametrize("form", ["module", "tcl"])
def test_a_module_puts_an_mpi_first_that_fits_and_nothing_of_the_host(
    by_environment: tuple[StackFiles, dict[str, Path]],
    capsys: pytest.CaptureFixture[str],
    form: str,
) -> None:
    files, places = by_environment
    words = ("inject", files.root, "--as", form, "--mpi")
    code, page, notes = run(capsys, *words, "openmpi@5.0.0")
    assert code == 0, notes
    assert f'"{places["own"]}"' in page
    code, page, notes = run(capsys, *words, "openmpi@5.0.1")
    assert (code, page) == (1, "")
    assert matches(notes, "module-system-folder", folder=places["system"])
    code, page, notes = run(capsys, *words, "mpich@5.0.2")
    assert (code, page) == (1, "")
    assert "stack-other-abi" in notes


def test_a_module_for_programs_that_it_does_not_reach_is_refused(
    by_environment: tuple[StackFiles, dict[str, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    files, _ = by_environment
    files.program("Fixed/1")  # DT_RPATH: LD_LIBRARY_PATH comes after it
    code, page, notes = run(
        capsys, "inject", files.root, "--as", "module", "--mpi", "openmpi@5.0.0"
    )
    assert (code, page) == (1, "")
    assert "stack-other-libmpi" in notes


def test_the_module_of_an_override_has_the_launcher_alone(
    stack: StackFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("inject", stack.root, "--mpi", "openmpi@5.0.11", "--as", "module")
    code, page, notes = run(capsys, *words)
    assert code == 0, notes
    assert shows(notes, "own MPI", "not openmpi@5.0.11")
    calls = [line for line in page.splitlines() if not line.startswith(("--", "whatis("))]
    assert calls == [f'prepend_path("PATH", "{tmp_path}/b site/bin")']


def test_what_spack_gets_is_a_packages_yaml(
    by_environment: tuple[StackFiles, dict[str, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    files, _ = by_environment
    files.program("Fixed/1")  # Spack writes search paths anew
    words = ("inject", files.root, "--as", "spack", "--mpi")
    code, page, notes = run(capsys, *words, "openmpi@5.0.0")
    assert code == 0, notes
    value = yaml.safe_load(page)
    jsonschema.validate(value, json.loads(SPACK_PACKAGES.read_text()))
    (external,) = value["packages"]["openmpi"]["externals"]
    assert external["spec"] == "openmpi@5.0.0"
    comments = "\n".join(line[6:] for line in page.splitlines() if line.startswith("#     "))
    splice = yaml.safe_load(comments[comments.index("concretizer:") :])
    jsonschema.validate(splice, json.loads(SPACK_CONCRETIZER.read_text()))
    assert run(capsys, *words, "mpich@5.0.2")[:2] == (1, "")


def test_programs_that_were_excepted_are_accepted_and_later_ones_are_not(
    stack: StackFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` without --mpi was red for ever after `inject --except`."""
    more = "int MPI_Init(void) { return 0; }\nint MPI_New(void) { return 0; }\n"
    own = compiled(stack.mpi, more, soname=stack.mpi.name)
    calls = f"{CALLS}extern int MPI_New(void);\nint (*more)(void) = MPI_New;\n"

    def add(name: str) -> None:
        place = stack.root / "software" / name / "bin/solve"
        program(place, calls, flags=stack.path(*stack.overrides), needs=[own])

    add("New/1")
    words = ("inject", stack.root, "--mpi", "openmpi@5.0.11")
    assert run(capsys, *words)[0] == 1
    code, page, notes = run(capsys, *words, "--except", "New/*")
    assert code == 0, page + notes
    code, page, _ = run(capsys, "check", stack.root)
    assert (code, shows(page, "--except", "1 program")) == (0, True), page
    judged = json.loads(run(capsys, "check", stack.root, "--json")[1])
    jsonschema.validate(judged, json.loads((SCHEMAS / "check-stack.json").read_text()))
    assert [(one["refused"], one["accepted"]) for one in judged["injected"]] == [(0, 0), (0, 1)]
    add("Newer/1")
    code, page, _ = run(capsys, "check", stack.root)
    assert (code, "Newer/1" in page) == (1, True), page
    assert run(capsys, *words, "--except", "New*")[0] == 0
    assert run(capsys, "check", stack.root)[0] == 0
