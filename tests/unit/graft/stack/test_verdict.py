"""A host MPI under all programs of a stack: what would load it, and what else would change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.model import Abi, Family, Level, MpiAbi
from mpigraft.graft import read_abi
from mpigraft.graft.stack.overrides import chosen_slots
from mpigraft.graft.stack.reading import read_stack
from mpigraft.graft.stack.stack_check import check_stack
from mpigraft.graft.stack.values import Fate, StackCheck
from tests.builders.elf import compiled, program
from tests.builders.stacks import CALLS, MPI, StackFiles, codes, files_of, host, libmpi, rpath

HWLOC = "".join(f"int hwloc_{n}(void) {{ return 0; }}\n" for n in "abcdefgh")


def checked(files: StackFiles, abi: MpiAbi, *more: Path) -> StackCheck:
    return check_stack(read_stack(files.root), abi, files_of(abi, *more))  # type: ignore[arg-type]


def fates(verdict: StackCheck) -> dict[str, str]:
    return {p.module: p.fate for module in verdict.modules for p in module.programs}


@pytest.fixture
def stack(tmp_path: Path) -> StackFiles:
    files = StackFiles(tmp_path / "stack", [tmp_path / "site/lib", tmp_path / "site/lib64"])
    files.program("One/1")
    files.program("Two/1")
    return files


@pytest.fixture
def openmpi(tmp_path: Path) -> MpiAbi:
    return host(libmpi(tmp_path / "host"))


def test_all_programs_would_load_it(stack: StackFiles, openmpi: MpiAbi) -> None:
    verdict = checked(stack, openmpi)
    assert verdict.ok
    assert (verdict.count(Fate.FITS), verdict.count(Fate.REFUSED)) == (2, 0)
    assert [module.name for module in verdict.modules] == ["One/1", "Two/1"]
    assert not codes(verdict)


def test_what_is_injected_already_is_not_what_it_is_compared_with(
    stack: StackFiles, openmpi: MpiAbi, tmp_path: Path
) -> None:
    store = tmp_path / ".mpigraft-site/generations/1"
    libmpi(store / "lib")
    compiled(store / "lib/libz.so.1", soname="libz.so.1")
    (tmp_path / "site").symlink_to(".mpigraft-site/generations/1")
    stack.program("Zip/1", stack.library("zlib/1/lib/libz.so.1", "libz.so.1"), stack.mpi)
    verdict = checked(stack, openmpi)
    assert verdict.ok
    assert not codes(verdict)


def test_an_override_that_is_somebodys_data_is_refused(
    stack: StackFiles, openmpi: MpiAbi, tmp_path: Path
) -> None:
    (tmp_path / "site/lib").mkdir(parents=True)
    assert checked(stack, openmpi).ok
    (tmp_path / "site/lib/results.dat").touch()
    verdict = checked(stack, openmpi)
    assert not verdict.ok
    assert codes(verdict) == {"stack-override-foreign"}
    assert verdict.findings[0].evidence == (str(tmp_path / "site/lib/results.dat"),)


def test_a_loop_of_links_is_refused(stack: StackFiles, openmpi: MpiAbi, tmp_path: Path) -> None:
    (tmp_path / "site").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to("site")
    verdict = checked(stack, openmpi)
    assert not verdict.ok
    assert codes(verdict) == {"stack-override-loop"}


def test_programs_of_another_family_stay_as_they_are(
    stack: StackFiles, openmpi: MpiAbi, tmp_path: Path
) -> None:
    mpich = libmpi(stack.root / "software/MPICH/4/lib", "libmpi.so.12")
    stack.program("Three/1", mpich)
    verdict = checked(stack, openmpi)
    assert verdict.ok
    assert fates(verdict)["Three/1"] == Fate.KEPT
    other = host(libmpi(tmp_path / "mpich", "libmpi.so.12"), Family.MPICH, Abi.MPICH)
    verdict = checked(stack, other)
    assert fates(verdict) == {"One/1": "kept", "Two/1": "kept", "Three/1": "fits"}


def test_a_stack_of_another_family_is_refused(stack: StackFiles, tmp_path: Path) -> None:
    mpich = host(libmpi(tmp_path / "mpich", "libmpi.so.12"), Family.MPICH, Abi.MPICH)
    verdict = checked(stack, mpich)
    assert not verdict.ok
    assert codes(verdict) == {"stack-other-abi"}


def test_a_newer_glibc_than_the_stack_has_is_refused(stack: StackFiles, tmp_path: Path) -> None:
    def libc(folder: Path, *nodes: str) -> Path:
        script = folder / "nodes"
        folder.mkdir(parents=True)
        script.write_text("".join(f"{n} {{ global: f{i}; }};\n" for i, n in enumerate(nodes)))
        text = "".join(f"int f{i}(void) {{ return 0; }}\n" for i, _ in enumerate(nodes))
        flags = [f"-Wl,--version-script={script}"]
        return compiled(folder / "libc.so.6", text, flags=flags, soname="libc.so.6")

    old = libc(stack.root / "software/glibc/2/lib", "GLIBC_2.2.5")
    new = libc(tmp_path / "new", "GLIBC_2.2.5", "GLIBC_2.99")
    for name in ("Three/1", "Four/1"):
        place = stack.root / "software" / name / "bin/solve"
        flags = rpath(tmp_path / "site/lib", old.parent, stack.mpi.parent)
        program(place, CALLS, flags=flags, needs=[old, stack.mpi])
    text = "int MPI_Init(void) { return 0; }\nextern int f1(void);\nint (*use)(void) = f1;\n"
    needs = compiled(tmp_path / "host/libmpi.so.40", text, needs=[new], soname="libmpi.so.40",
                     flags=rpath(new.parent))  # fmt: skip
    verdict = checked(stack, host(needs))
    assert not verdict.ok
    assert "stack-glibc-old" in codes(verdict)
    assert fates(verdict)["Three/1"] == Fate.REFUSED


def test_a_missing_fortran_library_is_refused(stack: StackFiles, openmpi: MpiAbi) -> None:
    flags = stack.path(*stack.overrides)
    text = "void mpi_init_(int *e) { *e = 0; }\n"
    library = stack.mpi.parent / "libmpi_mpifh.so.40"
    fortran = compiled(library, text, flags=flags, needs=[stack.mpi], soname=library.name)
    text = "extern void mpi_init_(int *);\nvoid (*use)(int *) = mpi_init_;\n"
    place = stack.root / "software/Fort/1/bin/solve"
    program(place, text, flags=flags, needs=[fortran, stack.mpi])
    verdict = checked(stack, openmpi)
    assert not verdict.ok
    assert fates(verdict) == {"One/1": "fits", "Two/1": "fits", "Fort/1": "refused"}
    assert "fortran-absent" in codes(verdict)


def test_a_symbol_that_the_host_lacks_is_refused(stack: StackFiles, openmpi: MpiAbi) -> None:
    text = "int MPI_Init(void) { return 0; }\nint MPI_New(void) { return 0; }\n"
    mpi = compiled(stack.mpi, text, soname=stack.mpi.name)
    place = stack.root / "software/New/1/bin/solve"
    flags = stack.path(*stack.overrides)
    calls = CALLS + "extern int MPI_New(void);\nint (*more)(void) = MPI_New;\n"
    program(place, calls, flags=flags, needs=[mpi])
    verdict = checked(stack, openmpi)
    assert fates(verdict) == {"One/1": "fits", "Two/1": "fits", "New/1": "refused"}
    assert "mpi-symbols" in codes(verdict)


def test_a_library_that_is_built_into_the_mpi_and_loaded_by_the_stack(
    stack: StackFiles, tmp_path: Path
) -> None:
    """EESSI's post of 2025: hwloc 2.9.1 in the MPI, 2.9.2 in the stack."""
    text = "int MPI_Init(void) { return 0; }\n" + HWLOC
    abi = host(compiled(tmp_path / "host/libmpi.so.40", text, soname="libmpi.so.40"))
    assert checked(stack, abi).ok
    place = stack.root / "software/hwloc/2.9.2/lib/libhwloc.so.15"
    hwloc = compiled(place, HWLOC, soname="libhwloc.so.15")
    flags = [*stack.path(*stack.overrides, hwloc.parent)]
    path = stack.root / "software/Bound/1/bin/solve"
    program(path, CALLS, flags=flags, needs=[hwloc, stack.mpi])
    verdict = checked(stack, abi)
    (finding,) = [f for module in verdict.modules for f in module.findings]
    assert finding.code == "stack-library-twice"
    assert "libhwloc.so.15" in finding.message
    assert "8 symbols" in finding.message
    assert verdict.ok


