"""Which files of a stack need MPI, and which overrides they search."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Family
from mpigraft.graft.stack.reading import read_stack
from tests.builders.elf import compiled, program
from tests.builders.stacks import MPI, StackFiles, libmpi, rpath, runpath

OVERRIDE = "/site/host_injections/2025/software/linux/x86_64/rpath_overrides/OpenMPI/system"
EESSI = (f"{OVERRIDE}/lib", f"{OVERRIDE}/lib64")


@pytest.fixture
def stack(tmp_path: Path) -> StackFiles:
    files = StackFiles(tmp_path / "stack", EESSI)
    files.program("GROMACS/2024.1-foss-2023b")
    files.program("OSU/7.3-gompi-2023b")
    return files


def test_programs_overrides_and_loader_are_read(stack: StackFiles) -> None:
    tree = read_stack(stack.root)
    assert [p.module for p in tree.programs] == ["GROMACS/2024.1-foss-2023b", "OSU/7.3-gompi-2023b"]
    (slot,) = tree.slots
    assert (slot.path, slot.folders, slot.family) == (OVERRIDE, EESSI, Family.OPENMPI)
    assert slot.names == ("lib", "lib64")
    assert (slot.programs, slot.modules, tree.searching(slot)) == (2, 2, tree.programs)
    assert all(p.executable and p.mpi == (MPI,) and not p.runpath for p in tree.programs)
    assert tree.loader
    assert tree.loader.root == "/"
    assert tree.elf_files == 3


def test_of_the_folders_given_to_easybuild_each_is_an_override(tmp_path: Path) -> None:
    files = StackFiles(tmp_path / "apps", ["/site/a", "/site/b/lib"])
    files.program("One/1")
    files.program("Two/2")
    slots = read_stack(files.root).slots
    assert [(s.path, s.names) for s in slots] == [("/site/a", ("",)), ("/site/b", ("lib",))]


def test_an_accelerators_programs_search_two_overrides(stack: StackFiles) -> None:
    gpu = OVERRIDE.replace("/rpath_overrides", "/accel/nvidia/cc80/rpath_overrides")
    accel = StackFiles(stack.root / "accel/nvidia/cc80", [f"{gpu}/lib", f"{gpu}/lib64", *EESSI])
    accel.program("OSU-CUDA/7.3")
    accel.program("LAMMPS/1")
    tree = read_stack(stack.root)
    assert {p.module: p.slots for p in tree.programs}["OSU-CUDA/7.3"] == (gpu, OVERRIDE)
    assert [s.path for s in tree.slots] == [gpu, OVERRIDE]


def test_an_override_below_the_root_is_no_part_of_the_stack(tmp_path: Path) -> None:
    place = tmp_path / "stack/overrides/MPI"
    files = StackFiles(tmp_path / "stack", [place / "lib"])
    files.program("One/1")
    files.program("Two/1")
    assert [s.path for s in read_stack(files.root).slots] == [str(place)]
    libmpi(place / "lib")
    compiled(place / "lib/plugin.so", needs=[files.mpi])
    tree = read_stack(files.root)
    assert [s.path for s in tree.slots] == [str(place)]
    assert [p.module for p in tree.programs] == ["One/1", "Two/1"]


def test_a_folder_that_one_program_searches_is_no_override(stack: StackFiles) -> None:
    stack.program("Slip/1", overrides=["/builds/me/lib", *EESSI])
    tree = read_stack(stack.root)
    assert [s.path for s in tree.slots] == [OVERRIDE]
    assert {p.module: p.slots for p in tree.programs}["Slip/1"] == (OVERRIDE,)


def test_a_runpath_is_no_override(tmp_path: Path) -> None:
    mpi = libmpi(tmp_path / "lib")
    for name in ("a", "b"):
        program(tmp_path / "bin" / name, flags=runpath("/site/lib", mpi.parent), needs=[mpi])
    tree = read_stack(tmp_path)
    assert not tree.slots
    assert [p.runpath for p in tree.programs] == [True, True]


def test_software_of_another_tree_is_no_override(tmp_path: Path) -> None:
    other = tmp_path / "site/software/OpenMPI/4.1.6"
    (other / "easybuild").mkdir(parents=True)
    (other / "easybuild/easybuild-OpenMPI-4.1.6.log").touch()
    files = StackFiles(tmp_path / "mine", [*EESSI, other / "lib"])
    files.program("One/1")
    files.program("Two/1")
    assert [s.path for s in read_stack(files.root).slots] == [OVERRIDE]


def test_folders_of_the_system_are_no_overrides(tmp_path: Path) -> None:
    files = StackFiles(tmp_path / "apps", ["/usr/local/lib", "/lib64", *EESSI])
    files.program("One/1")
    files.program("Two/1")
    assert [s.path for s in read_stack(files.root).slots] == [OVERRIDE]


def test_a_stack_without_overrides_has_none(tmp_path: Path) -> None:
    files = StackFiles(tmp_path / "apps")
    files.program("One/1")
    tree = read_stack(files.root)
    assert (tree.slots, tree.programs[0].slots) == ((), ())


def test_libraries_of_mpi_that_only_libraries_of_a_program_need_count_too(
    stack: StackFiles,
) -> None:
    """A C program that links a Fortran library does not start without that one's bindings."""
    fortran = stack.mpi.with_name("libmpi_mpifh.so.40")
    compiled(fortran, soname=fortran.name)
    halo = stack.library("Halo/1/lib/libhalo.so", "libhalo.so", fortran)
    stack.program("Model/1", stack.mpi, halo)
    tree = read_stack(stack.root)
    (model,) = [p for p in tree.programs if p.module == "Model/1"]
    assert set(model.mpi) == {MPI, fortran.name}
    assert tree.needed(model.machine)[fortran.name] == 1


