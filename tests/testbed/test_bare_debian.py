"""Set-up on a machine that has nothing: a bare Debian 12 as root, a bare 13 as an ordinary user.

A machine that was used before hides missing steps; these have python3, make and certificates.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed import rootfs
from testbed.rootfs import Root

SETUP_S = 900


@contextmanager
def unpacked(suite: str, cache: Path, as_root: tuple[str, ...], folder: Path) -> Iterator[Root]:
    inside = cache / f"inside-{suite}"  # one each: pip uses no cache that another user owns
    if not inside.exists() and (cache / "pip").exists():
        shutil.copytree(cache / "pip", inside / "pip")  # rather than download all of it again
    root = Root(rootfs.make(suite, cache, as_root), folder, inside, as_root)
    try:
        yield root
    finally:
        root.close()


def bring_project(root: Root, to: str, user: str, scratch: Path) -> None:
    rootfs.copy_project(scratch)
    root.do("mkdir", "-p", root.folder / to.lstrip("/"))
    root.do("cp", "--archive", "--no-target-directory", scratch, root.folder / to.lstrip("/"))
    cache = rootfs.CACHE_INSIDE
    link = f"mkdir -p {cache}/build && ln -s {cache}/build {to}/build"  # the compiler's cache
    done = root.enter(f"{link} && chown -R {user}:{user} {to} {cache}")
    assert done.ok, done.text()


def project_of_user(root: Root, scratch: Path) -> str:
    """Make an ordinary user with the project in the home; where it is."""
    user = rootfs.USER
    done = root.enter(f"useradd --create-home {user}")
    assert done.ok, done.text()
    bring_project(root, f"/home/{user}/mpigraft", user, scratch)
    return f"/home/{user}/mpigraft"


def set_up_and_smoke(root: Root, project: str, user: str) -> None:
    """`make setup` twice, then a real MPI fetched and a real launch measured."""

    def say(command: str, *, offline: bool = False) -> str:
        done = root.enter(command, user=user, cwd=project, limit_s=SETUP_S, offline=offline)
        assert done.ok, f"{command}: exit {done.code}, {done.wall_s:.0f} s\n{done.text()}"
        return done.text()

    say("make setup")
    assert say("make setup").strip() == "", "a second set-up does nothing"
    assert say(".venv/bin/mpigraft --version").startswith("mpigraft ")
    say(".venv/bin/mpigraft get mpich")
    say(".venv/bin/mpigraft get mpich")
    found = json.loads(say(".venv/bin/mpigraft discover --json"))
    assert [mpi["usable"] for mpi in found["mpis"] if mpi["family"] == "mpich"] == [True]
    mpigraft = ".venv/bin/mpigraft --store results"
    say(
        f"{mpigraft} bench --here --mpi mpich --transport ofi-tcp --transport ucx"
        " --benchmark native:latency --max 64 --rounds 1",
        offline=True,
    )
    shown = json.loads(say(f"{mpigraft} results show --json"))["configurations"]
    assert {row["requested"]: row["proven"] for row in shown} == {"ofi-tcp": True, "ucx": True}
    (compared,) = json.loads(say(f"{mpigraft} compare --json"))["comparisons"]
    assert [cell["size"] for cell in compared["cells"]] == [1, 2, 4, 8, 16, 32, 64]
    say(f"{mpigraft} report -o report.html && grep -q data-kind=.absolute report.html")


@pytest.mark.long
@pytest.mark.covering
@pytest.mark.testbed
def test_debian_12_as_root(cache_folder: Path, as_root: tuple[str, ...], tmp_path: Path) -> None:
    with unpacked("bookworm", cache_folder, as_root, tmp_path / "root") as root:
        bring_project(root, "/opt/mpigraft", "root", tmp_path / "project")
        set_up_and_smoke(root, "/opt/mpigraft", "root")


@pytest.mark.long
@pytest.mark.testbed
def test_debian_13_as_a_user_who_may_sudo(
    cache_folder: Path, as_root: tuple[str, ...], tmp_path: Path
) -> None:
    with unpacked("trixie", cache_folder, as_root, tmp_path / "root") as root:
        user = rootfs.USER
        root.write(f"etc/sudoers.d/{user}", f"{user} ALL=(ALL) NOPASSWD: ALL\n")
        set_up_and_smoke(root, project_of_user(root, tmp_path / "project"), user)


@pytest.mark.long
@pytest.mark.testbed
def test_a_user_who_may_not_sudo_is_told_what_to_install(
    cache_folder: Path, as_root: tuple[str, ...], tmp_path: Path
) -> None:
    with unpacked("trixie", cache_folder, as_root, tmp_path / "root") as root:
        project = project_of_user(root, tmp_path / "project")
        done = root.enter("make setup", user=rootfs.USER, cwd=project)
        assert done.code == 2, done.text()
        assert "may not use sudo: python3-venv" in done.text()
        assert "as root: apt-get install python3-venv" in done.text()