def test_a_library_that_would_come_from_the_override_is_refused(
    stack: StackFiles, openmpi: MpiAbi, tmp_path: Path
) -> None:
    stack.program("Zip/1", stack.library("zlib/1/lib/libz.so.1", "libz.so.1"), stack.mpi)
    stack.program("Zap/1", stack.root / "software/zlib/1/lib/libz.so.1", stack.mpi)
    other = compiled(tmp_path / "host/libz.so.1", "int newer;\n", soname="libz.so.1")
    for path in stack.root.glob("software/Z*/1/bin/*"):
        place = [*stack.overrides, str(stack.root / "software/zlib/1/lib"), str(stack.mpi.parent)]
        libz = stack.root / "software/zlib/1/lib/libz.so.1"
        program(path, CALLS, flags=rpath(*place), needs=[libz, stack.mpi])
    verdict = checked(stack, openmpi, other)
    assert codes(verdict) == {"stack-library-changed"}
    assert fates(verdict)["Zip/1"] == Fate.REFUSED
    changes = [c for m in verdict.modules for p in m.programs for c in p.changes]
    was = str(stack.root / "software/zlib/1/lib/libz.so.1")
    assert {(c.name, c.before) for c in changes} == {("libz.so.1", was)}


def test_another_override_that_comes_first_and_is_filled(openmpi: MpiAbi, tmp_path: Path) -> None:
    files = StackFiles(tmp_path / "stack", [tmp_path / "first/lib", tmp_path / "site/lib"])
    files.program("One/1")
    files.program("Two/1")
    libmpi(tmp_path / "first/lib")
    stack = read_stack(files.root)
    contents = files_of(openmpi)
    site = [slot for slot in stack.slots if slot.path == str(tmp_path / "site")]
    verdict = check_stack(stack, openmpi, contents, slots=site)  # type: ignore[arg-type]
    assert codes(verdict) == {"stack-other-override"}
    assert (verdict.count(Fate.KEPT), verdict.ok) == (2, False)
    verdict = check_stack(stack, openmpi, contents)  # type: ignore[arg-type]
    assert verdict.count(Fate.REFUSED) == 0
    assert codes(verdict) == {"stack-override-foreign"}


