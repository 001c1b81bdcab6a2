"""Files laid over a root: the loader's view of a guest with the graft in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.binary.elf import reader
from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.image.folder import FolderRoot
from mpigraft.binary.image.over import OverlayRoot
from mpigraft.binary.image.root import Link, RootError

LOADER = reader.read_elf("/lib64/ld-linux-x86-64.so.2")
OTHER = reader.parse(Path("/lib64/ld-linux-x86-64.so.2").read_bytes(), "other")


@pytest.fixture
def base(tmp_path: Path) -> FolderRoot:
    top = tmp_path / "top"
    (top / "usr/lib").mkdir(parents=True)
    (top / "lib").symlink_to("usr/lib")
    (top / "usr/lib/libmpi.so.40.1").write_text("the guest's own")
    (top / "usr/lib/libmpi.so.40").symlink_to("libmpi.so.40.1")
    (top / "usr/lib/libgone.so").symlink_to("/.graft/lib/libnew.so")
    (top / "usr/lib/libz.so.1").write_text("z")
    return FolderRoot(top)


def test_a_target_is_followed_as_a_bind_is(base: FolderRoot) -> None:
    over = OverlayRoot(base, {"/lib/libmpi.so.40": LOADER})
    for path in ("/lib/libmpi.so.40", "/usr/lib/libmpi.so.40.1"):
        assert over.elf(path) is LOADER
        found = over.find(path)
        assert found is not None
        assert (found.path, found.kind) == ("/usr/lib/libmpi.so.40.1", "file")
    assert over.entry_in("/usr/lib", "libmpi.so.40") == Link("libmpi.so.40.1")
    assert over.read("/lib/libz.so.1", 9) == b"z"
    assert base.read("/lib/libmpi.so.40", 3) == b"the"
    with pytest.raises(ElfError, match="not an ELF file"):
        over.elf("/lib/libz.so.1")


def test_what_is_not_there_appears_with_its_folders(base: FolderRoot) -> None:
    over = OverlayRoot(base, {"/.graft/lib/libnew.so": LOADER, "/lib/new/liba.so": OTHER})
    assert over.elf("/.graft/lib/libnew.so") is LOADER
    assert over.elf("/lib/libgone.so") is LOADER  # a link that dangled
    assert over.elf("/usr/lib/new/../new/liba.so") is OTHER
    assert over.names("/") == (".graft", "lib", "usr")
    assert over.names("/.graft") == ("lib",)
    assert over.names("/lib/new") == ("liba.so",)
    assert over.find("/.graft/lib/libnew.so/x") is None
    assert over.find("/.graft/none") is None
    assert {e.path for e in over.files()} == {
        *("/.graft/lib/libnew.so", "/usr/lib/new/liba.so"),
        *("/usr/lib/libmpi.so.40.1", "/usr/lib/libz.so.1"),
    }
    with pytest.raises(ElfError) as none:
        over.elf("/.graft/none")
    assert isinstance(none.value.__cause__, OSError)


def test_one_file_under_two_targets_is_one_for_the_loader(base: FolderRoot) -> None:
    over = OverlayRoot(base, {"/a": LOADER, "/b": LOADER, "/c": OTHER})
    a, b, c = (over.find(p).identity for p in ("/a", "/b", "/c"))  # type: ignore[union-attr]
    assert a == b != c


def test_bytes_come_from_the_source(base: FolderRoot, tmp_path: Path) -> None:
    (tmp_path / "host").write_text("the host's")
    over = OverlayRoot(
        base, {"/lib/libz.so.1": LOADER, "/n": OTHER}, {"/lib/libz.so.1": tmp_path / "host"}
    )
    assert over.read("/usr/lib/libz.so.1", 8) == b"the host"
    found = over.find("/lib/libz.so.1")
    assert found is not None
    assert (found.size, found.source) == (10, tmp_path / "host")
    with pytest.raises(RootError, match="only its ELF facts"):
        over.read("/n", 1)


@pytest.mark.parametrize(
    "targets",
    [("/lib",), ("/lib/libz.so.1/x",), ("/a", "/a/b"), ("/a/b", "/a"), ("/",), ("/../x",)],
)
def test_targets_that_cannot_be(base: FolderRoot, targets: tuple[str, ...]) -> None:
    with pytest.raises(RootError):
        OverlayRoot(base, dict.fromkeys(targets, LOADER))


def test_over_another_one(base: FolderRoot) -> None:
    first = OverlayRoot(base, {"/x/a": LOADER})
    second = OverlayRoot(first, {"/x/b": OTHER, "/x/a": OTHER})
    assert second.elf("/x/a") is second.elf("/x/b") is OTHER
    assert first.elf("/x/a") is LOADER
    assert second.names("/x") == ("a", "b")
