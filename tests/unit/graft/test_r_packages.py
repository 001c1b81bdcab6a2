"""Which packages a script of R loads, and which of their libraries need MPI."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.binary.image.folder import FolderRoot
from mpigraft.graft.guest.command import CommandKind, GuestCommand
from mpigraft.graft.guest.commands import command_of
from mpigraft.graft.guest.scripts.r_source import named_packages
from tests.builders.elf import compiled, program
from tests.builders.fits import codes, verdict
from tests.builders.guests import OPENMPI, a_guest, a_program, an_abi
from tests.builders.python_installs import LOADER, parts, put

R = "/usr/lib/R/bin/exec/R"
SITE = "usr/lib/R/site-library"
RMPI = f"/{SITE}/Rmpi/libs/Rmpi.so"
LAUNCH = 'library(Rmpi)\nsystem("mpirun -n 2 ./app")\n'


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("parts")
    found = parts(folder)
    libc = compiled(folder / "libc.so.6", "int execvp(void) {return 0;}", soname="libc.so.6")
    lib_r = compiled(folder / "libR.so", soname="libR.so")
    calls = "int execvp(void); int go(void) { return execvp(); }"
    return found | {
        "libc": libc,
        "rscript": program(folder / "rscript", calls, needs=[libc]),
        "lib_r": lib_r,
        "unfound": compiled(folder / "unfound.so", needs=[found["libmpi"], lib_r]),
    }


@pytest.fixture
def image(tmp_path: Path, built: Mapping[str, Path]) -> Path:
    """An image with R, Rmpi, a package that imports it, and others."""
    top = tmp_path / "image"
    put(top, {
        LOADER: "", "usr/lib/libc.so.6": "*libc", "usr/lib/libmpi.so.40": "*libmpi",
        "usr/bin/Rscript": "*rscript", R[1:]: "*rscript", "usr/bin/sh": "*program",
        "usr/bin/R": "#!/bin/sh\nR_HOME_DIR=/usr/lib/R\nexec ${R_HOME_DIR}/bin/exec/R\n",
        f"{SITE}/Rmpi/DESCRIPTION": "Package: Rmpi\nDepends: R (>= 2.15.1)\nImports: parallel\n",
        f"{SITE}/Rmpi/libs/Rmpi.so": "*mpi",
        f"{SITE}/doMPI/DESCRIPTION": "Depends: R (>= 2.1), foreach,\n        Rmpi (>= 0.5)\n",
        f"{SITE}/uses/DESCRIPTION": "Imports: utils,\n    doMPI\n",
        f"{SITE}/uses/NAMESPACE": "import(utils,\n  doMPI)\n",
        f"{SITE}/later/DESCRIPTION": "Imports: Rmpi\n", f"{SITE}/later/NAMESPACE": "export(f)\n",
        f"{SITE}/suggests/DESCRIPTION": "Suggests: Rmpi\n",
        f"{SITE}/plain/DESCRIPTION": "Package: plain\n", f"{SITE}/plain/libs/plain.so": "*plain",
        f"{SITE}/own/DESCRIPTION": "Package: own\n", f"{SITE}/own/libs/own.so": "*unfound",
        "opt/r/pbdMPI/DESCRIPTION": "Package: pbdMPI\n", "opt/r/pbdMPI/libs/pbdMPI.so": "*mpi",
        "job/a.R": "library(Rmpi)\n", "job/tool": "#!/usr/bin/env Rscript\nlibrary(Rmpi)\n",
        "job/launch.R": LAUNCH, "job/job.sh": "#!/bin/sh\nRscript /job/a.R\n",
    }, built)  # fmt: skip
    shutil.copy2(built["program"], top / "usr/bin/env")
    (top / "lib").symlink_to("usr/lib")
    (top / "bin").symlink_to("usr/bin")
    for name in ("usr/bin/R", "usr/bin/Rscript", "usr/bin/sh", "job/tool", "job/job.sh"):
        (top / name).chmod(0o755)
    return top


def of(image: Path, *words: str, **environment: str) -> GuestCommand:
    return command_of(FolderRoot(image), words, {"PATH": "/usr/bin", **environment}, "/job")


@pytest.mark.parametrize(
    "words",
    ["Rscript a.R", "Rscript --vanilla /job/a.R x", "./tool", "R --no-save -f a.R",
     "R CMD BATCH --vanilla a.R", "R --file=a.R --args 1", "Rscript -e library(Rmpi)", "./job.sh",
     "/usr/bin/Rscript launch.R"],
)  # fmt: skip
def test_words_that_start_r_name_its_script(words: str, image: Path) -> None:
    found = of(image, *words.split())
    assert (found.kind, found.program, found.certain) == (CommandKind.MPI, R, (RMPI,))


@pytest.mark.parametrize(
    ("code", "certain", "possible"),
    [
        ("library(doMPI)", [RMPI], []),
        ("uses::f()", [RMPI], []),
        ("library(later)", [], [RMPI]),
        ("if (nchar(x)) library(Rmpi)", [], [RMPI]),
        ("library(own)", [], [f"/{SITE}/own/libs/own.so"]),
    ],
)
def test_packages_are_followed_by_their_descriptions(
    code: str, certain: list[str], possible: list[str], image: Path
) -> None:
    found = of(image, "Rscript", "-e", code)
    assert found.kind is CommandKind.MPI
    assert (list(found.certain), list(found.possible)) == (certain, possible)


def test_libraries_of_r_are_found_by_its_start(image: Path, built: Mapping[str, Path]) -> None:
    library = f"/{SITE}/own/libs/own.so"
    put(image, {"usr/lib/R/lib/libR.so": "*lib_r"}, built)
    words = ("Rscript", "-e", "library(own)")
    assert of(image, *words).certain == (library,)


@pytest.mark.parametrize(("name", "refused"), [("libR.so", False), ("libRx.so", True)])
def test_a_check_leaves_the_libraries_of_r_to_its_start(name: str, refused: bool) -> None:
    guest = a_guest({"/opt/R": a_program(["libmpi.so.40", name])}, OPENMPI)
    assert ("library-missing" in codes(verdict(guest, an_abi("openmpi@5.0.11")))) is refused


@pytest.mark.parametrize("code", ["library(plain)", "library(suggests)", "library(absent)"])
def test_a_script_whose_packages_need_no_mpi_is_not_known(code: str, image: Path) -> None:
    found = of(image, "Rscript", "-e", code)
    assert (found.kind, found.certain, found.possible) == (CommandKind.UNKNOWN, (), ())


def test_packages_lie_where_variables_and_settings_of_r_say(image: Path) -> None:
    library = "/opt/r/pbdMPI/libs/pbdMPI.so"
    words = ("Rscript", "-e", "library(pbdMPI)")
    assert of(image, *words).kind is CommandKind.UNKNOWN
    for name in ("R_LIBS", "R_LIBS_USER", "R_LIBS_SITE"):
        assert of(image, *words, **{name: "/none:/opt/r"}).certain == (library,)
    put(image, {"usr/lib/R/etc/Renviron.site": "R_LIBS=${R_LIBS-'/usr/local/r:/opt/r'}\n"})
    assert of(image, *words).certain == (library,)
    put(image, {"opt/R/bin/R": "R_HOME_DIR='/opt/R/lib/R'\n"})
    (image / "opt/R/lib").mkdir()
    (image / "opt/r").rename(image / "opt/R/lib/R")
    (image / "opt/R/lib/R").rename(image / "opt/R/lib/library")
    (image / "opt/R/lib/R").mkdir()
    (image / "opt/R/lib/library").rename(image / "opt/R/lib/R/library")
    shutil.copy2(image / "usr/bin/Rscript", image / "opt/R/bin/Rscript")
    there = library.replace("/opt/r", "/opt/R/lib/R/library")
    assert of(image, "/opt/R/bin/Rscript", *words[1:]).certain == (there,)


@pytest.mark.parametrize(
    "code",
    [
        "library(Rmpi)", "library('Rmpi')", "require(package = \"Rmpi\")", "Rmpi::mpi.size()",
        'requireNamespace("Rmpi", quietly = TRUE)', "ok <- require(Rmpi)",
        "suppressPackageStartupMessages({\n  library(foreach)\n  library(Rmpi)\n})",
        "suppressMessages(library(Rmpi))", 'cat("rank", Rmpi::mpi.comm.rank(0), "\\n")',
        "f <- function(x) {\n x }\nlibrary(Rmpi)", "if (a) {\n b }\nlibrary(Rmpi)",
        "if (a)\n  b\nlibrary(Rmpi)", "f <- function(x) x + 1; library(Rmpi)",
        "x <- c(1, 2)  # it's\nlibrary(Rmpi)", 'cl <- makeCluster(2, type = "MPI")',
        "cl <- makeMPIcluster(2)", 'loadNamespace("Rmpi")', 'library("Rmpi", character.only = T)',
        "x[[1]] <- '('\nlibrary(Rmpi)",
    ],
)  # fmt: skip
def test_a_package_that_is_loaded_in_any_case(code: str) -> None:
    assert named_packages(code)["Rmpi"]


@pytest.mark.parametrize(
    "code",
    [
        "if (a) library(Rmpi)", "if (a)\n  library(Rmpi)", "if (a) {\n library(Rmpi)\n}",
        "if (a) b else library(Rmpi)", "if (a) {\n b\n} else {\n library(Rmpi) }",
        "f <- function(x)\n{\n library(Rmpi)\n}", "f <- function() Rmpi::mpi.size()",
        "sapply(x, \\(y) Rmpi::mpi.size())", "tryCatch(library(Rmpi), error = stop)",
        "tryCatch({\n library(Rmpi)\n}, error = stop)", 'if (!requireNamespace("Rmpi")) stop(1)',
        "for (i in x)\n  library(Rmpi)", "a && require(Rmpi)", "while (a) { library(Rmpi) }",
        "try(suppressMessages(library(Rmpi)))",
    ],
)  # fmt: skip
def test_a_package_that_is_loaded_on_a_condition(code: str) -> None:
    assert named_packages(code) == {"Rmpi": False}


@pytest.mark.parametrize(
    "code",
    ["# library(Rmpi)", 'cat("library(Rmpi)")', "library(Rmpi, character.only = TRUE)",
     "requireNamespace(Rmpi)", 'x <- "a\\"library(Rmpi)"', "install.packages('Rmpi')",
     "mylibrary(Rmpi)"],
)  # fmt: skip
def test_text_and_computed_names_are_no_packages(code: str) -> None:
    assert not named_packages(code)


def test_long_text_of_r_is_read_to_its_end() -> None:
    for code in (" " * 200_000, '"' + '\\"' * 100_000, '"' + '\\"' * 100_000 + "\\", "x" * 200_000):
        assert named_packages(code) == {}


@pytest.mark.parametrize("code", ["))}", "({[", "library(", "'", '"\\', "else", "f::", "::f"])
def test_any_text_of_r_is_read_to_its_end(code: str) -> None:
    assert named_packages(code + "\n" + code) == {}
