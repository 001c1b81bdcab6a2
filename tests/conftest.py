"""What every test shares: a home of its own, the real MPIs, and a guard on what it leaves.

Nothing here reads or writes the user's own folders: HOME is an empty one for the whole session,
and MPIGRAFT_HOME is the tests' own, kept between sessions so that MPIs are fetched once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from mpigraft.core.model import Family
from mpigraft.core.process.command import PR_SET_CHILD_SUBREAPER
from tests.homes import let_ranks_yield, make_home
from tests.lanes import Claims
from tests.parts import Parts

LEAVE_S = 3.0  # what ends by itself in this time was not left behind

EXAMPLES = {"daily": 25, "long": 400}  # of each property, by the name of hypothesis's profile

# A busy machine is slow, and slow is not wrong.
for profile, examples in EXAMPLES.items():
    settings.register_profile(
        profile,
        max_examples=examples,
        deadline=None,
        derandomize="CI" in os.environ,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("daily")


def cache() -> Path:
    """Where tests keep what they download: $MPIGRAFT_CI_CACHE, else in the user's cache."""
    if named := os.environ.get("MPIGRAFT_CI_CACHE"):
        return Path(named).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mpigraft-tests"


CACHE = cache()  # before HOME is changed
AS_ROOT = () if os.geteuid() == 0 else ("sudo", "-n")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--parts",
        choices=["all", "changed"],
        help="the long tests: all, or the parts whose inputs changed since they passed",
    )
    parser.addoption("--claims", type=Path, help="a folder in which lanes claim shared modules")


def pytest_configure(config: pytest.Config) -> None:
    """Give the session an empty HOME, make this process inherit every stray one, and let
    programs be interrupted: what runs in the background is started deaf to SIGINT and SIGQUIT."""
    sys.dont_write_bytecode = False  # or each session rewrites the assertions of each module again
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # under nohup; a handler ends at execve
        signal.signal(signal.SIGHUP, lambda *_: None)
    home = tempfile.mkdtemp(prefix="mpigraft-home-")
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    os.environ["HOME"] = home
    os.environ["MPIGRAFT_HOME"] = str(CACHE / "home")
    os.environ["PIP_CACHE_DIR"] = str(CACHE / "pip")
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        os.environ.pop(name, None)
    if which := config.getoption("--parts"):
        settings.load_profile("long")
        config.pluginmanager.register(Parts(CACHE, changed=which == "changed"))
    if claims := config.getoption("--claims"):
        config.pluginmanager.register(Claims(claims))
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


# ------------------------------------------------------------------ what a marker needs


PACKAGE = "needs Debian's "


def _mpi() -> str:
    if platform.machine() not in {"x86_64", "aarch64"}:
        return f"no MPI wheels are made for {platform.machine()}"
    return ""


def _root() -> str:
    return "" if os.geteuid() == 0 else "needs root"


def _browser() -> str:
    return "" if shutil.which("chromium") else PACKAGE + "chromium"


def _testbed() -> str:
    if not shutil.which("mmdebstrap"):
        return PACKAGE + "mmdebstrap"
    may_mount = subprocess.run([*AS_ROOT, "unshare", "-m", "true"], check=False)
    if may_mount.returncode:
        return "needs root, or sudo without a password, and leave to mount"
    return ""


NEEDS: Mapping[str, Callable[[], str]] = {
    "mpi": _mpi,
    "root": _root,
    "browser": _browser,
    "testbed": _testbed,
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose marker's needs are not met, and say which.

    Under `make test`, which has installed all that tests need, a missing package is no skip.
    """
    for name, need in NEEDS.items():
        if item.get_closest_marker(name) is None or not (reason := need()):
            continue
        if "MPIGRAFT_TEST_ALL" in os.environ and reason.startswith(PACKAGE):
            pytest.fail(f"{reason}, which set-up should have seen to", pytrace=False)
        pytest.skip(reason)


# ------------------------------------------------------------------ the guard


def _children() -> set[int]:
    """Processes below this one; orphans are, since this process inherits them."""
    children: set[int] = set()
    for file in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread that ended
            children.update(map(int, file.read_text().split()))
    return children


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _strays(before: set[int]) -> list[int]:
    deadline = time.monotonic() + LEAVE_S
    while strays := [pid for pid in _children() - before if _running(pid)]:
        if time.monotonic() > deadline:
            return strays
        time.sleep(0.02)
    return []


def _end(pid: int) -> str:
    try:
        said = (
            Path(f"/proc/{pid}/cmdline")
            .read_bytes()
            .replace(b"\0", b" ")
            .decode("utf-8", "replace")
        )
        os.kill(pid, signal.SIGKILL)
    except OSError:
        said = "(gone)"
    return f"{pid}: {said.strip()}"


def _users_folders() -> list[Path]:
    home = Path(os.environ["HOME"])
    return [
        home / ".local/share/mpigraft",
        home / ".cache/mpigraft",
        CACHE / "home/results",
    ]


@pytest.fixture(autouse=True)
def guard() -> Iterator[None]:
    """Fail a test that leaves a process behind, or a file where a user's own would be."""
    before = _children()
    yield
    if strays := _strays(before):
        pytest.fail("left behind: " + "; ".join(_end(pid) for pid in strays), pytrace=False)
    if touched := [folder for folder in _users_folders() if folder.exists()]:
        for folder in touched:
            shutil.rmtree(folder, ignore_errors=True)
        names = ", ".join(map(str, touched))
        pytest.fail(f"wrote to a user's folder: {names}: use fresh_home, --store", pytrace=False)


# ------------------------------------------------------------------ fixtures


@pytest.fixture(scope="session")
def cache_folder() -> Path:
    """A folder that outlives the session, for what is slow to make or to download."""
    CACHE.mkdir(parents=True, exist_ok=True)
    return CACHE


@pytest.fixture(scope="session")
def as_root() -> tuple[str, ...]:
    """The words in front of a command that needs root."""
    return AS_ROOT


@pytest.fixture(scope="session")
def mpis(cache_folder: Path) -> Mapping[Family, Path]:
    """Prefixes of the three real MPIs, fetched as `mpigraft get` does."""
    from mpigraft.discovery.install import fetch

    families = (Family.OPENMPI, Family.MPICH, Family.INTEL)
    prefixes = {family: fetch.fetch_mpi(family) for family in families}
    let_ranks_yield(prefixes[Family.OPENMPI])
    return prefixes


@pytest.fixture(scope="session")
def home_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where each fresh home stands for its test."""
    return tmp_path_factory.mktemp("homes") / "home"


@pytest.fixture
def fresh_home(
    tmp_path: Path, home_place: Path, mpis: Mapping[Family, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """An MPIGRAFT_HOME with the real MPIs in it, where nothing was started yet."""
    home = make_home(home_place, mpis, always_here=True)
    monkeypatch.setenv("MPIGRAFT_HOME", str(home))
    yield home
    home.rename(tmp_path / "fresh-home")


@pytest.fixture
def store_folder(tmp_path: Path) -> Path:
    """Where a test's results go: not made yet, as a user's first store."""
    return tmp_path / "store"
