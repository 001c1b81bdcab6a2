"""EasyBuild for an ordinary user, and sources of Debian 13 for it to build.

EasyBuild refuses root, so an account without rights runs it, in a mount namespace in which it can
reach what lies in root's folders (`someone`). Sources come from where this machine has its own
packages, with the suite's name changed; they and what is built of them stay in the tests' cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from mpigraft.build.recipes import recipe_of
from mpigraft.core.cache import file_digest
from mpigraft.core.process import Completed, run_command
from mpigraft.knowledge import Archive, packages
from testbed import rootfs
from testbed.engines import PATH, USER
from testbed.kept import only_one, recipe
from testbed.someone import ROOT, opened

SUITE = "trixie"
# Debian's source package of each of ours. The versions are those that Debian 13 has.
DEBIANS = {
    "libconfig": "libconfig",
    "libuv": "libuv1",
    "fuse": "fuse",
    "libfabric": "libfabric",
    "openmpi": "openmpi",
}
CHAIN = {
    "libconfig": "1.7.3",
    "libuv": "1.50.0",
    "fuse": "2.9.9",
    "libfabric": "2.1.0",
    "openmpi": "5.0.7",
}
LMOD = Path("/usr/share/lmod/lmod/libexec/lmod")
TOOL = "easybuild"  # its folder in the cache: `make ready` installs it there


def why_not() -> str:
    """Why EasyBuild cannot run here; empty: it can."""
    if os.geteuid() != 0:
        return ""
    if not LMOD.exists():
        return "needs Debian's lmod"
    if run_command(["unshare", "-m", "true"]).code:
        return "needs leave to mount"
    return ""


class EasyBuilder:
    """An ordinary user's EasyBuild, with a home of its own; `close` removes the home."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.tool = cache / TOOL
        assert (self.tool / "bin/eb").exists(), "make ready installs EasyBuild"
        self.home = Path(tempfile.mkdtemp(prefix="mpigraft-easybuild-"))
        self.home.chmod(0o755)
        (self.home / "graft").mkdir()
        if os.geteuid() == 0:
            make_user()
        self.give(self.home)

    def give(self, *paths: Path) -> None:
        """Make the user own these."""
        if os.geteuid() == 0:
            done = run_command(["chown", "-R", f"{USER}:{USER}", *paths])
            assert done.ok, done.text()

    def environment(self) -> dict[str, str]:
        """A shell of the user's, after login, in which `module` works."""
        return {
            "PATH": f"{self.tool / 'bin'}:{Path(sys.prefix) / 'bin'}:{PATH}",
            "HOME": str(self.home),
            "USER": USER,
            "LANG": "C.UTF-8",
            "LMOD_CMD": str(LMOD),
            "MODULEPATH": "",
            "MPIGRAFT_HOME": str(self.home / "graft"),
            "TMPDIR": str(self.home),
        }

    def words(
        self,
        *command: str | Path,
        env: Mapping[str, str] | None = None,
        reach: Iterable[Path] = (),
    ) -> list[str]:
        """The words that run `command` as the user, who reaches also the folders `reach`."""
        rows = self.environment() | dict(env or {})
        clean = ["env", "-i", *(f"{name}={value}" for name, value in rows.items())]
        argv = [*clean, *map(str, command)]
        if os.geteuid() != 0:
            return argv
        needed = dict.fromkeys((Path(sys.base_prefix), Path(sys.prefix), ROOT, self.cache, *reach))
        script = "; ".join(["set -e", "mount --make-rshared /", *opened(needed), 'exec "$@"'])
        drop = ["setpriv", "--reuid", USER, "--regid", USER, "--init-groups", "--inh-caps=-all"]
        return ["unshare", "-m", "bash", "-c", script, "bash", *drop, *argv]

    def run(
        self,
        *command: str | Path,
        env: Mapping[str, str] | None = None,
        reach: Iterable[Path] = (),
        limit_s: float = 600,
    ) -> Completed:
        """Run `command` as the user, in its home."""
        argv = self.words(*command, env=env, reach=reach)
        return run_command(argv, cwd=self.home, limit_s=limit_s)

    def module(
        self, prefix: Path, name: str, script: str, tool: str = "lmod", tree: str = "all"
    ) -> str:
        """What a shell of the user's prints after `module load` of a module below `prefix`, with
        Lmod or with environment modules (`tcl`)."""
        lines = [
            f". {LMOD.parent.parent}/init/sh"
            if tool == "lmod"
            else environment_modules(self.cache),
            f"module use {prefix}/modules/{tree}",
            f"module load {name} || exit",
            script,
        ]
        done = self.run("sh", "-c", "\n".join(lines))
        assert done.ok, done.text()
        return done.stdout.decode().strip()

    def chain_words(self) -> list[str | Path]:
        """The words after `mpigraft build` that plan CHAIN from Debian's sources."""
        versions = [word for item in CHAIN.items() for word in ("--with", "=".join(item))]
        return ["openmpi", *versions, "--sources", self.sources(*CHAIN)]

    def prefix_of(self, *words: str | Path, reach: Iterable[Path] = ()) -> Path:
        """Where `mpigraft build` with these words builds: kept between sessions as long as its
        plan, EasyBuild and the compiler are the same. Programs of any user may use it from
        there."""
        plan = self.run("mpigraft", "build", *words, "--as", "easyconfigs", reach=reach)
        assert plan.ok, plan.text()
        texts = re.split(r"^# .*\.eb$", plan.stdout.decode(), flags=re.MULTILINE)[1:]
        compiler = run_command(["gcc", "--version"]).stdout
        requirements = ROOT / "requirements-easybuild.txt"
        rows = json.dumps([recipe_of(text) for text in texts], sort_keys=True)
        digest = hashlib.sha256(rows.encode()).hexdigest()
        name = recipe(digest, compiler.decode(), requirements)
        prefix = self.cache / "built" / name
        if not prefix.exists():
            prefix.mkdir(parents=True)
            self.give(prefix)
        return prefix.resolve()

    def sources(self, *names: str) -> Path:
        """The folder with Debian's tarballs of these packages, fetched where it lacks some."""
        folder = self.cache / "sources"
        folder.mkdir(parents=True, exist_ok=True)
        with only_one(self.cache / "sources.lock"):
            missing = [n for n in names if not _is_there(folder, debian_archive(n))]
            if missing:
                fetch_sources([DEBIANS[name] for name in missing], folder)
        for name in names:
            archive = debian_archive(name)
            assert _is_there(folder, archive), f"Debian's {archive.file} is another one now"
        return folder

    def close(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)


