"""An image in one tar file: an OCI archive, or what `docker save` and `podman save` write.

Every blob is checked against its digest before it is used.
Sources: OCI image specification 1.1, "Image Layout", "Image Manifest", "Image Configuration";
moby's image/spec/v1.2 for manifest.json of docker save.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import posixpath
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpigraft.binary.image.layers import Layer, rows
from mpigraft.binary.image.root import ImageConfig, RootError
from mpigraft.binary.image.streams import Blob, File, Plain
from mpigraft.binary.image.tar import members
from mpigraft.binary.image.tree import TreeRoot
from mpigraft.core.errors import UsageError

MAX_JSON = 1 << 23  # bytes of a manifest or a configuration
MAX_BLOBS = 1 << 16
MAX_LAYERS = 256  # engines refuse more than 127 or so
MACHINES = {"amd64": "x86_64", "arm64": "aarch64", "386": "i386", "loong64": "loongarch64"}


@dataclass(frozen=True, slots=True)
class ImageArchive:
    """A tar file as named blobs."""

    path: Path
    blobs: dict[str, Blob]

    def blob(self, name: str) -> Blob:
        """Give a blob by name. Raises RootError when the archive lacks it."""
        member = self.blobs.get(posixpath.normpath(name))
        if member is None:
            raise RootError(f"{self.path}: it has no {name}")
        return member

    def json(self, name: str, digest: str = "") -> Any:
        """Read a document, and check its SHA-256 where one is given. Raises RootError."""
        data = self.blob(name).all(MAX_JSON)
        if digest and hashlib.sha256(data).hexdigest() != digest:
            raise RootError(f"{self.path}: {name} does not match its digest")
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise RootError(f"{self.path}: {name}: {error}") from error


def archive(path: Path) -> ImageArchive:
    """Read the members of a tar file. Raises RootError when it is broken; OSError."""
    file = File.open(path)
    whole = Blob(file, 0, os.fstat(file.handle).st_size, str(path))
    if whole.packed():
        raise UsageError.of("archive-compressed", path=path)
    blobs: dict[str, Blob] = {}
    links: dict[str, str] = {}
    for member in members(Plain(whole), str(path)):
        name = posixpath.normpath(member.name)
        if len(blobs) + len(links) == MAX_BLOBS:
            raise RootError(f"{path}: more than {MAX_BLOBS} files, where an image has a few")
        if member.kind == "file":
            blobs[name] = Blob(file, member.at, member.size, f"{path}: {name}")
        elif member.kind in ("link", "hard"):  # docker save had one for a layer that comes twice
            folder = posixpath.dirname(name) if member.kind == "link" else ""
            links[name] = posixpath.normpath(posixpath.join(folder, member.target))
    blobs |= {name: blobs[target] for name, target in links.items() if target in blobs}
    return ImageArchive(path, blobs)


@dataclass(frozen=True, slots=True)
class Image:
    """One image of an archive, before its layers are read."""

    config: dict[str, Any]
    layers: tuple[Layer, ...] = field(repr=False)


def open_image(path: Path, architecture: str = "") -> TreeRoot:
    """Open the image of an archive; of several the one for `architecture` (as `uname -m`), else for
    this machine. Raises RootError when it is broken, UsageError when not exactly one matches.
    """
    names = archive(path)
    if "index.json" in names.blobs:
        image = _oci(names, architecture or platform.machine())
    elif "manifest.json" in names.blobs:
        image = _docker(names)
    else:
        raise UsageError.of("archive-not-image", path=path)
    root = TreeRoot(str(path), _image_config(image.config))
    for layer in image.layers:
        root.add(*rows(layer))
    return root


# ------------------------------------------------------------------ OCI layout


def _oci(names: ImageArchive, architecture: str) -> Image:
    manifests = _manifests(names)
    fits = manifests if len(manifests) == 1 else [(a, m) for a, m in manifests if a == architecture]
    if len(fits) != 1:
        listed = ", ".join(a or "unknown" for a, _ in manifests)
        raise UsageError.of(
            "archive-many-images",
            path=names.path,
            count=len(manifests),
            architectures=listed or "no machine",
            fitting=len(fits),
            architecture=architecture,
        )
    manifest = fits[0][1]
    layers = [_descriptor(names, layer) for layer in _bounded(names, manifest["layers"])]
    config = _document(names, manifest.get("config"))
    return Image(config, tuple(Layer(names.blob(name), digest) for name, digest in layers))


def _manifests(names: ImageArchive) -> list[tuple[str, dict[str, Any]]]:
    """List (architecture, manifest) of all images, each once, those of nested indexes too."""
    index = names.json("index.json")
    listed = _get(index, "manifests")
    rest = list(listed) if isinstance(listed, list) else []
    digests: set[str] = set()  # an index may name itself
    manifests: list[tuple[str, dict[str, Any]]] = []
    for descriptor in rest:  # grows while it is walked
        name, digest = _descriptor(names, descriptor)
        if digest in digests or name not in names.blobs:  # only one of several may have been saved
            continue
        digests.add(digest)
        document = _document(names, descriptor)
        if isinstance(document.get("manifests"), list):
            rest += document["manifests"]
        elif isinstance(document.get("layers"), list):
            architecture = _get(descriptor, "platform", "architecture")
            if architecture != "unknown":  # attestations are beside images as if they were some
                architecture = architecture or _get(
                    _document(names, document.get("config")), "architecture"
                )
                manifests.append((_machine(architecture), document))
    return manifests


def _descriptor(names: ImageArchive, descriptor: Any) -> tuple[str, str]:
    """Give (name of the blob, its SHA-256 in hex)."""
    digest = _get(descriptor, "digest")
    if not isinstance(digest, str) or not (hit := re.fullmatch(r"sha256:([0-9a-f]{64})", digest)):
        raise RootError(f"{names.path}: {digest!r} where a SHA-256 should be")
    return f"blobs/sha256/{hit[1]}", hit[1]


def _document(names: ImageArchive, descriptor: Any) -> dict[str, Any]:
    name, digest = _descriptor(names, descriptor)
    return _object(names, names.json(name, digest), name)


# ------------------------------------------------------------------ docker save


def _docker(names: ImageArchive) -> Image:
    images = names.json("manifest.json")
    if not isinstance(images, list) or len(images) != 1:
        count = len(images) if isinstance(images, list) else "no"
        raise UsageError.of("archive-several-images", path=names.path, count=count)
    place, listed = _get(images[0], "Config"), _get(images[0], "Layers")
    if not isinstance(place, str) or not isinstance(listed, list):
        raise RootError(f"{names.path}: its manifest.json names no configuration and layers")
    digest = re.search(r"(?:^|/)([0-9a-f]{64})(?:\.json)?$", place)
    config = _object(names, names.json(place, digest[1] if digest else ""), place)
    sums = _get(config, "rootfs", "diff_ids")
    if not isinstance(sums, list) or len(sums) != len(_bounded(names, listed)):
        raise RootError(f"{names.path}: {len(listed)} layers, but not as many digests of them")
    pairs = zip(map(str, listed), sums, strict=True)
    return Image(
        config,
        tuple(
            Layer(names.blob(name), _descriptor(names, {"digest": sum_})[1], of_content=True)
            for name, sum_ in pairs
        ),
    )


# ------------------------------------------------------------------ JSON that is not trusted


def _get(document: Any, *keys: str) -> Any:
    """Give document[key][key]..., None where a key is missing."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _object(names: ImageArchive, document: Any, name: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise RootError(f"{names.path}: {name} is not a JSON object")
    return document


def _bounded(names: ImageArchive, layers: list[Any]) -> list[Any]:
    if len(layers) > MAX_LAYERS:
        raise RootError(f"{names.path}: {len(layers)} layers, {MAX_LAYERS} at most are expected")
    return layers


def _machine(architecture: Any) -> str:
    """Give the architecture as `uname -m`; OCI has Go's names."""
    return MACHINES.get(architecture, architecture) if isinstance(architecture, str) else ""


def _image_config(config: dict[str, Any]) -> ImageConfig:
    pairs = [e.partition("=") for e in _strings(_get(config, "config", "Env"))]
    return ImageConfig(
        environment=tuple((name, value) for name, equals, value in pairs if name and equals),
        architecture=_machine(config.get("architecture")),
        entrypoint=_strings(_get(config, "config", "Entrypoint")),
    )


def _strings(value: Any) -> tuple[str, ...]:
    """Select strings without NUL, which no process can take."""
    if not isinstance(value, list):
        return ()
    return tuple(v for v in value if isinstance(v, str) and "\0" not in v)
