"""Make what is handed out into dist/: wheel, wheelhouse, mpigraft.pyz, manual, SBOM, sums.

    tools/release/make.py FOLDER WHEEL

`make dist` calls it. Everything is made of locked files, sorted, with the time of the last commit
(SOURCE_DATE_EPOCH), so that two makes give the same bytes. Written here and not by shiv, which
packs the packages of one Python on one machine: mpigraft.pyz serves every Python and both
architectures, and keeps a file that several of them share only once.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from mpigraft import __version__  # noqa: E402
from tools.release.manual import share  # noqa: E402
from tools.release.sbom import bill  # noqa: E402

HERE = Path(__file__).parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")  # for which all requirements have wheels
ARCHITECTURES = ("x86_64", "aarch64")
GLIBC = (2, 28)  # of RHEL 8; numpy has no wheel for an older one
PLATFORMS = (
    *(f"manylinux_2_{minor}" for minor in range(GLIBC[1], 4, -1)),
    "manylinux2014",
    "manylinux2010",
    "manylinux1",
)
REQUIREMENTS = ROOT / "requirements.txt"
FILE, PROGRAM = 0o644, 0o755
SCRIPTS = re.compile(r"[^/]+\.data/scripts/")
TEMPLATES = ("mpigraft.def", "mpigraft.eb", "mpigraft.lua")
Entry = tuple[str, bytes, int]  # name, content, mode
Targets = dict[str, list[Path]]  # by "3.12-x86_64": the wheels that this Python needs


def epoch() -> int:
    return int(os.environ["SOURCE_DATE_EPOCH"])


# ------------------------------------------------------------------ wheels of others


def requirement_lines(text: str, python: str, architecture: str) -> Iterator[str]:
    """Yield the requirements of one Python with their hashes. pip would judge their conditions by
    the Python that runs it."""
    machine = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "platform_machine": architecture,
        "sys_platform": "linux",
    }
    for line in re.findall(r"^\w.*", text.replace("\\\n", " "), re.MULTILINE):
        name, _, hashes = line.partition("--hash")
        wanted = Requirement(name)
        if wanted.marker is None or wanted.marker.evaluate(machine):
            yield f"{wanted.name}{wanted.specifier} --hash{hashes}"


def download(python: str, architecture: str, folder: Path) -> list[Path]:
    """Give the wheels of one Python; fetch them where they are not in `folder` yet."""
    whole = folder / f"{python}-{architecture}"
    if not whole.is_dir():
        part = whole.with_suffix(f".{os.getpid()}.part")
        part.mkdir(parents=True)
        lines = requirement_lines(REQUIREMENTS.read_text(encoding="utf-8"), python, architecture)
        wanted = part / "requirements.txt"
        wanted.write_text("\n".join(lines), encoding="utf-8")
        platforms = [
            word for name in PLATFORMS for word in ("--platform", f"{name}_{architecture}")
        ]
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
             "--no-input", "--no-deps", "--require-hashes", "--only-binary", ":all:",
             "--implementation", "cp", "--python-version", python, *platforms,
             "--dest", part, "--requirement", wanted],
            check=True,
        )  # fmt: skip
        part.rename(whole)
    return sorted(whole.glob("*.whl"))


def fetch_targets() -> Targets:
    """Give the wheels of each Python and architecture. They are kept below build/ by what decides
    them."""
    what = repr((REQUIREMENTS.read_bytes(), PLATFORMS)).encode()
    folder = ROOT / "build" / f"wheels-{hashlib.sha256(what).hexdigest()[:16]}"
    pairs = [(python, machine) for machine in ARCHITECTURES for python in PYTHONS]
    return {f"{python}-{machine}": download(python, machine, folder) for python, machine in pairs}


# ------------------------------------------------------------------ archives


def write_zip(file: IO[bytes], entries: Iterable[Entry], *, store: Iterable[str] = ()) -> None:
    """Write a zip with fixed times; the names in `store` uncompressed."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in entries:
            info = zipfile.ZipInfo(name, time.gmtime(epoch())[:6])
            info.create_system = 3  # unix, whose modes these are
            info.external_attr = (stat.S_IFREG | mode) << 16
            info.compress_type = zipfile.ZIP_STORED if name in store else zipfile.ZIP_DEFLATED
            archive.writestr(info, content)


def read_zip(path: Path) -> Iterator[Entry]:
    """Yield the files of a wheel, with one of two modes."""
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                runs = info.external_attr >> 16 & 0o100
                yield info.filename, archive.read(info), PROGRAM if runs else FILE


def normalise(wheel: Path, folder: Path) -> Path:
    """Copy our wheel without what the umask and the clock of this machine put into it."""
    made = folder / wheel.name
    with made.open("wb") as file:
        write_zip(file, read_zip(wheel))
    return made