def test_what_a_site_put_into_one_override_refuses_nothing_of_another(
    openmpi: MpiAbi, tmp_path: Path
) -> None:
    """An accelerator's programs may have another MPI than all others, but no mixture of both."""
    gpu, site = (tmp_path / f"rpath_overrides/{name}/lib" for name in ("gpu", "site"))
    files = StackFiles(tmp_path / "stack", [site])
    files.program("One/1")
    files.program("Two/1")
    files.program("Cuda/1", overrides=[gpu, site])
    libmpi(gpu)
    verdict = checked(files, openmpi)
    assert verdict.ok
    assert fates(verdict) == {"One/1": "fits", "Two/1": "fits", "Cuda/1": "kept"}
    assert codes(verdict) == {"stack-other-override"}
    fortran = compiled(tmp_path / "host/libmpi_mpifh.so.40", soname="libmpi_mpifh.so.40")
    place = files.root / "software/Mixed/1/bin/solve"
    program(place, CALLS, flags=files.path(gpu, site), needs=[fortran, files.mpi])
    verdict = checked(files, openmpi, fortran)
    assert fates(verdict)["Mixed/1"] == Fate.REFUSED


def test_a_program_that_is_broken_already_refuses_nothing(
    stack: StackFiles, openmpi: MpiAbi
) -> None:
    gone = stack.library("gone/1/lib/libgone.so", "libgone.so")
    stack.program("Broken/1", gone, stack.mpi)
    gone.unlink()
    verdict = checked(stack, openmpi)
    assert verdict.ok
    assert codes(verdict) == {"stack-broken-before"}


def test_without_overrides_the_check_says_what_remains(tmp_path: Path, openmpi: MpiAbi) -> None:
    files = StackFiles(tmp_path / "stack")
    files.program("One/1")
    verdict = checked(files, openmpi)
    assert not verdict.ok
    (finding,) = verdict.findings
    assert finding.code == "stack-overrides-none"
    assert "module file" in finding.fix


def test_a_stack_without_mpi_is_said_to_have_none(tmp_path: Path, openmpi: MpiAbi) -> None:
    compiled(tmp_path / "stack/lib/libz.so", soname="libz.so")
    verdict = check_stack(read_stack(tmp_path / "stack"), openmpi, files_of(openmpi))  # type: ignore[arg-type]
    assert codes(verdict) == {"stack-no-program"}
    assert not verdict.ok


def test_programs_of_one_module_are_judged_each_for_itself(
    stack: StackFiles, openmpi: MpiAbi
) -> None:
    """One that does not fit refuses no other of its module."""
    text = "int MPI_Init(void) { return 0; }\nint MPI_New(void) { return 0; }\n"
    mpi = compiled(stack.mpi, text, soname=stack.mpi.name)
    calls = CALLS + "extern int MPI_New(void);\nint (*more)(void) = MPI_New;\n"
    path = stack.root / "software/One/1/bin/other"
    program(path, calls, flags=stack.path(*stack.overrides), needs=[mpi])
    (one, _) = checked(stack, openmpi).modules
    assert {Path(p.path).name: p.fate for p in one.programs} == {"one": "fits", "other": "refused"}


