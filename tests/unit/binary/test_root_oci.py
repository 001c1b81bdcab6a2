"""Images in archives: layers, whiteouts, digests, and archives that are out to harm."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpigraft.binary.elf import reader
from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.image import layers, streams
from mpigraft.binary.image.opening import open_root
from mpigraft.binary.image.root import ImageConfig, RootError
from mpigraft.core.errors import MpigraftError
from tests.builders.images import docker_save, oci, packed, paths, zstd
from tests.builders.layers import BASE, LOADER, Item, file, folder, hard, link, other, tar

UPPER = [
    file("opt/gone/new", b""),
    file("opt/gone/.wh..wh..opq"),
    file("opt/.wh.one"),
    file("opt/.wh.never"),
    file("none/.wh.x"),
    file("lib/liby.so", LOADER),  # through the link of the layer below
    hard("usr/lib/hard.so", "usr/lib/libx.so.1"),
    other("usr/lib/fifo.so", tarfile.FIFOTYPE),
]


@pytest.mark.parametrize("pack", [packed, bytes, zstd], ids=["gzip", "plain", "zstd"])
@pytest.mark.parametrize("write", [oci, docker_save])
def test_layers(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[..., Path],
    pack: Callable[[bytes], bytes],
) -> None:
    path = write(tmp_path / "image", [BASE, UPPER], pack=pack)
    for again in (False, True):
        if again:
            monkeypatch.setattr(layers, "_gather", None)  # all of it is in the cache now
        root = open_root(path)
        assert paths(root) == {
            *("/etc/ld.so.conf", "/etc/os-release", "/opt/gone/new", "/opt/text"),
            *("/usr/lib/hard.so", "/usr/lib/liby.so"),  # the first of a file's names
        }
        facts = root.elf("/lib/libx.so")
        assert facts is root.elf("/usr/lib/hard.so")
        assert facts.soname == reader.parse(LOADER, "").soname
        assert root.read("/usr/lib/liby.so", 1 << 30) == LOADER
        assert root.read("/etc/ld.so.conf", 7) == b"include"
        found = root.find("/lib/libx.so")
        assert found is not None
        assert (found.path, found.size, found.mode) == ("/usr/lib/libx.so.1", len(LOADER), 0o755)
        assert found.source is None
        assert root.names("/opt") == ("gone", "text")
        with pytest.raises(ElfError, match="not an ELF file"):
            root.elf("/opt/text")
        with pytest.raises(RootError, match="not kept"):
            root.read("/opt/text", 1)
        with pytest.raises(RootError, match="not a regular file"):
            root.read("/usr/lib/fifo.so", 1)
        assert root.unread() == ()
        assert root.config() == ImageConfig(
            (("PATH", "/bin"), ("A", "b=c")), "x86_64", ("/bin/sh", "-c")
        )


def test_a_cache_that_is_damaged_is_no_cache(tmp_path: Path, home: Path) -> None:
    path = oci(tmp_path / "image", [BASE])
    open_root(path)
    (kept,) = (home / "cache/layers").iterdir()
    for damage in (b"", b"x" * 100, kept.read_bytes()[:-30], b"[[1]]mpiglay1" + bytes(8)):
        kept.write_bytes(damage)
        assert open_root(path).read("/etc/os-release", 9) == b"ID=x\n"


def test_without_a_place_to_keep_anything(tmp_path: Path, home: Path) -> None:
    home.write_text("a file where the folder should be")
    root = open_root(oci(tmp_path / "image", [BASE]))
    assert root.read("/etc/os-release", 9) == b"ID=x\n"


def test_the_same_layer_in_another_file_is_read_there(tmp_path: Path) -> None:
    """Rows of a plain layer hold for the file that they were made of, not for its digest."""
    first = oci(tmp_path / "one", [BASE], pack=bytes)
    second = oci(tmp_path / "two", [[file("x")], BASE], pack=bytes)
    assert open_root(first).read("/etc/os-release", 9) == b"ID=x\n"
    first.unlink()
    assert open_root(second).read("/etc/os-release", 9) == b"ID=x\n"


def test_kinds_that_change_between_layers(tmp_path: Path) -> None:
    below = [file("a", b"f"), file("b/c/d", b"f"), link("l", "b"), file("etc/x", b"below")]
    above = [file("a/in", b""), file("b", b""), folder("l"), file("l/in", b""), link("etc", "l")]
    root = open_root(oci(tmp_path / "image", [below, above]))
    assert paths(root) == {"/a/in", "/b", "/l/in"}
    assert root.find("/etc/in") is not None
    assert root.find("/b/c/d") is None


names = st.sampled_from(["a", "b", "c"])
tree_paths = st.lists(names, min_size=1, max_size=3).map("/".join)


@given(st.lists(st.lists(st.tuples(tree_paths, st.sampled_from("fdwo")), max_size=6), max_size=4))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_flattened_as_the_specification_says(
    tmp_path: Path, plan: list[list[tuple[str, str]]]
) -> None:
    """f: a file, d: a folder, w: a whiteout of it, o: the folder is opaque."""
    model: dict[str, str] = {}

    def drop(path: str) -> None:
        for known in [k for k in model if k == path or k.startswith(f"{path}/")]:
            del model[known]

    written: list[list[Item]] = []
    for layer in plan:
        items: list[Item] = []
        for path, kind in layer:
            parent, _, name = path.rpartition("/")
            if kind == "w":
                items.append(file(f"{parent}/.wh.{name}" if parent else f".wh.{name}"))
                drop(path) if model.get(parent, "d") == "d" else None
            elif kind == "o":
                items.append(file(f"{path}/.wh..wh..opq"))
                for known in [k for k in model if k.startswith(f"{path}/")]:
                    del model[known]
        for path, kind in layer:
            if kind in "fd":
                items.append(file(path, b"x") if kind == "f" else folder(path))
                parents = path.split("/")[:-1]
                for n in range(len(parents)):
                    parent = "/".join(parents[: n + 1])
                    if model.get(parent) != "d":
                        drop(parent)
                        model[parent] = "d"
                if not (kind == "d" and model.get(path) == "d"):
                    drop(path)
                model[path] = kind
        written.append(items)
    root = open_root(oci(tmp_path / "image", written))
    assert paths(root) == {f"/{path}" for path, kind in model.items() if kind == "f"}
    for path, kind in model.items():
        found = root.find(f"/{path}")
        assert found is not None
        assert found.kind == {"f": "file", "d": "folder"}[kind]


def test_zstd_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = oci(tmp_path / "image", [BASE], pack=zstd)

    def nothing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(streams, "importlib", SimpleNamespace(import_module=nothing))
    with pytest.raises(MpigraftError, match=r"zstd is missing"):
        open_root(path)


def test_several_members_and_frames(tmp_path: Path) -> None:
    """gzip and zstd files may be put one behind another; zstd:chunked ends in a skippable one."""
    data = tar(BASE)
    skippable = b"\x50\x2a\x4d\x18" + (9).to_bytes(4, "little") + b"x" * 9
    for pack in (
        lambda d: packed(d[:1000]) + packed(d[1000:]) + bytes(512),
        lambda d: zstd(d[:1000]) + skippable + zstd(d[1000:]) + skippable,
    ):
        root = open_root(oci(tmp_path / "image", [BASE], pack=pack))
        assert root.read("/usr/lib/libx.so.1", len(data)) == LOADER