def write_tar(path: Path, wheels: Iterable[Path]) -> None:
    """Write all wheels into one folder of an archive, sorted, without a user and his clock."""
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        for wheel in sorted(wheels, key=lambda one: one.name):
            info = tarfile.TarInfo(f"{path.stem}/{wheel.name}")
            info.size, info.mtime, info.mode = wheel.stat().st_size, epoch(), FILE
            with wheel.open("rb") as file:
                archive.addfile(info, file)


def write_share(path: Path) -> None:
    """Write man pages and completions, to be unpacked over the folder of an installation."""
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, text in sorted(share().items()):
            info, content = tarfile.TarInfo(f"share/{name}"), text.encode()
            info.size, info.mtime, info.mode = len(content), epoch(), FILE
            archive.addfile(info, io.BytesIO(content))


# ------------------------------------------------------------------ mpigraft.pyz


def installed(wheel: Path) -> Iterator[Entry]:
    """Yield the files of a wheel as `pip install --target` lays them out."""
    for name, content, mode in read_zip(wheel):
        place = SCRIPTS.sub("bin/", name)
        if ".data/" in place:
            raise SystemExit(f"{wheel.name} has {name}: say in tools/release where it goes")
        yield place, content, PROGRAM if place != name else mode


def tag_of(target: str) -> str:
    """Name a target as the file `unpack.py` does: cpython312-x86_64."""
    python, _, machine = target.partition("-")
    return f"cpython{python.replace('.', '')}-{machine}"


def payload(targets: Targets) -> tuple[bytes, dict[str, str]]:
    """Make the inner zip: each file once, under its digest, and for each target a list of its
    files. Give the digests of these lists besides."""
    contents: dict[str, bytes] = {}
    lists: dict[str, bytes] = {}
    for target, wheels in targets.items():
        files: dict[str, list[tuple[str, int]]] = {}
        for wheel in wheels:
            for name, content, mode in installed(wheel):
                digest = hashlib.sha256(content).hexdigest()
                contents[digest] = content
                files.setdefault(digest, []).append((name, mode))
        lists[tag_of(target)] = json.dumps(files, sort_keys=True, separators=(",", ":")).encode()
    digests = {tag: hashlib.sha256(text).hexdigest()[:16] for tag, text in lists.items()}
    entries = [(f"{tag}.json", text, FILE) for tag, text in lists.items()]
    entries += [(digest, contents[digest], FILE) for digest in sorted(contents)]
    inner = io.BytesIO()
    write_zip(inner, entries)
    return inner.getvalue(), digests


def write_pyz(path: Path, targets: Targets) -> None:
    """Write the file that Python starts: few entries, since Python reads their list each time."""
    inner, digests = payload(targets)
    facts = f"DIGESTS = {digests!r}\nGLIBC = {GLIBC!r}\n"
    entries = [
        ("__main__.py", (HERE / "boot.py").read_bytes(), FILE),
        ("unpack.py", (HERE / "unpack.py").read_bytes(), FILE),
        ("contents.py", facts.encode(), FILE),
        ("payload.zip", inner, FILE),
    ]
    with path.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        write_zip(file, entries, store=["payload.zip"])
    path.chmod(PROGRAM)


# ------------------------------------------------------------------ the rest


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fill(text: str, values: dict[str, str]) -> str:
    """Fill a template: @NAME@ becomes a value. Raises KeyError for an unknown name."""
    return re.sub(r"@([A-Z][A-Z0-9_]+)@", lambda match: values[match[1]], text)


def write_templates(folder: Path, wheelhouse: Path) -> None:
    values = {
        "VERSION": __version__,
        "NEWEST": PYTHONS[-1],
        "WHEELHOUSE": wheelhouse.name,
        "WHEELHOUSE_SHA256": digest_of(wheelhouse),
    }
    for name in TEMPLATES:
        made = folder / name.replace("mpigraft.", f"mpigraft-{__version__}.")
        made.write_text(fill((HERE / name).read_text(encoding="utf-8"), values), encoding="utf-8")


def write_sums(folder: Path) -> None:
    paths = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{digest_of(path)}  {path.name}\n" for path in paths]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def make(folder: Path, wheel: Path) -> None:
    folder.mkdir(parents=True)
    own = normalise(wheel, folder)
    targets = {name: [own, *wheels] for name, wheels in fetch_targets().items()}
    wheels = {path.name: path for paths in targets.values() for path in paths}
    wheelhouse = folder / f"mpigraft-{__version__}-wheelhouse.tar"
    write_tar(wheelhouse, wheels.values())
    write_pyz(folder / "mpigraft.pyz", targets)
    text = json.dumps(bill(wheels.values(), epoch()), indent=1, sort_keys=True)
    (folder / f"mpigraft-{__version__}.cdx.json").write_text(f"{text}\n", encoding="utf-8")
    write_share(folder / f"mpigraft-{__version__}-share.tar")
    write_templates(folder, wheelhouse)
    write_sums(folder)
    for path in sorted(folder.iterdir()):
        sys.stdout.write(f"{path.stat().st_size / 1e6:8.1f} MB  {path}\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