@pytest.mark.parametrize(
    ("names", "ok"),
    [
        ((), False), (("New/1",), True), (("N*/1",), True), (("solve",), True),
        (("One/1",), False), (("*",), True),
    ],
)  # fmt: skip
def test_programs_that_do_not_fit_are_accepted_by_name(
    stack: StackFiles, openmpi: MpiAbi, names: Sequence[str], ok: bool
) -> None:
    """One misfit refuses all others, unless it is named."""
    text = "int MPI_Init(void) { return 0; }\nint MPI_New(void) { return 0; }\n"
    mpi = compiled(stack.mpi, text, soname=stack.mpi.name)
    calls = CALLS + "extern int MPI_New(void);\nint (*more)(void) = MPI_New;\n"
    place = stack.root / "software/New/1/bin/solve"
    program(place, calls, flags=stack.path(*stack.overrides), needs=[mpi])
    verdict = checked(stack, openmpi)
    assert not verdict.ok
    assert verdict.ok_without(names) is ok


def test_a_program_that_only_opens_libmpi_is_judged_too(stack: StackFiles, openmpi: MpiAbi) -> None:
    """By its name: of one that is opened by a path, or that the stack does not have, nothing is."""
    texts = {"Opens/1": "libmpi.so.40", "Path/1": "/opt/libmpi.so.40", "Other/1": "libmpi.so.12"}
    for module, text in texts.items():
        calls = "extern void *dlopen(const char *, int);\n"
        calls += f'void *use(void) {{ return dlopen("{text}", 1); }}\n'
        place = stack.root / f"software/{module}/bin/solve"
        program(place, calls, flags=[*stack.path(*stack.overrides), "-Wl,--no-as-needed", "-lc"])
    verdict = checked(stack, openmpi)
    assert fates(verdict) == {"One/1": "fits", "Two/1": "fits", "Opens/1": "fits"}
    assert verdict.ok


def test_progress_counts_programs(stack: StackFiles, openmpi: MpiAbi) -> None:
    steps: list[tuple[int, int]] = []
    check_stack(
        read_stack(stack.root), openmpi, files_of(openmpi),  # type: ignore[arg-type]
        checked=lambda done, of: steps.append((done, of)),
    )  # fmt: skip
    assert steps == [(1, 2), (2, 2), (2, 2)]


@pytest.mark.parametrize(
    ("searched", "chosen"),
    [
        ([["a", "b"], ["a", "b"]], ["a"]),
        ([["gpu", "b"], ["b"]], ["b"]),
        ([["a"], ["b"]], ["a", "b"]),
        ([["libfabric/system", "OpenMPI/system"]] * 2, ["OpenMPI/system"]),
        ([["MPICH/system", "a", "OpenMPI/system"], ["a"]], ["a", "OpenMPI/system"]),
        ([["ucx", "a"]] * 2, ["a"]),
        ([["MPICH/system"]] * 2, []),
    ],
)
def test_as_few_overrides_as_reach_all_are_filled(
    tmp_path: Path, openmpi: MpiAbi, searched: Sequence[Sequence[str]], chosen: Sequence[str]
) -> None:
    files = StackFiles(tmp_path / "stack")
    for number, names in enumerate(searched):
        overrides = [tmp_path / f"rpath_overrides/{name}/lib" for name in names]
        files.program(f"App{number}/1", overrides=overrides)
    slots = chosen_slots(read_stack(files.root), openmpi)
    assert [slot.path for slot in slots] == [f"{tmp_path}/rpath_overrides/{c}" for c in chosen]


def test_findings_have_levels(stack: StackFiles, openmpi: MpiAbi, tmp_path: Path) -> None:
    mpich = host(libmpi(tmp_path / "mpich", "libmpi.so.12"), Family.MPICH, Abi.MPICH)
    assert [f.level for f in checked(stack, mpich).findings] == [Level.ERROR]


@pytest.mark.parametrize("present", [True, False])
def test_an_mpi_without_the_program_that_it_starts_is_refused(
    stack: StackFiles, tmp_path: Path, present: bool
) -> None:
    """Open MPI 4 starts orted for a process that starts alone; Debian has it in another package."""
    rte = compiled(tmp_path / "host/lib/libopen-rte.so.40", soname="libopen-rte.so.40")
    mpi = compiled(
        tmp_path / "host/lib" / MPI,
        "int MPI_Init(void) { return 0; }\n",
        soname=MPI,
        needs=(rte,),
        flags=rpath("$ORIGIN"),
    )
    if present:
        program(tmp_path / "host/bin/orted", "", needs=(rte,))
    own = host(mpi)
    own = read_abi(replace(own.mpi, prefix=tmp_path / "host"))
    verdict = checked(stack, own)
    assert verdict.ok is present
    assert ("stack-alone" in codes(verdict)) is not present
