"""A folder as a root: links as `chroot` has them, nothing outside, nothing that waits."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mpigraft.binary.elf import reader
from mpigraft.binary.elf.reader import Elf
from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.image import root as image_root
from mpigraft.binary.image.folder import FolderRoot
from mpigraft.binary.image.opening import open_root
from mpigraft.binary.image.root import Link, RootError
from mpigraft.core.errors import UsageError

LIBX, RELEASE = "/usr/lib/libx.so.1", "/etc/os-release"
LIBC = Path(os.path.realpath("/lib64/ld-linux-x86-64.so.2"))


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A root with a secret beside it."""
    (tmp_path / "secret").write_text("outside")
    top = tmp_path / "top"
    for folder in ("usr/lib", "etc", "opt"):
        (top / folder).mkdir(parents=True)
    (top / "lib").symlink_to("usr/lib")
    (top / LIBX[1:]).write_bytes(LIBC.read_bytes())
    (top / "usr/lib/libx.so").symlink_to("libx.so.1")
    (top / RELEASE[1:]).write_text("ID=debian\n")
    return top


def test_links_are_followed_inside(top: Path) -> None:
    (top / "opt/absolute").symlink_to("/usr/lib/libx.so")
    (top / "opt/up").symlink_to("../../../../../../etc/os-release")
    root = FolderRoot(top)
    for path in ("/lib/libx.so", "/opt/absolute", "/opt/../lib/./libx.so", "lib//libx.so.1"):
        found = root.find(path)
        assert found is not None
        assert (found.path, found.kind) == (LIBX, "file")
        assert found.source == top / LIBX[1:]
    assert root.read("/opt/up", 100) == b"ID=debian\n"
    assert root.read("/opt/up", 2) == b"ID"
    assert root.entry_in("/", "lib") == Link("usr/lib")
    assert root.names("/lib") == ("libx.so", "libx.so.1")


@pytest.mark.parametrize(
    "target", ["../secret", "/../secret", "{tmp}/secret", "../../../../../../../../{tmp}/secret"]
)
def test_nothing_outside_is_reached(top: Path, tmp_path: Path, target: str) -> None:
    (top / "opt/out").symlink_to(target.format(tmp=tmp_path))
    (top / "opt/folder").symlink_to(target.format(tmp=tmp_path).removesuffix("/secret"))
    root = FolderRoot(top)
    assert root.find("/opt/out") is None
    assert root.find("/opt/folder/secret") is None
    assert root.find("/../secret") is None
    with pytest.raises(RootError):
        root.read("/../../secret", 10)


def test_what_is_nothing(top: Path) -> None:
    (top / "opt/loop").symlink_to("loop")
    (top / "opt/one").symlink_to("two")
    (top / "opt/two").symlink_to("/opt/one")
    (top / "opt/dangling").symlink_to("/none")
    root = FolderRoot(top)
    for path in (
        *("/opt/loop", "/opt/one", "/opt/one/x", "/opt/dangling", "/none/../etc", "/none"),
        *("/etc/os-release/", "/etc/os-release/..", "/etc/os-release/x", "/e\0tc", "/" + "x" * 300),
        *("/" + "x/" * 5000, "/opt\n", "/\udcff"),
    ):
        assert root.find(path) is None, path
        assert root.names(path) == ()


def test_forty_links_and_no_more(top: Path) -> None:
    (top / "l0").write_text("end")
    for n in range(1, 42):
        (top / f"l{n}").symlink_to(f"l{n - 1}")
    root = FolderRoot(top)
    assert root.read("/l40", 9) == b"end"
    assert root.find("/l41") is None


def test_odd_names(top: Path) -> None:
    odd = ("new\nline", " blank ", "-rf", "$(touch x)", "\udcff\udcfe", "ä", ";'\"")
    for name in odd:
        (top / "opt" / name).write_text(name, errors="surrogateescape")
    root = FolderRoot(top)
    assert root.names("/opt") == tuple(sorted(odd))
    for name in odd:
        assert root.read(f"/opt/{name}", 99) == os.fsencode(name)
    assert {e.path for e in root.files("/opt")} == {f"/opt/{name}" for name in odd}


def test_neither_fifo_nor_socket_nor_device_is_opened(top: Path) -> None:
    os.mkfifo(top / "usr/lib/libfifo.so")
    with contextlib.suppress(OSError):  # only root may make one
        os.mknod(top / "usr/lib/libdevice.so", stat.S_IFCHR | 0o600, os.makedev(1, 1))
        found = FolderRoot(top).find("/lib/libdevice.so")
        assert found is not None
        assert found.kind == "other"
    (top / "opt/null").symlink_to("/dev/null")
    root = FolderRoot(top)
    found = root.find("/lib/libfifo.so")
    assert found is not None
    assert found.kind == "other"
    with pytest.raises(RootError, match="not a regular file"):
        root.read("/lib/libfifo.so", 1)
    with pytest.raises(ElfError, match="not a regular file"):
        root.elf("/lib/libfifo.so")
    assert root.find("/opt/null") is None
    assert found.path not in {e.path for e in root.files()}


