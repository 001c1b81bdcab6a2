"""Images made by hand: OCI archives, docker save, SIF."""

from __future__ import annotations

import gzip
import hashlib
import json
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mpigraft.binary.image import streams
from mpigraft.binary.image.root import Root
from tests.builders.layers import Item, file, link, tar


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def packed(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)


CONFIG = {
    "architecture": "amd64",
    "config": {"Env": ["PATH=/bin", "A=b=c", "broken"], "Entrypoint": ["/bin/sh", "-c"]},
}


def zstd(data: bytes) -> bytes:
    return bytes(streams._zstd().compress(data))


def paths(root: Root) -> set[str]:
    return {entry.path for entry in root.files()}


class Blobs:
    """The blobs of an OCI layout by name, as they are put in."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}'}

    def put(self, data: bytes, **extra: Any) -> dict[str, Any]:
        """A descriptor of what was put."""
        self.files[f"blobs/sha256/{sha(data)}"] = data
        return {"digest": f"sha256:{sha(data)}", "size": len(data), **extra}

    def document(self, value: Any, **extra: Any) -> dict[str, Any]:
        return self.put(json.dumps(value).encode(), **extra)

    def image(
        self, layers: Iterable[bytes], config: Mapping[str, Any] = CONFIG, **extra: Any
    ) -> dict[str, Any]:
        manifest = {"config": self.document(config), "layers": [self.put(x) for x in layers]}
        return self.document(manifest, **extra)

    def write(self, path: Path, manifests: list[dict[str, Any]]) -> Path:
        self.files["index.json"] = json.dumps({"manifests": manifests}).encode()
        path.write_bytes(tar(file(name, data) for name, data in self.files.items()))
        return path


def oci(
    path: Path,
    layers: Iterable[Iterable[Item]],
    pack: Callable[[bytes], bytes] = packed,
    config: Mapping[str, Any] = CONFIG,
) -> Path:
    """An OCI archive of one image."""
    blobs = Blobs()
    return blobs.write(path, [blobs.image([pack(tar(x)) for x in layers], config)])


def docker_save(
    path: Path, layers: Iterable[Iterable[Item]], pack: Callable[[bytes], bytes] = bytes
) -> Path:
    """As podman and docker before 25 wrote it: a layer that comes again is a link."""
    tars = [tar(x) for x in layers]
    config = {**CONFIG, "rootfs": {"diff_ids": [f"sha256:{sha(x)}" for x in tars]}}
    text = json.dumps(config).encode()
    names, items = [], [file(f"{sha(text)}.json", text)]
    for n, data in enumerate(tars):
        names.append(f"{n}/layer.tar")
        first = tars.index(data)
        items.append(
            file(names[-1], pack(data)) if first == n else link(names[-1], f"../{first}/layer.tar")
        )
    manifest = [{"Config": f"{sha(text)}.json", "RepoTags": ["x:latest"], "Layers": names}]
    path.write_bytes(tar([*items, file("manifest.json", json.dumps(manifest).encode())]))
    return path


def descriptor(kind: int, offset: int, size: int, system: int, use: int, used: int = 1) -> bytes:
    head = struct.pack("<iBIIIqq40x128x", kind, used, 1, 0, 0, offset, size)
    return head + struct.pack("<ii376x", system, use)


def sif(
    path: Path,
    squashfs: bytes,
    *,
    descriptors: list[bytes] | None = None,
    total: int | None = None,
    version: bytes = b"01",
    architecture: bytes = b"02",
) -> Path:
    """A SIF with one partition at 64 KiB, unless `descriptors` says otherwise."""
    if descriptors is None:
        descriptors = [descriptor(0x4004, 1 << 16, len(squashfs), 1, 2)]
    head = struct.pack(
        "<32s10s3s3s16s8q",
        *(b"#!/usr/bin/env run-singularity\n", b"SIF_MAGIC", version, architecture, b""),
        *(0, 0, 0, len(descriptors) if total is None else total),
        *(4096, 585 * len(descriptors), 1 << 16, len(squashfs)),
    )
    table = head.ljust(4096, b"\0") + b"".join(descriptors)
    path.write_bytes(table.ljust(1 << 16, b"\0") + squashfs)
    return path