def test_programs_that_need_mpi_through_libraries_count(stack: StackFiles) -> None:
    hdf5 = stack.library("HDF5/1/lib/libhdf5.so.310", "libhdf5.so.310", stack.mpi)
    stack.program("h5tool/1", hdf5)
    stack.program("plain/1", compiled(stack.root / "software/zlib/1/lib/libz.so", soname="libz.so"))
    programs = {p.module: p for p in read_stack(stack.root).programs}
    assert programs["h5tool/1"].mpi == (MPI,)
    assert "plain/1" not in programs


def test_modules_of_python_count_and_parts_of_mpi_do_not(stack: StackFiles) -> None:
    site = "mpi4py/4/lib/python3.11/site-packages/mpi4py"
    module = stack.library(f"{site}/MPI.cpython-311-x86_64-linux-gnu.so", None, stack.mpi)
    stack.library("OpenMPI/4.1.6/lib/openmpi/mca_pml_ob1.so", None, stack.mpi)
    program(stack.root / "software/OpenMPI/4.1.6/bin/ompi_info", needs=[stack.mpi])
    libraries = [p for p in read_stack(stack.root).programs if not p.executable]
    assert [(p.path, p.module) for p in libraries] == [(str(module), "mpi4py/4")]


def test_libraries_of_one_name_count_each(stack: StackFiles) -> None:
    """A program loads one of the two; what of the other?"""
    first = stack.library("HDF5/1/lib/libhdf5.so.310", "libhdf5.so.310", stack.mpi)
    second = stack.library("HDF5/2/lib/libhdf5.so.310", "libhdf5.so.310", stack.mpi)
    stack.program("h5tool/1", first)
    paths = [p.path for p in read_stack(stack.root).programs if not p.executable]
    assert paths == [str(first), str(second)]


def test_a_program_stands_for_itself_alone(stack: StackFiles) -> None:
    path = stack.root / "software/OSU/7.3-gompi-2023b/bin/osu"
    tree = read_stack(path)
    assert (tree.only, tree.root) == (str(path), str(stack.root))
    assert [(p.path, p.module) for p in tree.programs] == [(str(path), "OSU/7.3-gompi-2023b")]
    assert [s.path for s in tree.slots] == [OVERRIDE]


def test_one_installation_of_a_stack_is_a_stack(stack: StackFiles) -> None:
    tree = read_stack(stack.root / "software/OSU/7.3-gompi-2023b")
    assert [p.module for p in tree.programs] == ["OSU/7.3-gompi-2023b"]
    assert [s.path for s in tree.slots] == [OVERRIDE]