def environment_modules(cache: Path) -> str:
    """A shell's function for them. Debian's package and lmod exclude each other, so it is unpacked
    beside."""
    folder = cache / "environment-modules"
    with only_one(cache / "environment-modules.lock"):
        if not (program := next(folder.rglob("modulecmd.tcl"), None)):
            program = _unpack_modules(folder)
    command = f"tclsh {program} sh"
    return f'export MODULEPATH= LOADEDMODULES=; module() {{ eval "$({command} "$@")"; }}'


def debian_archive(name: str) -> Archive:
    """The row of Debian 13's tarball of a package."""
    rows = packages()[name].archives
    return next(row for row in rows if row.by == "debian" and row.version == CHAIN[name])


def _is_there(folder: Path, archive: Archive) -> bool:
    path = folder / archive.file
    return path.exists() and file_digest(path) == archive.sha256


def fetch_sources(names: Iterable[str], folder: Path, suite: str = SUITE) -> None:
    """Fetch the tarballs of Debian's source packages with an apt configuration of its own."""
    if not rootfs.own_suite():
        pytest.skip("sources of Debian need a Debian machine's apt")
    with tempfile.TemporaryDirectory(prefix="mpigraft-apt-") as name:
        own = Path(name)
        for part in ("lists/partial", "cache/archives/partial", "tarballs"):
            (own / part).mkdir(parents=True)
        lines = [line.replace("deb ", "deb-src ", 1) for line in rootfs.archives(suite)]
        (own / "sources.list").write_text("\n".join([*lines, ""]))
        apt = [
            "apt-get", "--quiet", "-o", f"Dir::Etc::sourcelist={own / 'sources.list'}",
            "-o", "Dir::Etc::sourceparts=/dev/null", "-o", f"Dir::State::lists={own / 'lists'}",
            "-o", f"Dir::Cache={own / 'cache'}", "-o", "Acquire::Languages=none",
            "-o", "Acquire::Retries=3", "-o", f"APT::Sandbox::User={pwd.getpwuid(os.geteuid())[0]}",
        ]  # fmt: skip
        done = run_command([*apt, "update"], limit_s=300)
        assert done.ok, done.text()
        argv = [*apt, "source", "--download-only", "--tar-only", "--only-source", *names]
        done = run_command(argv, cwd=own / "tarballs", limit_s=600)
        assert done.ok, done.text()
        for file in (own / "tarballs").glob("*.orig.tar.*"):
            shutil.move(file, folder / file.name)


def _unpack_modules(folder: Path) -> Path:
    with tempfile.TemporaryDirectory(prefix="mpigraft-modules-") as name:
        options = ["-o", f"APT::Sandbox::User={pwd.getpwuid(os.geteuid())[0]}"]
        argv = ["apt-get", "--quiet", *options, "download", "environment-modules"]
        done = run_command(argv, cwd=Path(name), limit_s=300)
        assert done.ok, done.text()
        (package,) = Path(name).glob("*.deb")
        done = run_command(["dpkg", "--extract", package, folder])
        assert done.ok, done.text()
    return next(folder.rglob("modulecmd.tcl"))


def make_user() -> None:
    """An account without rights; nothing is changed if it is there."""
    try:
        pwd.getpwnam(USER)
    except KeyError:
        done = run_command(["useradd", "--no-create-home", "--shell=/bin/sh", USER])
        assert done.ok, done.text()
