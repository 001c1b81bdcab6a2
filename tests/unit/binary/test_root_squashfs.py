"""squashfs and SIF: as the folder that they were made of, and broken in every way."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import struct
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.image.folder import FolderRoot
from mpigraft.binary.image.opening import open_root
from mpigraft.binary.image.root import Link, Root, RootEntry, RootError
from mpigraft.binary.image.squashfs import SquashRoot
from mpigraft.core import budget
from mpigraft.core.errors import UsageError
from tests.builders.images import descriptor, sif
from tests.builders.layers import LOADER
from tests.builders.messages import shows

pytestmark = pytest.mark.skipif(not shutil.which("mksquashfs"), reason="needs squashfs-tools")

METHODS = {
    "gzip": ["-comp", "gzip"],
    "xz": ["-comp", "xz"],
    "xz-bcj": ["-comp", "xz", "-Xbcj", "x86"],
    "zstd": ["-comp", "zstd"],
    "plain": ["-noI", "-noD", "-noF", "-noX"],
    "no-fragments": ["-no-fragments"],
    "small-blocks": ["-b", "4096"],
    "large-blocks": ["-b", "1048576", "-always-use-fragments"],
}


@pytest.fixture(scope="module")
def top(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that may be in one."""
    top = tmp_path_factory.mktemp("image")
    for folder in ("usr/lib", "opt/empty", "many", "etc"):
        (top / folder).mkdir(parents=True)
    (top / "lib").symlink_to("usr/lib")
    (top / "usr/lib/libx.so.1").write_bytes(LOADER)
    (top / "usr/lib/libx.so").symlink_to("libx.so.1")
    os.link(top / "usr/lib/libx.so.1", top / "usr/lib/hard.so")
    (top / "opt/out").symlink_to("../../../../../../etc/passwd")
    os.mkfifo(top / "opt/fifo")
    (top / "opt/blocks").write_bytes(os.urandom(300_000) + bytes(500_000) + b"end")
    (top / "opt/nothing").touch()
    with (top / "opt/sparse").open("wb") as file:
        file.truncate(1 << 26)
        file.seek(1 << 25)
        file.write(b"here")
    for n in range(2000):  # more than one block of metadata
        (top / f"many/{n:04} \udcff\n").write_bytes(b"%d" % n)
    (top / "etc/mode").write_text("x")
    (top / "etc/mode").chmod(0o4711)
    return top