def test_sparse_file_costs_nothing(top: Path) -> None:
    with (top / "usr/lib/libhuge.so").open("wb") as file:
        file.truncate(10 << 30)
    root = FolderRoot(top)
    with pytest.raises(ElfError, match="not an ELF file"):
        root.elf("/lib/libhuge.so")
    assert root.read("/lib/libhuge.so", 3) == b"\0\0\0"


def test_files_each_once_and_none_of_the_kernel(top: Path) -> None:
    os.link(top / "etc/os-release", top / "opt/hard")
    (top / "proc/1").mkdir(parents=True)
    (top / "proc/1/maps").write_text("")
    (top / "opt/all").symlink_to("/")
    found = [e.path for e in FolderRoot(top).files()]
    assert found == [RELEASE, LIBX]
    assert [e.path for e in FolderRoot(top).files("/opt")] == ["/opt/hard"]
    assert list(FolderRoot(top).files("/none")) == []


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_deep_and_wide(top: Path) -> None:
    here = os.open(top, os.O_RDONLY)
    for _ in range(2100):  # deeper than any path may be long
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    for n in range(200):
        (top / f"opt/{n}/x").mkdir(parents=True)
        (top / f"opt/{n}/x/f").write_text("")
    root = FolderRoot(top)
    before = open_files()
    assert sum(1 for _ in root.files()) == 202
    assert open_files() - before < 70
    assert root.find("/opt/7/x/f") is not None
    del root
    assert open_files() <= before
    subprocess.run(["rm", "-rf", top / "d"], check=True)


def test_elf_is_parsed_once_per_file(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    real = reader.parse_with

    def noted(name: str, size: int, pread: Callable[[int, int], bytes]) -> Elf:
        parsed.append(name)
        return real(name, size, pread)

    soname = reader.read_elf(LIBC).soname
    monkeypatch.setattr(image_root, "parse_with", noted)
    root = FolderRoot(top)
    assert root.elf("/lib/libx.so").soname == soname
    assert root.elf(LIBX) is root.elf("/lib/libx.so")
    with pytest.raises(ElfError, match="not an ELF file"):
        root.elf("/etc/os-release")
    with pytest.raises(ElfError, match="not an ELF file"):
        root.elf("/etc/os-release")
    assert parsed == [LIBX, RELEASE]
    with pytest.raises(ElfError) as none:
        root.elf("/none")
    assert isinstance(none.value.__cause__, OSError)  # the loader looks further


def test_a_folder_that_is_swapped_for_a_link(top: Path, tmp_path: Path) -> None:
    """What was found as a folder or a file is a link to the outside when it is opened."""
    (tmp_path / "os-release").write_text("outside")
    root = FolderRoot(top)
    entry = root.find("/etc/os-release")
    assert entry is not None
    fresh = FolderRoot(top)
    (top / "etc").rename(top / "old")
    (top / "etc").symlink_to(tmp_path)
    with pytest.raises(OSError, match="Not a directory"), fresh._opened(entry):
        pass
    (top / "etc").unlink()
    (top / "etc").mkdir()
    (top / "etc/os-release").symlink_to(tmp_path / "os-release")
    with pytest.raises(RootError, match="not a regular file any more"), fresh._opened(entry):
        pass
    assert root.read("/etc/os-release", 99) == b"ID=debian\n"  # of the folder that it was


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Root may read everything; this takes that away for a while."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_unreadable_files_are_reported(top: Path) -> None:
    (top / "opt/closed").mkdir()
    (top / "opt/closed/f").write_text("")
    (top / "opt/closed").chmod(0)
    (top / "etc/shadow").write_text("")
    (top / "etc/shadow").chmod(0)
    root = FolderRoot(top)
    with ordinary_user():
        assert RELEASE in {e.path for e in root.files()}
        assert root.find("/opt/closed/f") is None
        with pytest.raises(RootError, match="Permission denied"):
            root.read("/etc/shadow", 1)
        with pytest.raises(ElfError) as closed:
            root.elf("/etc/shadow")
        assert isinstance(closed.value.__cause__, OSError)
        closed_folder = "/opt/closed"
        assert root.unread() == ("/etc/shadow", closed_folder, f"{closed_folder}/f")


def test_open_root_refuses(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        open_root(tmp_path / "none")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UsageError):
        open_root(tmp_path / "loop")


SWAPPER = """
import os, sys
os.chdir(sys.argv[1])
while True:
    for name in ("real", "link"):
        os.rename(name, "place")
        os.rename("place", name)
"""


def test_nobody_escapes_while_it_is_changed(top: Path, tmp_path: Path) -> None:
    """What is a folder, a link to the outside, and nothing, in turn and all the while."""
    (tmp_path / "f").write_text("outside")
    (top / "real").mkdir()
    (top / "real/f").write_text("inside")
    (top / "link").symlink_to(tmp_path)
    swapper = subprocess.Popen([sys.executable, "-c", SWAPPER, top])
    seen = set()
    try:
        for _ in range(4000):
            root = FolderRoot(top)
            with contextlib.suppress(RootError):
                seen.add(root.read("/place/f", 99))
            seen |= {entry.path.encode() for entry in root.files("/place")}
    finally:
        swapper.kill()
        swapper.wait()
    assert seen <= {b"inside", b"/place/f"}
