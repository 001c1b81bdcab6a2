"""Members of tar archives, and layers of images made of them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

LOADER = Path("/lib64/ld-linux-x86-64.so.2").read_bytes()  # an ELF file that is everywhere


Item = tuple[tarfile.TarInfo, bytes]


def file(name: str, data: bytes = b"", mode: int = 0o644) -> Item:
    item = tarfile.TarInfo(name)
    item.size, item.mode = len(data), mode
    return item, data


def other(name: str, kind: bytes, target: str = "") -> Item:
    item = tarfile.TarInfo(name)
    item.type, item.linkname, item.mode = kind, target, 0o755
    return item, b""


def folder(name: str) -> Item:
    return other(name, tarfile.DIRTYPE)


def link(name: str, target: str) -> Item:
    return other(name, tarfile.SYMTYPE, target)


def hard(name: str, target: str) -> Item:
    return other(name, tarfile.LNKTYPE, target)


def tar(items: Iterable[Item], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, errors="surrogateescape") as archive:
        for item, data in items:
            archive.addfile(item, io.BytesIO(data))
    return out.getvalue()


BASE = [
    folder("./"),
    folder("usr/lib"),
    link("lib", "usr/lib"),
    file("usr/lib/libx.so.1", LOADER, 0o755),
    link("usr/lib/libx.so", "libx.so.1"),
    file("/etc/ld.so.conf", b"include x\n"),
    file("etc/os-release", b"ID=x\n"),
    file("opt/gone/one", b"1"),
    file("opt/gone/two", b"2"),
    file("opt/one", b"1"),
    file("opt/text", b"never asked for"),
]
