"""Archives that are out to harm, broken, or not what their digests say."""

from __future__ import annotations

import contextlib
import io
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.image import layers, streams
from mpigraft.binary.image.opening import open_root
from mpigraft.binary.image.root import Link, RootEntry, RootError
from mpigraft.binary.image.tree import TreeRoot
from mpigraft.core import budget
from mpigraft.core.errors import MpigraftError, UsageError
from tests.builders.images import CONFIG, Blobs, docker_save, oci, packed, paths, sha, zstd
from tests.builders.layers import BASE, LOADER, Item, file, folder, hard, link, tar


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([file("../../etc/x", b"")], "leads out"),
        ([file("a/../../x", b"")], "leads out"),
        ([hard("x", "../../../etc/passwd")], "leads out"),
        ([hard("x", "/etc/passwd")], "no such file"),
        ([folder("d"), hard("x", "d")], "no such file"),
        ([link("l", "/"), hard("x", "l/etc/passwd")], "no such file"),
        ([file("/".join(["d"] * 300), b"")], "folders deep"),
    ],
)
def test_members_that_lead_out(tmp_path: Path, items: list[Item], says: str) -> None:
    with pytest.raises(RootError, match=says):
        open_root(oci(tmp_path / "image", [items]))


def test_links_that_lead_out_stay_inside(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    items = [
        link("evil", "../../../../../../../.." + str(tmp_path / "out")),
        file("evil/x", b""),
        link("passwd", "/etc/passwd"),
        link("loop", "loop"),
        file("loop/x", b""),
        file("\udcff\n ;$(x)", b""),
    ]
    root = open_root(oci(tmp_path / "image", [items]))
    assert list((tmp_path / "out").iterdir()) == []
    assert root.find("/passwd") is None
    assert root.find("/loop/x") is not None
    assert root.find("/evil/x") is not None
    assert "\udcff\n ;$(x)" in root.names("/")


def bomb(size: int) -> bytes:
    """A gzip file of so many zeros, in a hundred kilobytes or so."""
    out = io.BytesIO()
    engine = zlib.compressobj(9, wbits=31)
    for _ in range(size >> 20):
        out.write(engine.compress(bytes(1 << 20)))
    out.write(engine.flush())
    return out.getvalue()


def test_bombs_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "FREE", 1 << 20)
    blobs = Blobs()
    item = file("etc/x", b"")
    item[0].size = 1 << 26
    data = bomb(1 << 26)
    path = blobs.write(tmp_path / "image", [blobs.image([packed(item[0].tobuf()) + data])])
    with pytest.raises(RootError, match="unpack to more than"):
        open_root(path)


def test_a_packed_layer_has_no_more_names_than_fit_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written(name: str, layer: bytes) -> Path:
        blobs = Blobs()
        return blobs.write(tmp_path / name, [blobs.image([layer])])

    items = [file(f"f{n:04}") for n in range(2000)]
    plain, small = tar(items), packed(tar(items))
    monkeypatch.setattr(budget, "ITEMS", 10)
    assert len(paths(open_root(written("plain", plain)))) == 2000
    with pytest.raises(UsageError, match=rf"more than {10 + len(small) // 32:,} entries") as error:
        open_root(written("small", small))
    assert error.value.code == "file-over-budget"
    assert str(tmp_path / "small") in error.value.message


@pytest.mark.parametrize("pack", [packed, zstd], ids=["gzip", "zstd"])
def test_a_layer_of_endless_members_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes]
) -> None:
    """Each costs as much as its piece of the file that is left."""
    blobs = Blobs()
    several = pack(b"") * 9 + pack(tar([file("etc/x", b"1")]))
    path = blobs.write(tmp_path / "image", [blobs.image([several])])
    assert open_root(path).read("/etc/x", 9) == b"1"
    monkeypatch.setattr(budget, "ITEMS", 5)
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))  # without the kept layer
    with pytest.raises(UsageError, match="more than 5 entries") as error:
        open_root(path)
    assert error.value.code == "file-over-budget"


def test_folders_above_many_folders_are_entered_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = "/".join("d" * 50)
    items = [file(f"{deep}/f{n}/x") for n in range(100)]
    image = oci(tmp_path / "image", [items])
    looked: list[str] = []
    entry_in = TreeRoot.entry_in

    def counted(root: TreeRoot, folder: str, name: str) -> RootEntry | Link | None:
        looked.append(name)
        return entry_in(root, folder, name)

    monkeypatch.setattr(TreeRoot, "entry_in", counted)
    root = open_root(image)
    assert len(looked) < 1000  # each of 100 folders would look up the 50 above it twice
    assert len(paths(root)) == 100


def test_a_huge_elf_of_zeros_takes_no_room(tmp_path: Path, home: Path) -> None:
    data = LOADER + bytes(1 << 26)
    root = open_root(oci(tmp_path / "image", [[file("x.so", data)]]))
    (kept,) = (home / "cache/layers").iterdir()
    assert kept.stat().st_size > 1 << 26
    assert kept.stat().st_blocks * 512 < 1 << 21
    assert root.read("/x.so", 1 << 28) == data


