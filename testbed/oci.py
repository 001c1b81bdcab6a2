"""An OCI archive of a root filesystem, in two layers, as a build with two steps makes it.

Written here and not by podman, so that its digests do not change with podman's version, and so
that it has in it what images in the wild have: a file and a folder's content that the second
layer takes away again.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, cast

MEDIA = "application/vnd.oci.image"
LATER = ("opt/app", "opt/app-mpich")  # what the second layer brings
GONE = "opt/removed"  # a file of the first layer that the second takes away
EMPTIED = "opt/emptied"  # a folder whose content it replaces by one file, "new"
Layer = Callable[[tarfile.TarFile], None]


def write(root_tar: Path, architecture: str, to: Path) -> None:
    """Write `to` from the tar of a root; `architecture` as Debian and OCI call it."""
    with tarfile.open(to, "w") as archive:
        layers, contents = [], []
        for fill in (_first(root_tar), _second(root_tar)):
            descriptor, content = _layer(archive, fill)
            layers.append(descriptor)
            contents.append(content)
        config = {
            "architecture": architecture,
            "os": "linux",
            "config": {"Env": ["PATH=/usr/bin:/bin", "BUILT_BY=mpigraft-tests"], "Cmd": ["sh"]},
            "rootfs": {"type": "layers", "diff_ids": contents},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{MEDIA}.manifest.v1+json",
            "config": _json(archive, config, "config"),
            "layers": layers,
        }
        index = {
            "schemaVersion": 2,
            "mediaType": f"{MEDIA}.index.v1+json",
            "manifests": [
                {
                    **_json(archive, manifest, "manifest"),
                    "platform": {"architecture": architecture, "os": "linux"},
                }
            ],
        }
        _member(archive, "index.json", json.dumps(index).encode())
        _member(archive, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')


def _first(root_tar: Path) -> Layer:
    def fill(layer: tarfile.TarFile) -> None:
        _copy(root_tar, layer, lambda name: not name.startswith(LATER))
        for name in (GONE, f"{EMPTIED}/old"):
            _member(layer, name, b"of the first layer\n")

    return fill


def _second(root_tar: Path) -> Layer:
    def fill(layer: tarfile.TarFile) -> None:
        folder, _, name = GONE.rpartition("/")
        _member(layer, f"{folder}/.wh.{name}", b"")
        _member(layer, f"{EMPTIED}/.wh..wh..opq", b"")
        _member(layer, f"{EMPTIED}/new", b"of the second layer\n")
        _copy(root_tar, layer, lambda name: name.startswith(LATER))

    return fill


def _copy(root_tar: Path, layer: tarfile.TarFile, wanted: Callable[[str], bool]) -> None:
    with tarfile.open(root_tar) as root:
        for member in cast(Iterable[tarfile.TarInfo], root):
            name = member.name.removeprefix("./").strip("/")
            # Devices need a privilege to unpack, and every engine brings its own /dev.
            if wanted(name) and not member.isdev():
                layer.addfile(member, root.extractfile(member) if member.isreg() else None)


def _layer(archive: tarfile.TarFile, fill: Layer) -> tuple[dict[str, Any], str]:
    """Its descriptor, and the digest of what it has in it before it is compressed."""
    with tempfile.TemporaryFile() as plain, tempfile.TemporaryFile() as packed:
        with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as layer:
            fill(layer)
        # Level 1: these lie in a cache and are read once, and are slow to make as it is.
        plain.seek(0)
        with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1, mtime=0) as squeezed:
            while data := plain.read(1 << 20):
                squeezed.write(data)
        return _blob(archive, packed, "layer.v1.tar+gzip"), _digest(plain)


def _json(archive: tarfile.TarFile, value: dict[str, Any], kind: str) -> dict[str, Any]:
    return _blob(archive, io.BytesIO(json.dumps(value).encode()), f"{kind}.v1+json")


def _blob(archive: tarfile.TarFile, data: IO[bytes], kind: str) -> dict[str, Any]:
    digest = _digest(data)
    member = tarfile.TarInfo(f"blobs/{digest.replace(':', '/')}")
    member.size = data.seek(0, io.SEEK_END)
    data.seek(0)
    archive.addfile(member, data)
    return {"mediaType": f"{MEDIA}.{kind}", "digest": digest, "size": member.size}


def _digest(data: IO[bytes]) -> str:
    data.seek(0)
    digest = hashlib.sha256()
    while block := data.read(1 << 20):
        digest.update(block)
    return f"sha256:{digest.hexdigest()}"


def _member(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))
