"""An image in one tar file: an OCI archive, or what `docker save` and `podman save` write.

Every blob is held against its digest before anything of it is used.
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

from mpigraft.errors import UsageError
from mpigraft.roots import ImageConfig, RootError
from mpigraft.roots.layers import Layer, rows
from mpigraft.roots.streams import Blob, File, Plain
from mpigraft.roots.tar import members
from mpigraft.roots.tree import TreeRoot

MAX_JSON = 1 << 23  # bytes of a manifest or a configuration
MAX_BLOBS = 1 << 16
MAX_LAYERS = 256  # engines refuse more than 127 or so
MACHINES = {"amd64": "x86_64", "arm64": "aarch64", "386": "i386", "loong64": "loongarch64"}


@dataclass(frozen=True, slots=True)
class Archive:
    """A tar file as named blobs."""

    path: Path
    blobs: dict[str, Blob]

    def blob(self, name: str) -> Blob:
        """RootError when the archive lacks it."""
        found = self.blobs.get(posixpath.normpath(name))
        if found is None:
            raise RootError(f"{self.path}: it has no {name}")
        return found

    def json(self, name: str, digest: str = "") -> Any:
        """A document, held against its SHA-256 where one is given. RootError."""
        data = self.blob(name).all(MAX_JSON)
        if digest and hashlib.sha256(data).hexdigest() != digest:
            raise RootError(f"{self.path}: {name} is not what its digest says")
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise RootError(f"{self.path}: {name}: {error}") from error


def archive(path: Path) -> Archive:
    """The members of a tar file. RootError when it is broken; OSError."""
    file = File.open(path)
    whole = Blob(file, 0, os.fstat(file.handle).st_size, str(path))
    if whole.packed():
        raise UsageError(
            f"{path}: packed as a whole",
            why="its parts cannot be found without unpacking all of it",
            mend="unpack it (gunzip, zstd -d) and give the .tar file",
        )
    blobs: dict[str, Blob] = {}
    links: dict[str, str] = {}
    for member in members(Plain(whole), str(path)):
        name = posixpath.normpath(member.name)
        if len(blobs) + len(links) == MAX_BLOBS:
            raise RootError(f"{path}: more than {MAX_BLOBS} files, where an image has a few")
        if member.kind == "file":
            blobs[name] = Blob(file, member.at, member.size, f"{path}: {name}")
        elif member.kind in ("link", "hard"):  # docker save had one for a layer that comes twice
            beside = posixpath.dirname(name) if member.kind == "link" else ""
            links[name] = posixpath.normpath(posixpath.join(beside, member.target))
    blobs |= {name: blobs[target] for name, target in links.items() if target in blobs}
    return Archive(path, blobs)


@dataclass(frozen=True, slots=True)
class Image:
    """One image of an archive, before its layers are read."""

    config: dict[str, Any]
    layers: tuple[Layer, ...] = field(repr=False)


def open_image(path: Path, architecture: str = "") -> TreeRoot:
    """The image of an archive; of several that for `architecture` (as `uname -m`), else for this
    machine's. RootError when it is broken; UsageError when there is not one to choose.
    """
    names = archive(path)
    if "index.json" in names.blobs:
        image = _oci(names, architecture or platform.machine())
    elif "manifest.json" in names.blobs:
        image = _docker(names)
    else:
        raise UsageError(
            f"{path}: a tar file, but no image: it has neither index.json nor manifest.json",
            mend="save it with `podman save`, or unpack it and give the folder",
        )
    root = TreeRoot(str(path), _image_config(image.config))
    for layer in image.layers:
        root.add(*rows(layer))
    return root


# ------------------------------------------------------------------ OCI layout


def _oci(names: Archive, architecture: str) -> Image:
    found = _manifests(names)
    fits = found if len(found) == 1 else [(a, m) for a, m in found if a == architecture]
    if len(fits) != 1:
        listed = ", ".join(a or "unknown" for a, _ in found)
        raise UsageError(
            f"{names.path}: {len(found)} images, for {listed or 'no machine'}; "
            f"{len(fits)} of them for {architecture}",
            mend="save the one image that is meant",
        )
    manifest = fits[0][1]
    layers = [_descriptor(names, layer) for layer in _bounded(names, manifest["layers"])]
    config = _document(names, manifest.get("config"))
    return Image(config, tuple(Layer(names.blob(name), digest) for name, digest in layers))


def _manifests(names: Archive) -> list[tuple[str, dict[str, Any]]]:
    """(architecture, manifest) of all images, those of indexes within the index too, each once."""
    index = names.json("index.json")
    listed = _get(index, "manifests")
    rest = list(listed) if isinstance(listed, list) else []
    seen: set[str] = set()  # an index may name itself
    found: list[tuple[str, dict[str, Any]]] = []
    for descriptor in rest:  # grows while it is walked
        name, digest = _descriptor(names, descriptor)
        if digest in seen or name not in names.blobs:  # only one of several may have been saved
            continue
        seen.add(digest)
        document = _document(names, descriptor)
        if isinstance(document.get("manifests"), list):
            rest += document["manifests"]
        elif isinstance(document.get("layers"), list):
            said = _get(descriptor, "platform", "architecture")
            if said != "unknown":  # attestations lie beside images as if they were some
                said = said or _get(_document(names, document.get("config")), "architecture")
                found.append((_machine(said), document))
    return found


def _descriptor(names: Archive, descriptor: Any) -> tuple[str, str]:
    """(name of the blob, its SHA-256 in hex)."""
    digest = _get(descriptor, "digest")
    if not isinstance(digest, str) or not (hit := re.fullmatch(r"sha256:([0-9a-f]{64})", digest)):
        raise RootError(f"{names.path}: {digest!r} where a SHA-256 should be")
    return f"blobs/sha256/{hit[1]}", hit[1]


def _document(names: Archive, descriptor: Any) -> dict[str, Any]:
    name, digest = _descriptor(names, descriptor)
    return _object(names, names.json(name, digest), name)


# ------------------------------------------------------------------ docker save


def _docker(names: Archive) -> Image:
    images = names.json("manifest.json")
    if not isinstance(images, list) or len(images) != 1:
        count = len(images) if isinstance(images, list) else "no"
        raise UsageError(f"{names.path}: {count} images", mend="save the one image that is meant")
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
    """document[key][key]..., None where there is no such thing."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _object(names: Archive, document: Any, name: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise RootError(f"{names.path}: {name} is not a JSON object")
    return document


def _bounded(names: Archive, layers: list[Any]) -> list[Any]:
    if len(layers) > MAX_LAYERS:
        raise RootError(f"{names.path}: {len(layers)} layers, {MAX_LAYERS} at most are expected")
    return layers


def _machine(architecture: Any) -> str:
    """As `uname -m`: OCI has Go's names."""
    return MACHINES.get(architecture, architecture) if isinstance(architecture, str) else ""


def _image_config(config: dict[str, Any]) -> ImageConfig:
    pairs = [e.partition("=") for e in _strings(_get(config, "config", "Env"))]
    return ImageConfig(
        environment=tuple((name, value) for name, equals, value in pairs if name and equals),
        architecture=_machine(config.get("architecture")),
        entrypoint=_strings(_get(config, "config", "Entrypoint")),
    )


def _strings(value: Any) -> tuple[str, ...]:
    """No process can be given a NUL."""
    if not isinstance(value, list):
        return ()
    return tuple(v for v in value if isinstance(v, str) and "\0" not in v)
