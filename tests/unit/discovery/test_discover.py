"""From places to rows: libraries compiled here that answer as the real ones do, or break."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.model import Abi, EnvRow, Family, MpiInstall, Scope
from mpigraft.discovery import inventory
from mpigraft.discovery.sources import install, probe
from mpigraft.discovery.sources.candidate import Candidate, Host
from tests.builders.machine_trees import VERSIONS, launcher, library, put
from tests.builders.messages import shows

pytestmark = pytest.mark.usefixtures("home")

PLAIN_PATH = "/nowhere"  # not /usr/bin: Debian's own MPIs may be there


def prefix(root: Path, name: str, soname: str, text: str, **more: Any) -> Path:
    """A prefix with a libmpi that says `text`, and a launcher."""
    library(root / name / "lib" / soname, text, **more)
    launcher(root / name / "bin/mpirun", "mpirun (Open MPI) 5.0.7")
    launcher(root / name / "bin/mpicc", "gcc")
    return root / name


def found(root: Path, *prefixes: Path) -> list[MpiInstall]:
    """The rows of a machine that has these prefixes in PATH."""
    path = ":".join([*(f"{p}/bin" for p in prefixes), PLAIN_PATH])
    return list(inventory.discover_mpis(Host({"PATH": path}, root))[0])


def candidate(libmpi: Path, family: Family | None = None) -> Candidate:
    top = libmpi.parent.parent
    return Candidate("path", "by hand", top, libmpi, (top / "bin",), family, "1.0")


def row(libmpi: Path, family: Family | None = None, root: Path = Path("/")) -> MpiInstall:
    made = install.describe(candidate(libmpi, family), Host({"PATH": PLAIN_PATH}, root), ())
    assert isinstance(made, MpiInstall)
    return made


# ------------------------------------------------------------------ sound ones


@pytest.mark.parametrize(
    ("text", "soname", "family", "version", "abi"),
    [
        ("openmpi", "libmpi.so.40", Family.OPENMPI, "5.0.7", Abi.OMPI),
        ("mpich", "libmpi.so.12", Family.MPICH, "4.2.2", Abi.MPICH),
        ("intel", "libmpi.so.12", Family.INTEL, "2021.12", Abi.MPICH),
        ("cray", "libmpi_gnu_91.so.12", Family.CRAY_MPICH, "8.1.27", Abi.MPICH),
        ("mvapich", "libmpi.so.12", Family.MVAPICH, "3.0", Abi.MPICH),
        ("mpich", "libmpi_abi.so.1", Family.MPICH, "4.2.2", Abi.MPI_ABI),
    ],
)
def test_a_library_says_who_it_is(
    tmp_path: Path, text: str, soname: str, family: Family, version: str, abi: Abi
) -> None:
    made = row(library(tmp_path / "lib" / soname, VERSIONS[text]))
    assert (made.family, made.version, made.abi, made.soname) == (family, version, abi, soname)
    assert made.usable, made.reason
    (folders,) = {r.value for r in made.environment if r.name == "LD_LIBRARY_PATH"}
    assert (folders or "").split(":")[0] == str(tmp_path / "lib")


def test_intel_mpi_gets_its_root_from_the_environment(tmp_path: Path) -> None:
    libmpi = library(tmp_path / "lib/libmpi.so.12", VERSIONS["intel"])
    library(tmp_path / "opt/mpi/libfabric/lib/libfabric.so.1", "")
    put(tmp_path, {"opt/mpi/libfabric/lib/prov/": ""})
    rank = {r.name: r.value for r in row(libmpi).environment if r.scope is Scope.RANK}
    assert rank["I_MPI_ROOT"] == str(tmp_path)
    fabric = tmp_path / "opt/mpi/libfabric/lib"
    assert rank["LD_LIBRARY_PATH"] == f"{libmpi.parent}:{fabric}"
    assert rank["FI_PROVIDER_PATH"] == f"{fabric}/prov"


@pytest.mark.parametrize("soname", ["libmpich.so.12", "libmpi_gnu_91.so.12"])
def test_an_mpi_with_a_name_of_its_own_also_goes_by_the_abis(tmp_path: Path, soname: str) -> None:
    libmpi = library(tmp_path / "lib" / soname, VERSIONS["mpich"])

    def search() -> list[str]:
        (value,) = {r.value for r in row(libmpi).environment if r.name == "LD_LIBRARY_PATH"}
        return (value or "").split(":")

    own, alias = search()
    assert own == str(tmp_path / "lib")
    assert Path(alias, "libmpi.so.12").samefile(libmpi)
    put(tmp_path, {"lib/libmpi.so.12": f"-> {soname}"})  # now it has the name by itself
    assert search() == [own]


def test_what_a_place_sets_wins_over_the_rules(tmp_path: Path) -> None:
    libmpi = library(tmp_path / "lib/libmpi.so.12", VERSIONS["intel"])
    own = EnvRow("I_MPI_ROOT", "/module/says", Scope.RANK, "module")
    place = replace(candidate(libmpi, Family.INTEL), environment=(own,))
    made = install.describe(place, Host({"PATH": PLAIN_PATH}), ())
    assert isinstance(made, MpiInstall)
    assert [r for r in made.environment if r.scope is Scope.RANK and r.name == "I_MPI_ROOT"] == [
        own
    ]
    assert len({r.name for r in made.environment}) > 1
    folders = EnvRow("LD_LIBRARY_PATH", "/module/lib", Scope.RANK, "module")
    made = install.describe(replace(place, environment=(folders,)), Host({"PATH": PLAIN_PATH}), ())
    assert isinstance(made, MpiInstall)
    assert replace(folders, value=f"/module/lib:{tmp_path}/lib") in made.environment


def test_a_folder_of_the_loader_needs_no_path(tmp_path: Path) -> None:
    libmpi = library(tmp_path / "usr/lib/x86_64-linux-gnu/libmpi.so.40", VERSIONS["openmpi"])
    assert row(libmpi, root=tmp_path).environment == ()


@pytest.mark.parametrize(
    ("version", "kind"), [("5.0.7", "prrte"), ("4.1.6", "orte"), ("10.0.0", "prrte")]
)
def test_open_mpis_launcher_goes_by_its_version(tmp_path: Path, version: str, kind: str) -> None:
    libmpi = library(tmp_path / "lib/libmpi.so.40", f"Open MPI v{version}, package")
    launcher(tmp_path / "bin/mpirun", f"mpirun (Open MPI) {version}")
    made = row(libmpi)
    assert (made.launcher_kind, made.launcher_version) == (kind, version)
    assert made.launcher == tmp_path / "bin/mpirun"


def test_what_a_library_prints_is_no_answer(tmp_path: Path) -> None:
    noise = r'printf("{\"version\": \"MPICH Version: 9\"}\n"); fflush(stdout);'
    made = row(library(tmp_path / "lib/libmpi.so.40", VERSIONS["openmpi"], before=noise))
    assert made.version == "5.0.7"


def test_an_unresolved_symbol_that_nobody_calls_is_no_fault(tmp_path: Path) -> None:
    lazy = 'if (getenv("NEVER")) { extern void not_there(void); not_there(); }'
    assert row(library(tmp_path / "lib/libmpi.so.40", VERSIONS["openmpi"], before=lazy)).usable


def test_the_same_mpi_found_twice_is_one_row(tmp_path: Path) -> None:
    top = prefix(tmp_path, "a", "libmpi.so.40", VERSIONS["openmpi"])
    put(tmp_path, {"view/lib": f"-> {top}/lib"})
    launcher(tmp_path / "view/bin/mpirun", "x")
    (made,) = found(tmp_path, top, tmp_path / "view")
    assert len(made.found) == 2
    assert made.prefix == top


def test_ids_are_unique(tmp_path: Path) -> None:
    tops = [prefix(tmp_path, n, "libmpi.so.40", VERSIONS["openmpi"]) for n in "abc"]
    made = found(tmp_path, *tops)
    first = made[0].id
    assert first.endswith("+path")
    assert [m.id for m in made] == [first, f"{first}-2", f"{first}-3"]


# ------------------------------------------------------------------ broken ones


BROKEN = {
    "crash": ("raise(11);", "signal 11"),
    "abort": ('fprintf(stderr, "no such device\\n"); abort();', "no such device"),
    "exit": ("_exit(0);", "exit 0"),
    "exit-with-word": ('fprintf(stderr, "licence expired\\n"); exit(3);', "licence expired"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_library_that_ends_its_process_is_a_row(tmp_path: Path, how: str) -> None:
    before, why = BROKEN[how]
    code = "#include <signal.h>\n" if "raise" in before else ""
    libmpi = library(
        tmp_path / "lib/libmpi.so.40",
        VERSIONS["openmpi"],
        before=before,
        flags=("-include", "signal.h") if code else (),
    )
    made = row(libmpi, Family.OPENMPI)
    assert not made.usable
    assert why in made.reason
    assert made.id == "openmpi@1.0"


def test_a_library_that_hangs_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "LIMIT_S", 0.5)
    libmpi = library(tmp_path / "lib/libmpi.so.40", VERSIONS["openmpi"], before="for (;;) pause();")
    made = row(libmpi, Family.OPENMPI)
    assert not made.usable
    assert shows(made.reason, "did not load")


def test_a_missing_dependency_is_named(tmp_path: Path) -> None:
    needed = library(tmp_path / "else/libpart.so.7", "")
    libmpi = library(
        tmp_path / "lib/libmpi.so.40",
        VERSIONS["openmpi"],
        flags=("-Wl,--no-as-needed", str(needed)),
    )
    shutil.rmtree(needed.parent)
    made = row(libmpi, Family.OPENMPI)
    assert not made.usable
    assert "libpart.so.7" in made.reason


@pytest.mark.parametrize("content", ["INPUT(libmpi.so.40)", "", "\x7fELF nearly"])
def test_a_file_that_is_no_library_is_a_row(tmp_path: Path, content: str) -> None:
    put(tmp_path, {"lib/libmpi.so.40": content})
    made = row(tmp_path / "lib/libmpi.so.40", Family.OPENMPI)
    assert not made.usable
    assert shows(made.reason, "cannot be read")


def test_a_dangling_link_is_a_row(tmp_path: Path) -> None:
    put(tmp_path, {"a/lib/libmpi.so.40": "-> gone"})
    launcher(tmp_path / "a/bin/mpirun", "mpirun (Open MPI) 4.1.6")
    (made,) = found(tmp_path, tmp_path / "a")
    assert (made.family, made.version, made.usable) == (Family.OPENMPI, "4.1.6", False)
    assert shows(made.reason, "cannot be read")


def test_a_broken_library_without_a_launcher_goes_by_its_name(tmp_path: Path) -> None:
    put(tmp_path, {"lib/libmpi.so.40.20.3": "?"})
    made = row(tmp_path / "lib/libmpi.so.40.20.3")
    assert (made.family, made.usable) == (Family.OPENMPI, False)


def test_a_launcher_without_a_library_is_a_row(tmp_path: Path) -> None:
    launcher(tmp_path / "a/bin/mpirun", "mpirun (Open MPI) 4.1.6")
    (made,) = found(tmp_path, tmp_path / "a")
    assert (made.family, made.version, made.usable) == (Family.OPENMPI, "4.1.6", False)
    assert "no libmpi" in made.reason


def test_a_family_nobody_knows_is_a_finding(tmp_path: Path) -> None:
    top = prefix(tmp_path, "a", "libmpi.so.40", VERSIONS["foreign"])
    rows, findings = inventory.discover_mpis(Host({"PATH": f"{top}/bin:{PLAIN_PATH}"}, tmp_path))
    assert rows == ()
    (finding,) = findings
    assert finding.code == "unknown-mpi"
    assert "Fujitsu" in finding.message


def test_a_broken_one_does_not_hide_a_sound_one(tmp_path: Path) -> None:
    bad = prefix(tmp_path, "bad", "libmpi.so.40", VERSIONS["openmpi"], before="abort();")
    good = prefix(tmp_path, "good", "libmpi.so.12", VERSIONS["mpich"])
    rows, findings = inventory.discover_mpis(
        Host({"PATH": f"{bad}/bin:{good}/bin:{PLAIN_PATH}"}, tmp_path)
    )
    assert [m.id for m in rows if m.usable] == ["mpich@4.2.2"]
    assert [m.version for m in rows if not m.usable] == ["5.0.7"]
    assert findings == ()


# ------------------------------------------------------------------ the cache


def test_an_answer_holds_as_long_as_the_files_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    libmpi = library(tmp_path / "lib/libmpi.so.40", VERSIONS["openmpi"])
    started = []
    real = probe._run_child

    def counted(*args: Any) -> Any:
        started.append(args)
        return real(*args)

    monkeypatch.setattr(probe, "_run_child", counted)
    first = row(libmpi, Family.OPENMPI)
    assert row(libmpi, Family.OPENMPI) == first
    assert len(started) == 1
    library(libmpi, "Open MPI v5.0.8, package")
    assert row(libmpi, Family.OPENMPI).version == "5.0.8"
    assert len(started) == 2


def test_an_answer_holds_as_long_as_what_was_mapped_with_it(tmp_path: Path) -> None:
    part = library(tmp_path / "lib/libpart.so.7", "one")
    libmpi = library(
        tmp_path / "lib/libmpi.so.40",
        VERSIONS["openmpi"],
        flags=("-Wl,--no-as-needed", str(part), "-Wl,-rpath,$ORIGIN"),
    )
    assert row(libmpi, Family.OPENMPI).usable
    library(part, "two", before="abort();")
    assert not row(libmpi, Family.OPENMPI).usable


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    libmpi = tmp_path / "lib/libmpi.so.40"
    part = library(tmp_path / "lib/libpart.so.7", "")
    library(libmpi, VERSIONS["openmpi"],
            flags=("-Wl,--no-as-needed", str(part), "-Wl,-rpath,$ORIGIN"))  # fmt: skip
    aside = part.rename(tmp_path / "aside")
    assert not row(libmpi, Family.OPENMPI).usable
    aside.rename(part)
    assert row(libmpi, Family.OPENMPI).usable
