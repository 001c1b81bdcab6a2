"""Which MPI `mpigraft run` takes for a program of this machine, and which it refuses."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.native.programs import PREBUILT, SPAWN
from tests.mpi.test_run import MPICH, OPENMPI, compiled, ranks_of, run
from tests.native.native_world import compile_c

pytestmark = pytest.mark.mpi

TRIES = 20  # each takes a second, and files count as young for two
DEBIANS = Path("/usr/bin/mpirun.openmpi")  # 4.1.4, which the loader finds by itself


@pytest.fixture(scope="module")
def ompi(mpis: Mapping[Family, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(mpis[Family.OPENMPI], tmp_path_factory.mktemp("ompi"))


@pytest.fixture(scope="module")
def modern(mpis: Mapping[Family, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with a function of MPI 4.0, which Debian's Open MPI 4.1.4 lacks, and with no path
    to another."""
    folder = tmp_path_factory.mktemp("modern")
    source = folder / "modern.c"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\nint main(int argc, char **argv)\n"
        "{ MPI_Session own; int rank, size; MPI_Init(&argc, &argv);\n"
        "  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &own); MPI_Session_finalize(&own);\n"
        "  MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);\n"
        '  printf("rank %d of %d\\n", rank, size); return MPI_Finalize(); }\n'
    )
    prefix = mpis[Family.OPENMPI]
    libmpi = prefix / "lib/libmpi.so.40"
    lazy = ("-Wl,-z,lazy", "-Wl,--allow-shlib-undefined")
    return compile_c(source, folder / "modern", "-isystem", prefix / "include", libmpi, *lazy)


def test_an_mpi_that_lacks_a_symbol_is_passed_over(modern: Path, fresh_home: Path) -> None:
    """The loader starts the program on 4.1.4, and it ends at the first call with code 127."""
    ended = run("-n", 2, "--explain", "--", modern)
    assert (ended.returncode, ranks_of(ended)) == (0, ["rank 0 of 2", "rank 1 of 2"])
    assert "mpigraft: mpi: openmpi@5" in ended.stderr
    if DEBIANS.exists():
        why = "not taken: openmpi@4.1.4, which the program finds by itself (ld.so.cache): modern: 2"
        assert why in ended.stderr
        named = run("--mpi", "openmpi@4.1.4", "-n", 2, "--", modern)
        assert (named.returncode, named.stdout) == (1, "")
        assert "2 symbols missing in openmpi@4.1.4: MPI_Session_finalize" in named.stderr
        assert "--mpi openmpi@5.0.11 fits, which was checked" in named.stderr