def packed(top: Path, path: Path, *options: str) -> Path:
    argv: list[str | Path] = [
        "mksquashfs",
        top,
        path,
        "-no-progress",
        "-noappend",
        "-processors",
        "1",
        *options,
    ]
    subprocess.run(argv, check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def image(top: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return packed(top, tmp_path_factory.mktemp("packed") / "x").read_bytes()


def same(root: Root, top: Path) -> None:
    """`root` and a folder have the same in them."""
    folder = FolderRoot(top)
    expected = {entry.path: entry for entry in folder.files()}
    found = {entry.path: entry for entry in root.files()}
    assert {p: (e.size, e.mode) for p, e in found.items()} == {
        p: (e.size, e.mode) for p, e in expected.items()
    }
    for path, entry in expected.items():
        limit = 1 << 20
        assert root.read(path, limit) == folder.read(path, limit), (path, entry)


@pytest.mark.parametrize("method", METHODS)
def test_as_the_folder_that_it_was_made_of(top: Path, tmp_path: Path, method: str) -> None:
    root = open_root(packed(top, tmp_path / "x", *METHODS[method]))
    same(root, top)
    for path in ("/", "/usr", "/many", "/opt/empty", "/lib", "/none"):
        assert root.names(path) == FolderRoot(top).names(path)
    assert root.entry_in("/", "lib") == Link("usr/lib")
    assert root.find("/opt/out") is None
    fifo = root.find("/opt/fifo")
    assert fifo is not None
    assert fifo.kind == "other"
    assert root.elf("/lib/libx.so") is root.elf("/usr/lib/hard.so")
    with pytest.raises(ElfError, match="not an ELF file"):
        root.elf("/opt/sparse")
    with pytest.raises(RootError, match="not a regular file"):
        root.read("/opt/fifo", 1)
    assert root.entry_in("/usr/lib/libx.so.1", "x") is None
    assert root.entry_in("/none/x", "x") is None


def test_a_folder_that_was_never_walked_to(image: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(image)
    root = open_root(tmp_path / "x")
    found = root.entry_in("/usr/lib", "libx.so.1")
    assert isinstance(found, RootEntry)
    assert found.size == len(LOADER)


def test_a_size_that_is_a_lie(tmp_path: Path, small: dict[str, bytes]) -> None:
    """A file of 4 GiB by its inode: the lengths of its blocks are read as far as they go."""
    data = bytearray(small["plain"])
    at = data.index(struct.pack("<I", 5000), struct.unpack_from("<Q", data, 64)[0])
    struct.pack_into("<I", data, at, 0xFFFFFFFF)
    (tmp_path / "x").write_bytes(data)
    root = open_root(tmp_path / "x")
    with pytest.raises(ElfError, match=r"a block of 904 bytes, not 4096"):
        root.elf("/usr/lib/two")
    with pytest.raises(RootError):
        root.read("/usr/lib/two", 1 << 40)
    found = root.find("/usr/lib/two")
    assert found is not None
    assert found.size == 0xFFFFFFFF


def test_what_is_packed_with_lz4(top: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="packed with lz4"):
        open_root(packed(top, tmp_path / "x", "-comp", "lz4"))


def test_sif(top: Path, image: bytes, tmp_path: Path) -> None:
    overlay = descriptor(0x4004, 0, 0, 2, 4)
    signature = descriptor(0x4005, 1, 2, 1, 2)
    unused = descriptor(0x4004, 0, 0, 1, 2, used=0)
    primary = descriptor(0x4004, 1 << 16, len(image), 1, 2)
    root = open_root(sif(tmp_path / "a", image, descriptors=[signature, unused, overlay, primary]))
    same(root, top)
    assert root.config().architecture == "x86_64"
    (unread,) = root.config().unread
    assert shows(unread, "overlay partition")
    arm = open_root(sif(tmp_path / "b", image, architecture=b"04"))
    assert arm.config().architecture == "aarch64"


@pytest.mark.parametrize(
    ("descriptors", "says"),
    [
        ([descriptor(0x4004, 1 << 16, 1 << 40, 1, 2)], "past the end"),
        ([descriptor(0x4004, -5, 4096, 1, 2)], "past the end"),
        ([descriptor(0x4004, 1 << 16, -1, 1, 2)], "past the end"),
        ([descriptor(0x4004, 1 << 62, 1 << 62, 1, 2)], "past the end"),
        ([descriptor(0x4004, 1 << 16, 50, 1, 2)], "50 bytes are too few"),
        ([descriptor(0x4004, 1 << 16, 96, 1, 2)], "only 96 exist"),
        ([descriptor(0x4004, 0, 4096, 1, 2)], "not a squashfs"),
        ([descriptor(0x4004, 1 << 16, 4096, 1, 2)] * 2, "2 primary partitions"),
        ([descriptor(0x4004, 1 << 16, 4096, 1, 3)], "0 primary partitions"),
        ([descriptor(0x4004, 1 << 16, 4096, 5, 2)], "encrypted"),
        ([descriptor(0x4004, 1 << 16, 4096, 2, 2)], "ext3"),
        ([descriptor(0x4004, 1 << 16, 4096, 77, 2)], "77"),
        ([descriptor(0x400A, 1 << 16, 4096, 0, 0)], "OCI-SIF"),
    ],
)
def test_sif_with_broken_descriptors(
    image: bytes, tmp_path: Path, descriptors: list[bytes], says: str
) -> None:
    with pytest.raises((RootError, UsageError), match=says):
        open_root(sif(tmp_path / "sif", image, descriptors=descriptors))


def test_sif_with_a_broken_header(tmp_path: Path) -> None:
    for total in (0, -1, 2, 1 << 40, 5000):
        with pytest.raises(RootError, match="descriptors"):
            open_root(sif(tmp_path / "sif", b"", total=total))
    with pytest.raises(RootError, match="only 01"):
        open_root(sif(tmp_path / "sif", b"", version=b"02"))
    data = sif(tmp_path / "sif", b"").read_bytes()
    for keep in (50, 100, 4096, 4097):
        (tmp_path / "cut").write_bytes(data[:keep])
        with pytest.raises(RootError):
            open_root(tmp_path / "cut")


# ------------------------------------------------------------------ broken images


def everything(path: Path) -> None:
    """All that can be asked of a root. Errors are those that the Root says, and it ends."""
    with contextlib.suppress(RootError, UsageError):
        root = open_root(path)
        root.config()
        for asked in ("/lib/libx.so", "/a/../etc/mode", "/deep/d/d", "/opt/out"):
            with contextlib.suppress(RootError):
                root.find(asked)
        for entry in root.files():
            with contextlib.suppress(ElfError):
                root.elf(entry.path)
            with contextlib.suppress(RootError):
                root.read(entry.path, 1 << 18)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Small images, so that a change hits a structure and not the contents of a file."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "top/usr/lib").mkdir(parents=True)
    (folder / "top/lib").symlink_to("usr/lib")
    (folder / "top/usr/lib/libx.so").write_bytes(LOADER[:2000])
    (folder / "top/usr/lib/two").write_bytes(b"x" * 5000)
    (folder / "top/deep/d/d").mkdir(parents=True)
    found = {}
    for method in ("plain", "gzip"):
        options = ("-b", "4096", *METHODS[method])
        found[method] = packed(folder / "top", folder / method, *options).read_bytes()
    return found


NUMBERS = st.sampled_from([0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF, 0xFFFF, 1 << 31, (1 << 63) - 1])


@given(
    st.sampled_from(["plain", "gzip"]),
    st.lists(st.tuples(st.integers(0, 1 << 14), NUMBERS, st.sampled_from("BHIQ")), max_size=4),
    st.integers(0, 1 << 14),
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_changed_bytes(
    tmp_path: Path,
    small: dict[str, bytes],
    method: str,
    changes: list[tuple[int, int, str]],
    cut: int,
) -> None:
    data = bytearray(small[method])
    used = struct.unpack_from("<Q", data, 40)[0]  # behind it is padding
    for at, value, form in changes:
        size = struct.calcsize(form)
        struct.pack_into(f"<{form}", data, at % (used - size), value & (256**size - 1))
    path = tmp_path / "x"
    path.write_bytes(data[: max(cut, 96)] if cut % 5 == 0 else data)
    everything(path)


def test_a_folder_within_itself(tmp_path: Path, small: dict[str, bytes]) -> None:
    """Each entry of each folder made to be the folder of the root: no walk goes on for ever."""
    data = bytearray(small["plain"])
    top, lists, fragments = (struct.unpack_from("<Q", data, at)[0] for at in (32, 72, 80))
    at = lists + 2  # after the length of the metadata block
    while at + 12 < fragments:
        count, _, _ = struct.unpack_from("<III", data, at)
        if count > 255:
            break
        at += 12
        for _ in range(count + 1):
            length = struct.unpack_from("<H", data, at + 6)[0] + 1
            struct.pack_into("<H", data, at, top & 0xFFFF)
            at += 8 + length
    path = tmp_path / "x"
    path.write_bytes(data)
    root = open_root(path)
    assert root.names("/") == ("deep", "lib", "usr")
    assert root.find("/deep/usr/lib/deep/deep/usr") is not None
    assert list(root.files()) == []


def test_a_block_that_unpacks_to_more(tmp_path: Path) -> None:
    """A bomb in a block: 4 KiB of blocks, and a megabyte of zeros in one of them."""
    import zlib

    (tmp_path / "top").mkdir()
    (tmp_path / "top/f").write_bytes(b"ab" * 2048)
    plain = packed(tmp_path / "top", tmp_path / "y", "-b", "4096", "-noD", "-noI", "-no-fragments")
    data = bytearray(plain.read_bytes())
    bomb = zlib.compress(bytes(1 << 20), 9)
    at = data.index(b"abababab")
    data[at : at + len(bomb)] = bomb
    place = data.index(struct.pack("<I", 4096 | 1 << 24), at + 4096)
    struct.pack_into("<I", data, place, len(bomb))
    plain.write_bytes(data)
    with pytest.raises(RootError, match="more than 4096 bytes"):
        open_root(plain).read("/f", 10)


def over_budget(path: Path, ask: Callable[[Root], object]) -> str:
    """What is refused, while little memory is taken."""
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match=re.escape(str(path))) as error:
            ask(open_root(path))
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()
    assert error.value.code == "file-over-budget"
    return error.value.message


def test_a_list_of_one_name_over_and_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries count, not the names that they leave."""
    (tmp_path / "top").mkdir()
    for n in range(600):
        (tmp_path / f"top/zq{n:03}").touch()
    path = packed(tmp_path / "top", tmp_path / "x", *METHODS["plain"])
    path.write_bytes(re.sub(rb"zq\d{3}", b"zq000", path.read_bytes()))
    assert open_root(path).names("/") == ("zq000",)
    monkeypatch.setattr(budget, "MOST_ITEMS", 599)
    assert shows(over_budget(path, lambda root: root.names("/")), "599 entries")


def test_holes_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither their bytes are read without end, nor the lengths of their blocks."""
    (tmp_path / "top").mkdir()
    end = 1 << 26
    with (tmp_path / "top/f").open("wb") as file:
        file.truncate(end)
    path = packed(tmp_path / "top", tmp_path / "x", "-b", "4096")
    monkeypatch.setattr(budget, "BYTES", 1 << 20)

    def read_last(root: Root) -> None:
        entry = root.find("/f")
        assert isinstance(root, SquashRoot)
        assert entry is not None
        with root._opened(entry) as pread:
            pread(10, end - 10)

    for read in (read_last, lambda root: root.read("/f", end)):
        assert shows(over_budget(path, read), "bytes", "unpacked")
