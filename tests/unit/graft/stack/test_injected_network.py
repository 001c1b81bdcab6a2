"""libfabric that is injected alone, under programs that came into the stack after it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import jsonschema
import pytest

import mpigraft
from mpigraft.binary import Elf
from mpigraft.cli.check_stack import check_stack_of
from mpigraft.cli.verify_injection import verify_injections
from mpigraft.core.model import Level
from mpigraft.core.serialize import document
from mpigraft.graft import (
    GenerationRecord,
    StackCheck,
    check_injected,
    check_stack,
    examine_stack,
    read_abi,
)
from mpigraft.graft.stack.override.content import SourceFile
from mpigraft.graft.stack.reading import read_stack
from mpigraft.graft.stack.values import Fate
from mpigraft.request import InjectSpec
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.elf import compiled, program
from tests.builders.messages import matches
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


def judged(stack: StackFiles) -> tuple[StackCheck, ...]:
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
    assert verify_injections(there, there.slots, InjectSpec(), as_json=False) == 1
    assert "FABRIC_1.9" in capsys.readouterr().out


def test_what_no_program_takes_is_no_injection(tmp_path: Path) -> None:
    files = StackFiles(tmp_path / "stack", [tmp_path / "site/lib"])
    files.program("One/1")
    files.program("Two/1")
    libfabric(tmp_path / "site/lib", "FABRIC_1.0")
    assert judged(files) == ()


def test_an_override_that_no_program_takes_it_from_is_refused_with_the_reason(
    stack: StackFiles, tmp_path: Path
) -> None:
    """Nothing was refused, nothing would load it, and no line said why."""
    shutil.rmtree(tmp_path / "site")
    own = libfabric(tmp_path / "host", "FABRIC_1.0")
    mpi = an_mpi("openmpi@5.0.11", soname=LIBFABRIC, prefix=own.parent, libmpi=own)
    there = read_stack(stack.root)
    empty: dict[str, Elf] = {}
    verdict = check_stack(there, read_abi(mpi), lambda _slot, _needed: empty)
    assert (verdict.ok, verdict.count(Fate.KEPT)) == (False, 2)
    assert [f.code for f in verdict.findings if f.level is Level.ERROR] == ["stack-not-used"]
    assert matches(verdict.findings[-1], "stack-not-used", library="libfabric")


# ------------------------------------------------------------------ what it opens


@pytest.fixture
def generation(tmp_path: Path) -> Path:
    """Generation 1 with a provider, which needs a private copy of a library of the host's."""
    folder = tmp_path / "site/.mpigraft-system/generations/1"
    libfabric(folder / "lib", "FABRIC_1.0")
    copy = compiled(folder / "mpi/lib/mpigraft-libverbs.so.1", soname="mpigraft-libverbs.so.1")
    providers = folder / "mpi/lib/libfabric"
    rpath = [f"-Wl,--disable-new-dtags,-rpath,{copy.parent}"]
    compiled(providers / "libverbs-fi.so", flags=rpath, needs=(copy,), soname="libverbs-fi.so")
    compiled(providers / "libefa-fi.so", soname="libefa-fi.so")
    names = [path.relative_to(folder) for path in folder.rglob("*.so*")]
    record = GenerationRecord(
        1,
        0,
        "",
        "openmpi@5.0.11",
        "",
        (LIBFABRIC,),
        (),
        tuple(SourceFile(str(n), "") for n in names),
    )
    (folder / "plan.json").write_text(document(generation=record))
    (tmp_path / "site/system").symlink_to(".mpigraft-system/generations/1")
    return folder


@pytest.fixture
def above(tmp_path: Path, generation: Path) -> StackFiles:
    """Programs that search it."""
    files = StackFiles(tmp_path / "stack", [tmp_path / "site/system/lib"])
    libfabric(files.root / "software/libfabric/1/lib", "FABRIC_1.0", "FABRIC_1.9")
    for name in ("One/1", "Two/1"):
        calling(files, name, 0)
    return files


def codes(verdict: StackCheck) -> list[str]:
    return [f.code for f in (*verdict.findings, *(f for m in verdict.modules for f in m.findings))]


def test_providers_are_judged_whenever_the_stack_is(above: StackFiles, generation: Path) -> None:
    (verdict,) = judged(above)
    assert (verdict.ok, codes(verdict)) == (True, [])
    (generation / "mpi/lib/libfabric/libefa-fi.so").unlink()
    (verdict,) = judged(above)
    assert (verdict.ok, codes(verdict)) == (False, ["generation-incomplete"])
    assert "libefa-fi.so" in verdict.findings[0].message


def test_a_library_that_a_provider_needs_is_judged(above: StackFiles, generation: Path) -> None:
    (generation / "mpi/lib/mpigraft-libverbs.so.1").unlink()
    (verdict,) = judged(above)
    assert not verdict.ok
    closed = {f for m in verdict.modules for f in m.findings}
    assert {f.code for f in closed} == {"stack-plugins-closed"}
    assert {f.message for f in closed} == {
        "1 of 2 plugins open on the host and not in the stack: libverbs-fi.so"
    }


def test_a_start_is_planned_anew_when_files_of_the_generation_are_gone(
    above: StackFiles, generation: Path
) -> None:
    watched = {*map(os.path.realpath, examine_stack(above.root).generation_folders)}
    assert watched == {f"{generation}/{name}" for name in ("lib", "mpi/lib", "mpi/lib/libfabric")}


def test_a_deleted_generation_is_no_empty_override(above: StackFiles, generation: Path) -> None:
    shutil.rmtree(generation)
    (verdict,) = judged(above)
    assert (verdict.ok, codes(verdict)) == (False, ["generation-incomplete"])
    assert check_stack_of(str(above.root), "", None, as_json=False) == 1


def test_advice_on_a_network_library_is_not_of_an_mpi(
    stack: StackFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    calling(stack, "New/1", 1)
    (verdict,) = judged(stack)
    texts = [f"{f.message} {f.why} {f.fix}" for m in verdict.modules for f in m.findings]
    assert texts
    assert not any("host MPI" in text for text in texts)
    assert all(matches(text, "stack-network-unfit", library="libfabric") for text in texts)
    assert check_stack_of(str(stack.root), "", None, as_json=True) == 1
    schema = Path(mpigraft.__file__).parent / "report/schemas/check-stack.json"
    jsonschema.validate(json.loads(capsys.readouterr().out), json.loads(schema.read_text()))


@pytest.mark.parametrize(
    ("bindings", "request_"),
    [
        ((LIBFABRIC,), "--mpi openmpi@5 --replace libfabric"),
        (("libucp.so.0", "libuct.so.0"), "--mpi openmpi@5 --replace ucx"),
        (("libmpi.so.40", "libmpi_mpifh.so.40"), "--mpi openmpi@5"),
    ],
)
def test_what_is_injected_anew_is_what_was(bindings: tuple[str, ...], request_: str) -> None:
    record = GenerationRecord(1, 0, "", "openmpi@5", "", bindings, (SourceFile("/gone", "0"),), ())
    assert record.request == request_
