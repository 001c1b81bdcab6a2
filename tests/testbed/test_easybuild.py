"""The real EasyBuild, as an ordinary user, builds from Debian 13's sources."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mpigraft.core.process import Completed, run_command
from testbed import rootfs
from testbed.easybuild import CHAIN, EasyBuilder, debian_archive

pytestmark = pytest.mark.testbed

NAME = "libconfig"
MODULE = f"{NAME}/{CHAIN[NAME]}-gnu"
BUILD = rootfs.HERE / "build_package.py"


@pytest.fixture(scope="module")
def prefix(easybuilder: EasyBuilder) -> Path:
    return easybuilder.home / "prefix"


def build_one(easybuilder: EasyBuilder, prefix: Path) -> Completed:
    sources = easybuilder.sources(NAME)
    return easybuilder.run(sys.executable, BUILD, NAME, CHAIN[NAME], sources, prefix)


def test_a_small_package_is_built_and_its_modules_load(
    easybuilder: EasyBuilder, prefix: Path
) -> None:
    """One test, since each start of EasyBuild takes seconds."""
    before_tmp = of_the_user(easybuilder)
    done = build_one(easybuilder, prefix)
    assert done.ok, done.text()
    root = prefix / "software" / MODULE
    lines = done.stdout.decode().splitlines()
    assert lines[-1] == str(root)
    assert "libconfig building" in lines
    (log,) = root.glob("easybuild/*.log")
    downloads = [line for line in log.read_text().splitlines() if "trying to download" in line]
    assert downloads, "EasyBuild tries to fetch its config.guess"
    assert all("Connection refused" in line for line in downloads), downloads
    assert not [*(prefix / "sources").rglob("config.guess")]
    by_lmod, by_tcl = (
        easybuilder.module(prefix, MODULE, "env", tool).splitlines() for tool in ("lmod", "tcl")
    )
    assert f"LD_LIBRARY_PATH={root}/lib" in by_lmod
    assert own_rows(by_lmod) == own_rows(by_tcl)
    library = (root / "lib/libconfig.so").resolve()
    before = library.stat().st_mtime_ns
    again = build_one(easybuilder, prefix)
    assert again.stdout.decode().splitlines() == ["libconfig kept", str(root)]
    assert library.stat().st_mtime_ns == before
    assert sorted(path.name for path in easybuilder.home.iterdir()) == ["graft", "prefix"]
    assert of_the_user(easybuilder) == before_tmp


def of_the_user(easybuilder: EasyBuilder) -> set[Path]:
    """What EasyBuild leaves where everybody may write; other tests have the same user."""
    uid = easybuilder.home.stat().st_uid
    names = ("eb-*", "fake_vsc_*", "easybuild*")
    places = [path for name in names for path in Path("/tmp").glob(name)]
    return {path for path in places if path.exists() and path.lstat().st_uid == uid}


def own_rows(lines: list[str]) -> list[str]:
    """What a module sets, without the tool's own variables."""
    own = re.compile(r"EB\w+|[A-Z]\w*PATH|XDG_DATA_DIRS")
    names = [line for line in lines if own.fullmatch(line.partition("=")[0])]
    return sorted(line for line in names if not line.startswith("MODULEPATH"))


# ------------------------------------------------------------------ long: what goes wrong


@pytest.mark.long
@pytest.mark.parametrize(
    ("phase", "number"),
    [
        ("unpacking", signal.SIGKILL),
        ("configuring", signal.SIGKILL),
        ("installing", signal.SIGKILL),
        ("configuring", signal.SIGINT),
        ("building", signal.SIGTERM),
    ],
    ids=str,
)
def test_a_build_that_was_ended_is_completed_by_the_next(
    phase: str, number: signal.Signals, easybuilder: EasyBuilder
) -> None:
    """The fine steps are in tests/unit/build, with a stand-in."""
    prefix = easybuilder.home / f"ended-{phase}-{number.name}"
    sources = easybuilder.sources(NAME)
    words = easybuilder.words(sys.executable, "-u", BUILD, NAME, CHAIN[NAME], sources, prefix)
    with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=easybuilder.home) as build:
        assert build.stdout is not None
        for line in build.stdout:
            if line.decode().strip() == f"{NAME} {phase}":
                build.send_signal(number)
                break
    assert build.returncode != 0
    library = prefix / "software" / MODULE / "lib/libconfig.so"
    done = build_one(easybuilder, prefix)
    assert done.ok, done.text()
    assert library.exists()
    assert not any((prefix / "tmp").iterdir())
    assert build_one(easybuilder, prefix).stdout.decode().splitlines()[0] == "libconfig kept"


@pytest.mark.long
@pytest.mark.root
def test_a_full_disk_is_named(easybuilder: EasyBuilder) -> None:
    prefix = easybuilder.home / "small"
    prefix.mkdir()
    size: list[str | Path] = ["mount", "-t", "tmpfs", "-o", "size=5m,mode=777", "none", prefix]
    assert run_command(size).ok
    try:
        done = build_one(easybuilder, prefix)
        assert done.code == 3, done.text()
        assert "no room below" in done.text()
    finally:
        assert run_command(["umount", prefix]).ok


@pytest.mark.long
@pytest.mark.parametrize("how", ["cut short", "another"])
def test_a_source_that_is_not_the_plans_is_refused(how: str, easybuilder: EasyBuilder) -> None:
    archive = easybuilder.sources(NAME) / debian_archive(NAME).file
    folder = easybuilder.home / f"sources-{how[0]}"
    folder.mkdir()
    content = archive.read_bytes()
    (folder / archive.name).write_bytes(content[:-1000] if how == "cut short" else b"x")
    prefix = easybuilder.home / "never"
    done = easybuilder.run(sys.executable, BUILD, NAME, CHAIN[NAME], folder, prefix)
    assert done.code == 2
    assert "its SHA-256 is" in done.text()
    assert not prefix.exists()


@pytest.mark.long
def test_a_configure_that_fails_shows_what_it_said(easybuilder: EasyBuilder) -> None:
    broken = easybuilder.home / "broken"
    broken.mkdir()
    (broken / "gcc").write_text("#!/bin/sh\nexit 1\n")
    (broken / "gcc").chmod(0o755)
    path = {"PATH": f"{broken}:{easybuilder.environment()['PATH']}"}
    prefix = easybuilder.home / "fails"
    words = (sys.executable, BUILD, NAME, CHAIN[NAME], easybuilder.sources(NAME), prefix)
    done = easybuilder.run(*words, env=path)
    assert done.code == 3
    assert "failed with exit code 77 in configure step" in done.text()
    assert "configure: error: C compiler cannot create executables" in done.text()


@pytest.mark.long
def test_a_prefix_of_somebody_else_is_refused(easybuilder: EasyBuilder) -> None:
    done = build_one(easybuilder, Path("/usr/local/mpigraft-tests"))
    assert done.code == 3
    assert "cannot be written: Permission denied" in done.text()
