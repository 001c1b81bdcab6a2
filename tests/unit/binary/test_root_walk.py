"""The walk along links, with the kernel as the oracle: openat2(2) with RESOLVE_IN_ROOT."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpigraft.binary.image import oci as oci_module
from mpigraft.binary.image import root as roots
from mpigraft.binary.image import tar as tar_module
from mpigraft.binary.image.folder import FolderRoot
from mpigraft.binary.image.opening import open_root
from mpigraft.binary.image.root import RootError
from tests.builders.images import oci
from tests.builders.layers import file, folder, link

OPENAT2 = 437  # on every architecture
RESOLVE_IN_ROOT = 0x10
LIBC = ctypes.CDLL(None, use_errno=True)


def kernel(top: int, path: str) -> tuple[int, int] | None:
    """(device, inode) of what a process with its root at `top` would open."""
    how = struct.pack("<QQQ", os.O_PATH | os.O_CLOEXEC, 0, RESOLVE_IN_ROOT)
    handle = LIBC.syscall(OPENAT2, top, path.encode(), how, len(how))
    if handle < 0:
        return None
    seen = os.fstat(handle)
    os.close(handle)
    return seen.st_dev, seen.st_ino


def has_openat2() -> bool:
    handle = os.open("/", os.O_PATH)
    try:
        return platform.system() == "Linux" and kernel(handle, "/") is not None
    finally:
        os.close(handle)


names = st.sampled_from(["a", "b", "c"])
paths = st.builds(
    lambda start, parts, end: start + "/".join(parts) + end,
    st.sampled_from(["", "/", "//"]),
    st.lists(st.one_of(names, st.sampled_from(["..", ".", ""])), min_size=1, max_size=6),
    st.sampled_from(["", "", "/", "/.", "/.."]),
)
entries = st.tuples(
    st.lists(names, min_size=1, max_size=3).map("/".join),
    st.one_of(st.sampled_from(["file", "folder"]), paths.map(lambda p: f"-> {p}")),
)


@pytest.mark.skipif(not has_openat2(), reason="Linux has openat2 since 5.6")
@given(st.lists(entries, max_size=8), st.lists(paths, min_size=1, max_size=5))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_as_the_kernel_walks(
    tmp_path: Path, planned: list[tuple[str, str]], asked: list[str]
) -> None:
    top = tmp_path / "top"
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    items = []
    for path, what in planned:
        place = top / path
        if (
            not place.parent.is_dir()
            or place.parent.resolve() != place.parent
            or os.path.lexists(place)
        ):
            continue
        if what == "file":
            place.touch()
            items.append(file(path))
        elif what == "folder":
            place.mkdir()
            items.append(folder(path))
        elif what != "-> ":
            place.symlink_to(what[3:])
            items.append(link(path, what[3:]))
    root = FolderRoot(top)
    image = open_root(oci(tmp_path / "image", [items]))
    handle = os.open(top, os.O_PATH)
    try:
        for path in asked:
            found, expected = root.find(f"/{path}"), kernel(handle, f"/{path}")
            assert (found is None) is (expected is None), path
            same = image.find(f"/{path}")
            assert (same and same.path) == (found and found.path), path
            if found is not None and found.path != "/":
                assert found.identity == expected
                assert found.source is not None
                assert found.source.resolve() == found.source
    finally:
        os.close(handle)


def test_huge_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    (tmp_path / "top/d").mkdir(parents=True)
    for n in range(50):
        (tmp_path / f"top/d/{n}").touch()
    items = [file(f"{n}") for n in range(50)]
    image = oci(tmp_path / "image", [items[:30], items[30:]])
    with monkeypatch.context() as patch:
        patch.setattr(roots, "MAX_NAMES", 40)
        with pytest.raises(RootError, match="more than 40 names"):
            list(FolderRoot(tmp_path / "top").files())
    with monkeypatch.context() as patch:
        patch.setattr("mpigraft.binary.image.tree.MAX_NAMES", 40)
        with pytest.raises(RootError, match="more than 40 names"):
            open_root(image)
    with monkeypatch.context() as patch:
        patch.setattr(tar_module, "MAX_NAMES", 20)
        with pytest.raises(RootError, match="more than 20 members"):
            open_root(oci(tmp_path / "other", [items[10:]]))
    with monkeypatch.context() as patch:
        patch.setattr(oci_module, "MAX_BLOBS", 3)
        with pytest.raises(RootError, match="more than 3 files"):
            open_root(image)
    with monkeypatch.context() as patch:
        patch.setattr(oci_module, "MAX_LAYERS", 1)
        with pytest.raises(RootError, match="2 layers"):
            open_root(image)


def test_a_path_that_links_make_long(tmp_path: Path) -> None:
    """Each link is short enough; what they lead to is not."""
    items = [link(f"l{n}", "/".join(["d"] * 1500) + f"/../l{n + 1}") for n in range(3)]
    root = open_root(oci(tmp_path / "image", [[folder("/".join(["d"] * 200)), *items]]))
    assert root.find("/l0") is None
    assert root.find("/" + "d/" * 200) is not None