def test_what_is_not_what_its_digest_says(tmp_path: Path) -> None:
    """Layers, manifests and configurations; also where the cache was never asked."""
    good = packed(tar(BASE))
    for part in ("layer", "manifest", "config"):
        blobs = Blobs()
        manifest = blobs.image([good])
        name = {
            "layer": f"blobs/sha256/{sha(good)}",
            "manifest": f"blobs/sha256/{manifest['digest'][7:]}",
            "config": f"blobs/sha256/{sha(json.dumps(CONFIG).encode())}",
        }[part]
        evil = {**CONFIG, "os": "evil"} if part == "config" else json.loads("{}")
        blobs.files[name] = (
            packed(tar([file("evil")])) if part == "layer" else json.dumps(evil).encode()
        )
        with pytest.raises(RootError, match=r"SHA-256|digest"):
            open_root(blobs.write(tmp_path / part, [manifest]))
    path = docker_save(tmp_path / "docker", [BASE])
    data = path.read_bytes()
    path.write_bytes(data.replace(b"ID=x\n", b"ID=y\n"))
    with pytest.raises(RootError, match="SHA-256"):
        open_root(path)


@pytest.mark.parametrize("pack", [packed, bytes, zstd], ids=["gzip", "plain", "zstd"])
def test_truncated_layers(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    whole = pack(tar(BASE))
    for keep in (len(whole) // 2 + 7, 10):  # zeros at its end may be missing
        blobs = Blobs()
        path = blobs.write(tmp_path / "image", [blobs.image([whole[:keep]])])
        with pytest.raises(RootError):
            open_root(path)


def test_truncated_archives(tmp_path: Path) -> None:
    whole = oci(tmp_path / "image", [BASE]).read_bytes()
    for keep in (600, len(whole) // 2):
        (tmp_path / "part").write_bytes(whole[:keep])
        with pytest.raises((RootError, UsageError)):
            open_root(tmp_path / "part")


def test_which_of_several(tmp_path: Path) -> None:
    blobs = Blobs()
    manifests = []
    for machine, go in (("one", "amd64"), ("two", "arm64"), ("none", "unknown")):
        layer = packed(tar([file(machine)]))
        config = {**CONFIG, "architecture": go}
        platform = {"platform": {"architecture": go}} if go != "arm64" else {}
        manifests.append(blobs.image([layer], config, **platform))
    inner = blobs.document({"manifests": manifests})
    path = blobs.write(tmp_path / "image", [inner, inner])
    assert paths(open_root(path, "x86_64")) == {"/one"}
    assert paths(open_root(path, "aarch64")) == {"/two"}
    with pytest.raises(UsageError, match="x86_64, aarch64; 0 of them for riscv64"):
        open_root(path, "riscv64")
    # One that is named, but was not saved.
    del blobs.files[f"blobs/sha256/{manifests[1]['digest'][7:]}"]
    assert paths(open_root(blobs.write(path, [inner]), "riscv64")) == {"/one"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "manifests",
                    "layers",
                    "config",
                    "digest",
                    "platform",
                    "Layers",
                    "Config",
                    "rootfs",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@given(json_values, st.sampled_from(["index.json", "manifest.json", "manifest", "config"]))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_documents_that_make_no_sense(tmp_path: Path, value: object, where: str) -> None:
    blobs = Blobs()
    if where == "manifest":
        path = blobs.write(tmp_path / "image", [blobs.document(value)])
    elif where == "config":
        path = blobs.write(tmp_path / "image", [blobs.image([], value)])  # type: ignore[arg-type]
    else:
        path = tmp_path / "image"
        path.write_bytes(tar([file(where, json.dumps(value).encode())]))
    with contextlib.suppress(RootError, UsageError):
        open_root(path)


def test_deep_json_and_indexes_that_go_round(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(tar([file("index.json", b"[" * 100_000)]))
    with pytest.raises(RootError):
        open_root(path)
    blobs = Blobs()
    index = blobs.document({"manifests": []})
    blobs.files[f"blobs/sha256/{index['digest'][7:]}"] = b'{"manifests": []}'
    below = [blobs.document({"manifests": [index] * 200, "n": n}) for n in range(200)]
    with pytest.raises(UsageError, match="0 images"):
        open_root(blobs.write(path, below * 5))


@given(st.integers(0, 1 << 16), st.integers(0, 255), st.sampled_from(["oci", "docker", "plain"]))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_byte_is_wrong(tmp_path: Path, at: int, value: int, form: str) -> None:
    make = {"oci": oci, "docker": docker_save, "plain": oci}[form]
    path = tmp_path / "image"
    make(path, [BASE[5:7]], pack=packed if form == "oci" else bytes)
    data = bytearray(path.read_bytes())
    data[at % len(data)] = value
    path.write_bytes(data)
    with contextlib.suppress(RootError, MpigraftError):
        for entry in open_root(path).files():
            with contextlib.suppress(RootError, ElfError):
                open_root(path).elf(entry.path)


def test_other_tars_and_packed_ones(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(tar(BASE))
    with pytest.raises(UsageError, match="not an image"):
        open_root(path)
    path.write_bytes(packed(oci(tmp_path / "image", [BASE]).read_bytes()))
    with pytest.raises(UsageError, match="whole file is compressed"):
        open_root(path)
    path.write_bytes(b"what is this")
    with pytest.raises(UsageError, match="neither a folder nor an image"):
        open_root(path)


def test_a_full_disk_is_an_error(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = oci(tmp_path / "image", [BASE])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(layers, "_keep", full)
    with pytest.raises(MpigraftError, match="No space left"):
        open_root(path)
    assert list((home / "cache/layers").iterdir()) == []
