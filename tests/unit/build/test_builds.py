"""What a build refuses, keeps and says, by a stand-in for EasyBuild."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.build import easybuild
from mpigraft.build.folders import OWNER, BuildFolders
from mpigraft.build.progress import BuildProgress
from mpigraft.build.values import BuildPlan
from mpigraft.core.errors import MissingError, UsageError
from tests.builders.easybuilds import a_plan, runs, stand_in, tree
from tests.builders.messages import matches

MPI = "software/OpenMPI/5.0.8-gnu"


@pytest.fixture
def folders(tmp_path: Path) -> BuildFolders:
    return BuildFolders(tmp_path / "prefix")


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """An ordinary user's."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return stand_in(tmp_path / "home")


def build(
    folders: BuildFolders, environ: Mapping[str, str], plan: BuildPlan | None = None, ends: str = ""
) -> list[BuildProgress]:
    heard: list[BuildProgress] = []
    easybuild.build(plan or a_plan(), folders, {**environ, "TZ": ends}, heard.append)
    return heard


def other_options(plan: BuildPlan) -> BuildPlan:
    """The plan with another option for its first package."""
    first, *rest = plan.steps
    return replace(plan, steps=(replace(first, configure=(*first.configure, "--x")), *rest))


def test_a_second_build_starts_nothing_and_changes_nothing(
    folders: BuildFolders, environ: Mapping[str, str]
) -> None:
    build(folders, environ)
    before = tree(folders.prefix)
    heard = build(folders, environ)
    assert [(one.package, one.phase) for one in heard] == [
        ("libfabric", "kept"),
        ("openmpi", "kept"),
    ]
    assert tree(folders.prefix) == before
    assert runs(folders) == ["libfabric", "OpenMPI"]


def test_a_package_that_was_built_in_another_way_is_not_built_over(
    folders: BuildFolders, environ: Mapping[str, str]
) -> None:
    build(folders, environ)
    before = tree(folders.prefix / "software")
    with pytest.raises(UsageError, match="built in another way: configopts") as no:
        build(folders, environ, other_options(a_plan()))
    assert no.value.code == "build-differs"
    assert tree(folders.prefix / "software") == before


