"""How long `mpigraft check STACK` takes over ten thousand ELF files, and how much memory.

    python evaluation/stack_speed.py [--files N] [--mpi SPEC] [--keep FOLDER]

Makes a stack in EasyBuild's layout with an override: gcc links the files of one module, and those
of the others are copies in which names and search paths of equal length are exchanged, so that all
are real ELF files and each module depends on others. Of 40 files of a module 12 are programs that
need MPI, 4 are programs that do not, 24 are libraries. Then the command runs as a user starts it,
in a process of its own, with the page cache warm; CPU seconds, seconds by the clock, and the peak
of its memory are printed for each pass.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PER_MODULE, MPI_PROGRAMS, PROGRAMS, LIBRARIES = 40, 12, 4, 24
NEIGHBOURS = 24  # modules in each search path
EXPORTS = 120  # functions of a library
PASSES = 3
OVERRIDE = "host_injections/2025/software/linux/x86_64/rpath_overrides/OpenMPI/system"
CALLS = (
    "Init", "Finalize", "Comm_rank", "Comm_size", "Send", "Recv", "Bcast", "Allreduce", "Barrier",
)  # fmt: skip


def library_name(module: str, number: int) -> str:
    return f"libm{module}x{number:02}.so.1"


def linked(path: Path, source: str, flags: list[str], needs: list[Path]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    words = ["gcc", "-O0", "-o", str(path), "-x", "c", "-", "-x", "none", "-Wl,--no-as-needed"]
    words += ["-Wl,--allow-shlib-undefined", *flags, *map(str, needs)]
    subprocess.run(words, input=source.encode(), check=True)
    return path


def search_path(root: Path, mpi: Path) -> list[str]:
    """What EasyBuild's wrappers give: overrides, own folders, those of dependencies. Module 9NNN
    stands for the NNNth neighbour."""
    others = [f"{root}/software/App9{n:03}/1.0/lib" for n in range(NEIGHBOURS)]
    site = [f"{root}/{OVERRIDE}/lib", f"{root}/{OVERRIDE}/lib64"]
    whole = [*site, "$ORIGIN/../lib", "$ORIGIN/../lib64", "$ORIGIN", *others, str(mpi.parent)]
    return ["-Wl,--disable-new-dtags", f"-Wl,-rpath,{':'.join(whole)}"]


def templates(root: Path, work: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of module 0000, with their places in a module."""
    mpi = linked(
        root / "software/OpenMPI/4.1.6/lib/libmpi.so.40",
        "".join(f"int MPI_{name}(void) {{ return 0; }}\n" for name in CALLS),
        ["-shared", "-fPIC", "-Wl,-soname,libmpi.so.40"],
        [],
    )
    flags = search_path(root, mpi)
    libraries: list[Path] = []
    for number in range(LIBRARIES):
        source = "".join(f"int f{number}_{n}(int i) {{ return i; }}\n" for n in range(EXPORTS))
        neighbour = linked(
            work / library_name(f"9{number:03}", 0), "", ["-shared", "-fPIC",
            f"-Wl,-soname,{library_name(f'9{number:03}', 0)}"], [],
        )  # fmt: skip
        needs = [*libraries[-2:], neighbour, *([mpi] if number % 6 == 5 else [])]
        name = library_name("0000", number)
        own = ["-shared", "-fPIC", f"-Wl,-soname,{name}", *flags]
        libraries.append(linked(work / name, source, own, needs if number else needs[:-1]))
        yield libraries[-1], f"lib/{name}"
    for number in range(MPI_PROGRAMS + PROGRAMS):
        needs_mpi = number < MPI_PROGRAMS
        used = libraries[number % 6 :: 3] if needs_mpi else libraries[:2]
        calls = [f"MPI_{name}" for name in CALLS] if needs_mpi else []
        for one in used:
            of = int(one.name[9:11])
            calls += [f"f{of}_{n}" for n in range(0, EXPORTS, 4)]
        text = "".join(f"extern int {c}();\n" for c in calls)
        text += f"int main(void) {{ return {' + '.join(f'{c}(0)' for c in calls)}; }}\n"
        path = linked(work / f"prog{number}", text, flags, [*used, *([mpi] if needs_mpi else [])])
        yield path, f"bin/prog{number}"


def make(root: Path, files: int) -> int:
    """Make the stack; give the number of its files."""
    modules = files // PER_MODULE
    with tempfile.TemporaryDirectory() as work:
        made = [(path.read_bytes(), place) for path, place in templates(root, Path(work))]
    for module in range(modules):
        names = {b"m0000x": b"m%04dx" % module, b"App0000": b"App%04d" % module}
        for n in range(NEIGHBOURS):
            other = b"%04d" % ((module - n - 1) % modules)
            names |= {b"App9%03d" % n: b"App" + other, b"m9%03dx" % n: b"m" + other + b"x"}
        for data, place in made:
            own = data
            for old, new in names.items():
                own = own.replace(old, new)
            path = root / f"software/App{module:04}/1.0" / place.replace("m0000x", f"m{module:04}x")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(own)
            path.chmod(0o755)
    return modules * len(made) + 1


def measured(words: list[str]) -> tuple[float, float, float, int, bytes]:
    """(CPU seconds, seconds by the clock, MiB at the peak, exit code, output) of a command."""
    begun = time.perf_counter()
    started = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert started.stdout is not None
    output = started.stdout.read()
    _, status, used = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    cpu = used.ru_utime + used.ru_stime
    wall = time.perf_counter() - begun
    return cpu, wall, used.ru_maxrss / 1024, started.returncode, output


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--mpi", default="openmpi")
    parser.add_argument("--keep", type=Path, help="make the stack here, or use the one that is")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = given.keep.resolve() if given.keep else Path(temporary)
        if not (root / "software").is_dir():
            begun = time.perf_counter()
            count = make(root, given.files)
            print(f"{count} files made in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
        words = [sys.executable, "-m", "mpigraft.cli.main", "check", "--json", "--mpi", given.mpi]
        for _ in range(PASSES):
            cpu, wall, peak, code, output = measured([*words, str(root)])
            stack = json.loads(output)["stack"]
            print(f"{stack['elf_files']} ELF files, {stack['programs']} need MPI: {cpu:.1f} s CPU, "
                  f"{wall:.1f} s, {peak:.0f} MiB, exit code {code}")  # fmt: skip


if __name__ == "__main__":
    main()
