"""The tar reader against Python's own, and against what no tar should say."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.binary.image.root import RootError
from mpigraft.binary.image.streams import Blob, File, Plain
from mpigraft.binary.image.tar import Member, members
from tests.builders.layers import Item, file, folder, hard, link, other, tar

names = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1
)
paths = st.lists(names, min_size=1, max_size=40).map("/".join)
items = st.one_of(
    st.builds(file, paths, st.binary(max_size=1500), st.integers(0, 0o7777)),
    st.builds(folder, paths),
    st.builds(link, paths, paths),
    st.builds(hard, paths, paths),
    st.builds(other, paths, st.sampled_from([tarfile.FIFOTYPE, tarfile.CHRTYPE])),
)
forms = st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])


class Bytes:
    """A source in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def read(self, size: int) -> bytes:
        part = self.data[self.at : self.at + size]
        self.at += len(part)
        return part

    def skip_to(self, at: int) -> bool:
        self.at = at
        return at <= len(self.data)


def found(data: bytes) -> list[tuple[Member, bytes]]:
    source = Bytes(data)
    return [(m, data[m.at : m.at + m.stored]) for m in members(source, "x.tar")]


def kind(item: tarfile.TarInfo) -> str:
    if item.isreg():
        return "file"
    return {tarfile.DIRTYPE: "folder", tarfile.SYMTYPE: "link", tarfile.LNKTYPE: "hard"}.get(
        item.type, "other"
    )


@given(st.lists(items, max_size=8), forms)
def test_as_python_reads_it(written: list[Item], form: int) -> None:
    data = tar(written, form)
    with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as oracle:
        expected = []
        for item in oracle:
            stream = oracle.extractfile(item) if item.isreg() else None
            content = stream.read() if stream else b""
            expected.append((item.name, kind(item), item.mode, item.linkname, content))
    assert [
        (m.name.rstrip("/"), m.kind, m.mode, m.target, content) for m, content in found(data)
    ] == [(n.rstrip("/"), *rest) for n, *rest in expected]


@given(
    st.lists(items, min_size=1, max_size=4).map(tar),
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=6),
    st.integers(0, 1 << 14),
)
def test_broken_ones_are_refused_or_read(
    data: bytes, changes: list[tuple[int, int]], length: int
) -> None:
    broken = bytearray(data)
    for at, value in changes:
        broken[at % len(broken)] = value
    with contextlib.suppress(RootError):
        found(bytes(broken[:length]))


def test_old_forms() -> None:
    """A folder of V7 ends in a slash; a long name of ustar is in two parts."""
    item, _ = file("old/", b"")
    item.type = tarfile.AREGTYPE
    long, data = file(f"{'d' * 100}/{'e' * 40}/name", b"content")
    read = found(tar([(item, b""), (long, data)], tarfile.USTAR_FORMAT))
    assert [(m.name, m.kind, content) for m, content in read] == [
        ("old/", "folder", b""),
        (long.name, "file", b"content"),
    ]


def test_sparse_members(tmp_path: Path) -> None:
    """Of GNU tar in each of its forms: sizes are right and the next member is found."""
    tmp_path.joinpath("holes").touch()
    os.truncate(tmp_path / "holes", 1 << 20)
    with (tmp_path / "holes").open("r+b") as out:
        for at in range(0, 1 << 20, 1 << 15):  # more than the first header has room for
            out.seek(at)
            out.write(b"data")
    (tmp_path / "after").write_text("after")
    for form in (
        ["--format=gnu"],
        *(["--format=pax", f"--sparse-version={v}"] for v in ("0.0", "0.1", "1.0")),
    ):
        data = subprocess.run(
            ["tar", "-C", tmp_path, "-cSf", "-", *form, "holes", "after"],
            check=True,
            capture_output=True,
        ).stdout
        read = found(data)
        assert [(m.name, m.kind, m.size) for m, _ in read] == [
            ("holes", "sparse", 1 << 20),
            ("after", "file", 5),
        ], form
        assert read[1][1] == b"after"


def header(**fields: bytes) -> bytes:
    """One header with a right checksum; a field by the name that POSIX gives it."""
    places = {"name": 0, "size": 124, "typeflag": 156, "magic": 257, "prefix": 345}
    block = bytearray(tar([file("x")], tarfile.USTAR_FORMAT)[:512])
    for name, value in fields.items():
        block[places[name] : places[name] + len(value)] = value
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (header(size=b"77777777777\0"), "ends within"),
        (header(size=b"\xff" * 12), "is too large"),
        (header(size=b"12x45678901\0"), "octal"),
        (header(typeflag=b"?"), "unknown type"),
        (header(typeflag=b"x", size=b"77777777777\0"), "extended header of"),
        (header(typeflag=b"L", size=b"00000001000\0"), "ends within"),
        (
            header(typeflag=b"x", size=b"00000000010\0") + b"9999 a=b\n".ljust(512, b"\0"),
            "malformed",
        ),
        (header(typeflag=b"x", size=b"00000000010\0") + b"none\n".ljust(512, b"\0"), "length"),
        (header()[:300], "no tar header"),
        (b"\x01" * 512, "no tar header"),
        (header(typeflag=b"x", size=b"00000000013\0") + b"11 size=-1\n".ljust(512, b"\0")
         + header(), "size"),
        (header(typeflag=b"x", size=b"00000000015\0") + b"13 path=a\0bc\n".ljust(512, b"\0")
         + header(), "NUL"),
    ],
)  # fmt: skip
def test_files_that_are_no_tar(data: bytes, says: str) -> None:
    with pytest.raises(RootError, match=says):
        found(data)


def test_a_file_is_skipped_through(tmp_path: Path) -> None:
    """A member of 4 GiB that nobody reads costs nothing."""
    path = tmp_path / "x.tar"
    path.write_bytes(header(size=b"40000000000\0"))
    os.truncate(path, 512 + (1 << 32))
    with path.open("ab") as out:
        out.write(tar([file("after", b"x")]))
    blob = Blob(File.open(path), 0, path.stat().st_size, "x.tar")
    assert [(m.name, m.size) for m in members(Plain(blob), "x.tar")] == [
        ("x", 1 << 32),
        ("after", 1),
    ]