def test_a_package_whose_needs_were_built_in_another_way_is_not_kept(
    folders: BuildFolders, environ: Mapping[str, str]
) -> None:
    """Else an MPI would stay that was built against another libfabric."""
    build(folders, environ)
    (folders.records / "libfabric-2.1.0-gnu.json").unlink()
    for path in (folders.modules / "libfabric").iterdir():
        path.unlink()
    easyconfig = next((folders.prefix / "software/libfabric/2.1.0-gnu/easybuild").iterdir())
    easyconfig.unlink()
    for path in sorted((folders.prefix / "software/libfabric").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with pytest.raises(UsageError, match=r"OpenMPI.*: a package that it needs"):
        build(folders, environ, other_options(a_plan()))


def test_what_only_describes_a_package_may_change(
    folders: BuildFolders, environ: Mapping[str, str]
) -> None:
    build(folders, environ)
    plan = a_plan()
    steps = tuple(replace(step, why="for another reason") for step in plan.steps)
    heard = build(folders, environ, replace(plan, steps=steps))
    assert {one.phase for one in heard} == {"kept"}


def test_somebodys_folder_is_not_emptied(folders: BuildFolders, environ: Mapping[str, str]) -> None:
    thesis = folders.prefix / MPI / "thesis.tex"
    thesis.parent.mkdir(parents=True)
    thesis.write_text("\\begin")
    with pytest.raises(UsageError) as no:
        build(folders, environ)
    assert no.value.code == "build-folder-taken"
    assert thesis.read_text() == "\\begin"
    assert not runs(folders)


def test_a_package_that_easybuild_built_by_itself_is_kept(
    folders: BuildFolders, environ: Mapping[str, str]
) -> None:
    build(folders, environ)
    for record in folders.records.glob("*.json"):
        record.unlink()
    assert {one.phase for one in build(folders, environ)} == {"kept"}
    record = json.loads((folders.records / "OpenMPI-5.0.8-gnu.json").read_text())
    assert record["state"] == "built"


def test_a_step_that_fails_names_itself_its_last_lines_and_the_log(
    folders: BuildFolders, environ: Mapping[str, str]
) -> None:
    with pytest.raises(MissingError) as no:
        build(folders, environ, ends="building/fails/OpenMPI")
    assert matches(
        no.value, "build-step-failed", package="openmpi 5.0.8", step="in build step",
        lines="make: *** [Makefile:1: all] Error 1",
    )  # fmt: skip
    assert str(folders.prefix / "eb.log") in no.value.fix
    assert build(folders, environ)[0].phase == "kept"
    assert runs(folders) == ["libfabric", "OpenMPI", "OpenMPI"]


def test_two_builds_at_once_are_kept_apart(
    folders: BuildFolders, environ: Mapping[str, str]
) -> None:
    build(folders, environ)
    with (folders.records / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(MissingError, match=f"process {os.getpid()} on ") as no:
            build(folders, environ)
    assert no.value.code == "build-running"
    build(folders, environ)


def test_processes_of_a_killed_build_are_waited_for(
    folders: BuildFolders, environ: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mpigraft.build.folders.WAIT_S", 0.0)
    started = threading.Event()
    child = os.posix_spawn(
        "/bin/cat", ["cat", "/dev/stdin"], {OWNER: str(folders.prefix)},
        file_actions=[(os.POSIX_SPAWN_DUP2, os.pipe()[0], 0)],
    )  # fmt: skip
    started.set()
    try:
        with pytest.raises(MissingError, match=f"process {child} of a build that was killed"):
            build(folders, environ)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    build(folders, environ)


def test_a_prefix_that_cannot_be_made_is_refused(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(MissingError) as no:
        build(BuildFolders(file / "prefix"), environ)
    assert no.value.code == "prefix-not-writable"


@pytest.mark.parametrize("name", ["a prefix", "a:b", "100%", "$HOME", "it's"])
def test_a_prefix_that_configure_scripts_split_is_refused(
    name: str, tmp_path: Path, environ: Mapping[str, str]
) -> None:
    with pytest.raises(UsageError) as no:
        build(BuildFolders(tmp_path / name), environ)
    assert no.value.code == "prefix-unsuitable"
    assert not (tmp_path / name).exists()


def test_environment_modules_get_a_module_for_lmod_too(
    folders: BuildFolders, tmp_path: Path, environ: Mapping[str, str]
) -> None:
    build(folders, stand_in(tmp_path / "home", "MODULES_CMD"))
    names = {path.name for path in (folders.modules / "OpenMPI").iterdir()}
    assert names == {"5.0.8-gnu", "5.0.8-gnu.lua"}


def test_progress_has_the_step_and_what_is_left(
    folders: BuildFolders, environ: Mapping[str, str]
) -> None:
    heard = build(folders, environ)
    assert [one.phase for one in heard if one.package == "libfabric"][:3] == [
        "",
        "fetching files and verifying checksums",
        "unpacking",
    ]
    assert heard[0].left_s < 0, "nothing is done that time could be estimated by"
    last = heard[-1]
    assert (last.number, last.count, last.phase) == (2, 2, "creating module")
    assert 0 < last.left_s < last.elapsed_s


def test_a_sites_proxy_reaches_easybuild_and_its_own_settings_do_not() -> None:
    proxies = {"https_proxy": "http://proxy:3128", "NO_PROXY": "site", "SSL_CERT_FILE": "/ca.pem"}
    others = {"EASYBUILD_PREFIX": "/sw", "MY_https_proxy": "x", "https_proxy_of_x": "x"}
    assert easybuild.environment(proxies | others) == proxies


def test_with_a_folder_of_sources_nothing_can_be_fetched(folders: BuildFolders) -> None:
    """As Python's urllib, which EasyBuild fetches with, reads these variables."""
    rows = easybuild.own_rows(replace(folders, sources=Path("/sources")))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ({"HTTPS_PROXY": "http://proxy", "NO_PROXY": "*"} | rows).items():
            patch.setenv(name, value)
        assert urllib.request.getproxies()["https"] == easybuild.NOWHERE
        assert not urllib.request.proxy_bypass("example.org")
    for name in ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy"):  # curl and requests
        assert {rows[name], rows[name.upper()]} == {easybuild.NOWHERE}
    assert (rows["no_proxy"], rows["NO_PROXY"]) == ("", "")
    assert "https_proxy" not in easybuild.own_rows(replace(folders, sources=None))
