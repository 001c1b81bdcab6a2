"""What `make dist` makes, on bare Debians: an ordinary user in an empty home, without a network."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from mpigraft.core.process.command import run_command
from mpigraft.native.programs import PREBUILT
from testbed import rootfs
from testbed.rootfs import Root

PROJECT = rootfs.PROJECT
FOLDER = "/opt/a folder"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder dist/, of a copy of the tree: a build writes beside its sources."""
    folder = tmp_path_factory.mktemp("made")
    tree = folder / "tree"
    rootfs.copy_project(tree)
    shutil.copytree(PREBUILT, tree / PREBUILT.relative_to(PROJECT))
    wheel = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    steps: list[list[str | Path]] = [
        [*wheel, "--wheel-dir", folder, tree],
        [PROJECT / "tools/release/make.py", folder / "dist", "WHEEL"],
    ]
    for step in steps:
        words = [next(folder.glob("*.whl")) if word == "WHEEL" else word for word in step]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}
        done = run_command([sys.executable, *words], env=environment, limit_s=600)
        assert done.ok, done.text()
    return folder / "dist"


@pytest.mark.long
@pytest.mark.testbed
@pytest.mark.parametrize("suite", ["bookworm", "trixie"])
def test_what_is_handed_out_works_without_a_network(
    made: Path, suite: str, cache_folder: Path, as_root: tuple[str, ...], tmp_path: Path
) -> None:
    root = Root(
        rootfs.make(suite, cache_folder, as_root),
        tmp_path / "root",
        cache_folder / f"inside-{suite}",
        as_root,
    )
    try:
        root.do("cp", "--recursive", made, root.folder / FOLDER.lstrip("/"))
        prepared = root.enter(
            f"useradd --create-home {rootfs.USER} && chmod -R a+rX '{FOLDER}'"
            " && apt-get -q update && apt-get -q -y install python3-venv"
        )
        assert prepared.ok, prepared.text()
        for command in (
            f"cd '{FOLDER}' && sha256sum --check --quiet SHA256SUMS",
            f"python3 '{FOLDER}/mpigraft.pyz' --version",
            f"python3 '{FOLDER}/mpigraft.pyz' discover",
            f"tar -xf '{FOLDER}'/mpigraft-*-wheelhouse.tar && python3 -m venv 'an env'",
            "'an env/bin/pip' install --no-index --find-links mpigraft-*-wheelhouse mpigraft",
            "'an env/bin/mpigraft' discover",
        ):
            home = f"/home/{rootfs.USER}"
            done = root.enter(command, user=rootfs.USER, cwd=home, offline=True)
            assert done.ok, f"{command}: exit {done.code}\n{done.text()}"
    finally:
        root.close()