def test_a_program_that_comes_into_path_is_the_next_one_to_start(
    ompi: Path, fresh_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start that is kept, of the program by name and by a shell, follows PATH."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    shutil.copy(ompi, second / "solver")
    monkeypatch.setenv("PATH", f"{first}:{second}:{os.environ['PATH']}")
    ways = (["solver"], ["sh", "-c", "solver"])
    assert [run(*OPENMPI, "--", *words).returncode for words in ways] == [0, 0]
    (first / "solver").write_text("#!/bin/sh\nexit 7\n")
    (first / "solver").chmod(0o755)
    assert [run(*OPENMPI, "--", *words).returncode for words in ways] == [7, 7]


def test_no_mpi_with_a_symbol_is_a_refusal_that_names_it(
    modern: Path, fresh_home: Path, tmp_path: Path
) -> None:
    absent = tmp_path / "absent"
    absent.write_bytes(modern.read_bytes().replace(b"MPI_Session_init", b"MPI_Session_inix"))
    absent.chmod(0o755)
    ended = run(*OPENMPI, "--", absent)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "MPI_Session_inix" in ended.stderr


def test_the_mpi_that_the_program_finds_by_itself_is_taken(
    ompi: Path, mpis: Mapping[Family, Path], fresh_home: Path
) -> None:
    search = {**os.environ, "LD_LIBRARY_PATH": str(mpis[Family.OPENMPI] / "lib")}
    ended = run("-n", 2, "--explain", "--", ompi, env=search)
    assert ended.returncode == 0, ended.stderr
    assert "openmpi@5" in ended.stderr
    assert "the program finds it by itself: LD_LIBRARY_PATH" in ended.stderr


def test_a_program_of_another_abi_is_refused_before_it_starts(ompi: Path, fresh_home: Path) -> None:
    ended = run(*MPICH, "--", ompi)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "built for Open MPI 3 to 5; mpich@5.0.2 offers" in ended.stderr
    assert "what to do" in ended.stderr


def test_every_program_of_a_job_has_to_fit(ompi: Path, modern: Path, fresh_home: Path) -> None:
    """The second one is not in what Debian's MPI has, which the first finds by itself."""
    words = ("-n", 1, "--", ompi, ":", "-n", 1, modern)
    for _ in range(2):
        ended = run(*words)
        assert (ended.returncode, ranks_of(ended)) == (0, ["rank 0 of 2", "rank 1 of 2"])
    named = run("--mpi", "mpich@5", *words)
    assert (named.returncode, named.stdout) == (1, "")
    if DEBIANS.exists():
        named = run("--mpi", "openmpi@4.1.4", *words)
        assert (named.returncode, named.stdout) == (1, "")
        assert f"{modern} does not run on openmpi@4.1.4" in named.stderr


def test_a_program_of_mpi_5s_abi_runs_on_mpichs_library_of_it(fresh_home: Path) -> None:
    program = PREBUILT / platform.machine() / "mpi-abi" / SPAWN
    ended = run("--mpi", "mpich@5", "-n", 2, "--explain", "--", program)
    assert ended.returncode == 0, ended.stderr
    assert "libmpi_abi.so.1)" in ended.stderr


def test_a_script_is_judged_by_the_abi_of_its_program_and_searches_where_it_says(
    mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path
) -> None:
    """What a script sets before it starts the program is not known, so no library is missing."""
    source, prefix = tmp_path / "own.c", mpis[Family.OPENMPI]
    source.write_text("int own(void);\nint own(void) { return 0; }\n")
    compile_c(source, tmp_path / "libown.so", "-shared", "-fPIC", "-Wl,-soname,libown.so")
    program = compile_c(
        Path(__file__).parent / "ranks.c", tmp_path / "with_own", "-isystem", prefix / "include",
        prefix / "lib/libmpi.so.40", "-Wl,--no-as-needed", tmp_path / "libown.so",
    )  # fmt: skip
    script = tmp_path / "start"
    script.write_text(
        f'#!/bin/sh\nexport LD_LIBRARY_PATH={tmp_path}:$LD_LIBRARY_PATH\nexec {program} "$@"\n'
    )
    script.chmod(0o755)
    assert "libown.so" in run(*OPENMPI, "--", program).stderr
    ended = run(*OPENMPI, "--", script)
    assert ranks_of(ended) == ["rank 0 of 2", "rank 1 of 2"], ended.stderr
    other = run(*MPICH, "--", script)
    assert (other.returncode, other.stdout) == (1, "")
    assert "built for Open MPI 3 to 5" in other.stderr


# ------------------------------------------------------------------ the same refusal again


def refused(home: Path) -> list[Path]:
    return list((home / "cache/run").glob("*.refusal"))


def refuse_until_kept(home: Path, program: Path) -> subprocess.CompletedProcess[str]:
    """Refuse a program until its files are old enough to be told apart from later ones."""
    for _ in range(TRIES):
        ended = run(*MPICH, "--", program)
        assert ended.returncode == 1
        if refused(home):
            return ended
    raise AssertionError("no refusal was kept")


def test_a_refusal_is_repeated_as_long_as_nothing_changed(ompi: Path, fresh_home: Path) -> None:
    """The first one is kept when the files of the new home are old enough to be told apart."""
    shared = (fresh_home / "mpi").resolve()
    (fresh_home / "mpi").unlink()
    (fresh_home / "mpi").mkdir()
    for prefix in shared.glob("[!.]*"):
        (fresh_home / "mpi" / prefix.name).symlink_to(prefix)
    first = refuse_until_kept(fresh_home, ompi)
    words = (sys.executable, "-X", "importtime", "-m", "mpigraft.cli.entry", "run", *MPICH, "--")
    again = subprocess.run([*words, str(ompi)], capture_output=True, text=True, timeout=60)
    assert again.returncode == 1
    assert [line for line in again.stderr.splitlines() if "import time" not in line] == (
        first.stderr.splitlines()
    )
    assert "mpigraft.discovery" not in again.stderr
    assert "--mpi openmpi@5.0.11 fits" in first.stderr or "--mpi openmpi@4.1.4" in first.stderr
    (link,) = (fresh_home / "mpi").glob("openmpi-5*")
    link.unlink()
    other = run(*MPICH, "--", ompi)
    assert other.returncode == 1
    assert "openmpi@5.0.11" not in other.stderr


def test_a_refusal_of_a_program_that_changed_is_decided_anew(
    ompi: Path, mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    shutil.copy(ompi, program)
    refuse_until_kept(fresh_home, program)
    shutil.copy(compiled(mpis[Family.MPICH], tmp_path), program)
    assert run(*MPICH, "--", program).returncode == 0


def test_programs_of_two_abis_in_one_job_are_refused(
    ompi: Path, mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path
) -> None:
    """A script that surely starts both, or a colon: it ended with 5, and another reason."""
    other = compiled(mpis[Family.MPICH], tmp_path)
    for words in (["sh", "-c", f"{ompi}; {other}"], [ompi, ":", "-n", 1, other]):
        ended = run("-n", 1, "--", *words)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert f"no one fits both: {ompi} for Open MPI 3 to 5 and {other} for" in ended.stderr


def test_one_of_the_programs_that_a_script_may_start_has_to_fit(
    ompi: Path, mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path
) -> None:
    """As in an image; it ended with 5 where none did, and took an MPI of another ABI."""
    other = compiled(mpis[Family.MPICH], tmp_path)
    either = f"if test -e {tmp_path}/none; then {ompi}; else {other}; fi"
    ended = run(*MPICH, "--", "sh", "-c", either)
    assert (ended.returncode, ranks_of(ended)) == (0, ["rank 0 of 2", "rank 1 of 2"])
    assert f"of 2 programs that it may start, 1 would not run: {ompi}" in ended.stderr
    ended = run(*MPICH, "--", "sh", "-c", f"if test -e {tmp_path}/none; then {ompi}; fi")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "built for Open MPI 3 to 5; mpich@5.0.2 offers" in ended.stderr
    sure = run("-n", 2, "--", "sh", "-c", f"test -e {tmp_path}/none && {ompi}; {other}")
    assert (sure.returncode, ranks_of(sure)) == (0, ["rank 0 of 2", "rank 1 of 2"])


def test_a_preloaded_libmpi_of_another_mpi_is_refused(
    ompi: Path, mpis: Mapping[Family, Path], fresh_home: Path
) -> None:
    other = mpis[Family.MPICH] / "lib/libmpi.so.12"
    ended = run(*OPENMPI, "--env", f"LD_PRELOAD={other}", "--", ompi)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert f"it would take {other} (LD_PRELOAD {other})" in ended.stderr
    assert "take that library out of LD_PRELOAD" in ended.stderr


def test_a_program_that_opens_libmpi_gets_an_mpi_of_that_abi(
    mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path
) -> None:
    """`check` says what `run` does: it is not known, and the name in the program says more."""
    source = tmp_path / "opens.c"
    source.write_text(
        '#include <dlfcn.h>\nint main(void) { void *mpi = dlopen("libmpi.so.12", RTLD_NOW);\n'
        "  int (*init)(void *, void *), (*end)(void); if (!mpi) return 3;\n"
        '  *(void **)&init = dlsym(mpi, "MPI_Init"); *(void **)&end = dlsym(mpi, "MPI_Finalize");\n'
        "  init(0, 0); return end(); }\n"
    )
    program = compile_c(source, tmp_path / "opens")
    ended = run("-n", 2, "--explain", "--", program)
    assert ended.returncode == 0, ended.stderr
    assert "mpi: openmpi" not in ended.stderr
    assert "each of the 2 ranks does the whole work" in ended.stderr
    argv = (sys.executable, "-m", "mpigraft.cli.entry", "check", "--full", program, "--mpi")
    for mpi, named in (("mpich@5", False), ("openmpi@5", True)):
        checked = subprocess.run([*argv, mpi], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout
        assert "needs no MPI library itself" in checked.stdout
        assert ("opens names libmpi.so.12" in checked.stdout) is named


def test_of_a_script_only_the_programs_named_are_judged(
    ompi: Path, mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path
) -> None:
    """What the script surely starts beside them is not."""
    other = compiled(mpis[Family.MPICH], tmp_path)
    words = ("-n", 2, "--dry-run", "--program", ompi, "--", "sh", "-c", f"{ompi}; {other}")
    assert run(*OPENMPI, *words).returncode == 0
    refused = run(*MPICH, *words)
    assert (refused.returncode, f"{ompi} does not run on mpich" in refused.stderr) == (1, True)