def test_eessis_tree_below_another_folder_software(tmp_path: Path) -> None:
    tree = tmp_path / "versions/2023.06/software/linux/x86_64/generic"
    files = StackFiles(tree, [tree / "rpath_overrides/OpenMPI/system/lib"])
    files.program("One/1")
    library = files.library("Two/1/share/software/x/y/plugin.so", None, files.mpi)
    for root in (tree.parents[4], tree.parents[2], tree, tree / "software"):
        stack = read_stack(root)
        assert {p.path: p.module for p in stack.programs}[str(library)] == "Two/1"
        assert stack.modules == ("One/1", "Two/1")
        assert [slot.path for slot in stack.slots] == [str(tree / "rpath_overrides/OpenMPI/system")]


def test_spacks_folders_name_modules(tmp_path: Path) -> None:
    place = tmp_path / "opt/spack/linux-zen3"
    (tmp_path / "opt/spack/.spack-db").mkdir(parents=True)
    mpi = libmpi(place / "openmpi-5.0.8-abcdefghijklmnopqrstuvwxyz234567/lib")
    path = place / "osu-micro-benchmarks-7.5-zyxwvutsrqponmlkjihgfedcba765432/bin/osu"
    program(path, flags=rpath(path.parent / "../lib", mpi.parent), needs=[mpi])
    for given in (tmp_path / "opt/spack", path):
        tree = read_stack(given)
        assert [p.module for p in tree.programs] == ["osu-micro-benchmarks/7.5"]
        assert not tree.slots


@pytest.mark.parametrize(
    ("path", "module"),
    [("gromacs/2024/bin/gmx", "gromacs/2024"), ("bin/gmx", "tree"), ("gmx", "tree"),
     ("solver/bin/gmx", "solver")],
)  # fmt: skip
def test_other_layouts_name_modules_by_folders(tmp_path: Path, path: str, module: str) -> None:
    mpi = libmpi(tmp_path / "mpi")
    program(tmp_path / "tree" / path, needs=[mpi])
    (one,) = read_stack(tmp_path / "tree").programs
    assert one.module == module


def test_odd_files_are_no_obstacle(stack: StackFiles) -> None:
    place = stack.root / "software/OSU/7.3-gompi-2023b/bin"
    before = read_stack(stack.root)
    os.link(place / "osu", place / "osu_again")
    (place / "same").symlink_to("osu")
    (place / "loop").symlink_to("loop")
    (place / "folder").symlink_to("..")
    (place / "dangling").symlink_to("nowhere")
    os.mkfifo(place / "fifo", 0o755)
    (place / "script").write_text("#!/bin/sh\n" + "exit 0\n" * 20)
    (place / "script").chmod(0o755)
    (place / "empty.so").touch()
    (place / "not executable").write_bytes((place / "osu").read_bytes())
    assert read_stack(stack.root) == before
    (place / "cut.so").write_bytes((place / "osu").read_bytes()[:80])
    assert read_stack(stack.root).unread == (str(place / "cut.so"),)
    data = bytearray((place / "osu").read_bytes())
    data[18] = 183  # aarch64
    (place / "arm").write_bytes(data)
    (place / "arm").chmod(0o755)
    programs = read_stack(stack.root).programs
    assert [p.machine for p in programs if p.path.endswith("/arm")] == ["aarch64"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_named(stack: StackFiles) -> None:
    closed = stack.root / "software/OSU"
    closed.chmod(0)
    try:
        assert read_stack(stack.root).unread == (str(closed),)
    finally:
        closed.chmod(0o755)


def test_a_stack_behind_a_link_and_a_relative_path(
    stack: StackFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a link").symlink_to(stack.root)
    monkeypatch.chdir(tmp_path)
    tree = read_stack("a link")
    assert (tree.root, tree.real) == (str(tmp_path / "a link"), str(stack.root))
    assert tree.programs == read_stack(stack.root).programs


def test_what_is_no_stack_is_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    text = tmp_path / "text"
    text.write_text("no program")
    for path, code in ((loop, "stack-link-loop"), (text, "stack-no-elf"),
                       (tmp_path / "absent", "file-unusable")):  # fmt: skip
        with pytest.raises(UsageError) as error:
            read_stack(path)
        assert error.value.code == code


def test_progress_counts_the_files(stack: StackFiles) -> None:
    for number in range(120):
        shutil.copy(stack.mpi, stack.mpi.parent / f"libother.so.{number}")
    counts: list[int] = []
    tree = read_stack(stack.root, counts.append)
    assert counts == [100, tree.elf_files]
