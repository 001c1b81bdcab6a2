"""`mpigraft build`, through the command line; EasyBuild itself runs in tests/mpi."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import mpigraft
from mpigraft.core.model import NetDevice
from mpigraft.graft.abi import saved
from tests.builders.commands import Run
from tests.builders.configuration import a_machine
from tests.builders.messages import matches, shows
from tests.builders.stacks import StackFiles

SCHEMA = json.loads((Path(mpigraft.__file__).parent / "report/schemas/build.json").read_text())
EB = """#!/bin/sh
# EasyBuild: says its version, notes what it is asked to build, and fails for the package $FAILS
case $1 in --version) echo "This is EasyBuild 5.4.1 (framework: 5.4.1)"; exit;; esac
for last; do :; done
echo "$last" >>"$(dirname "$0")/asked"
case $last in *"$(cat "$(dirname "$0")/fails" 2>/dev/null || echo none)"*)
    echo "== FAILED: Installation ended unsuccessfully: cannot find flex (took 3 secs)"
    echo "== Results of the build can be found in the log file(s) /tmp/easybuild-x.log"
    exit 1;;
esac
for word; do case $word in --prefix=*) prefix=${word#*=};; esac; done
full=$(basename "$last" .eb)
module=$prefix/modules/all/${full%%-*}/${full#*-}.lua
mkdir -p "$(dirname "$module")" && echo "-- $full" >"$module"
"""


@pytest.fixture
def slingshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with Slingshot, whatever this one is."""
    machine = a_machine()
    machine = replace(machine, fabrics=(NetDevice("cxi0", "cxi", "up"),))
    monkeypatch.setattr(saved, "read_machine", lambda _: machine)


@pytest.fixture
def eb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in PATH with an `eb` that builds nothing, for an ordinary user."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "eb").write_text(EB)
    (folder / "eb").chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setenv("LMOD_CMD", "/usr/share/lmod/lmod/libexec/lmod")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return folder


def built(folder: Path) -> list[str]:
    return [Path(line).name for line in (folder / "asked").read_text().splitlines()]


@pytest.mark.usefixtures("slingshot")
def test_a_plan_says_what_is_built_and_why(run: Run) -> None:
    ended = run("build", "openmpi", "--machine", "m.json", "--dry-run")
    assert ended.code == 0
    assert shows(ended.out, "LUMI's", "Slingshot")
    assert shows(ended.out, "libcxi", "needs it")
    assert max(map(len, ended.out.splitlines())) <= 80


@pytest.mark.usefixtures("slingshot")
def test_a_plan_is_json_easyconfigs_or_a_spack_environment(run: Run) -> None:
    words = ("build", "openmpi", "--machine", "m.json")
    document = json.loads(run(*words, "--json").out)
    jsonschema.validate(document, SCHEMA)
    (partition,) = document["partitions"]
    assert partition["features"] == ["cxi"]
    assert [row["name"] for row in partition["unneeded"]] == ["libpdap"]
    assert shows(run(*words, "--as", "easyconfigs").out, "OpenMPI-5.0.8-gnu.eb")
    assert run(*words, "--as", "spack").out.count("^libcxi@12.0.1") == 1
    assert run(*words, "--as", "yaml").code == 2


def test_the_version_may_stand_behind_the_recipe(run: Run) -> None:
    """As in --mpi."""
    document = json.loads(run("build", "openmpi@5.0.7", "--json").out)
    rows = document["partitions"][0]["packages"]
    assert [row["version"] for row in rows if row["name"] == "openmpi"] == ["5.0.7"]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("lammps",), 2, "word-unknown"),
        (("lammps@1",), 2, "word-unknown"),
        (("openmpi@5",), 2, "openmpi 5: no sources of this version"),
        (("openmpi@5.0.7", "--with", "openmpi=5.0.8"), 2, "package-twice"),
        (("openmpi", "--with", "prrte=4.1.0", "--with", "pmix=5.0.8"), 1, "PMIx 6.1.0"),
        (("openmpi", "--with", "ucx=1.19.0", "--with", "ucx=1.20.0"), 2, "package-twice"),
        (("openmpi", "--sources", "nowhere"), 2, "sources-unreadable"),
        (("openmpi", "--sources", "."), 3, "sources-missing"),
        (("openmpi", "--compiler", "pgi"), 2, "word-unknown"),
        (("openmpi", "--use", "cuda"), 2, "use-invalid"),
        (("openmpi", "--use", "kuda=/opt"), 2, "use-invalid"),
        (("openmpi", "--use", "cuda=/nowhere"), 2, "there is no include/cuda.h in it"),
        (("openmpi", "--with", "=5"), 2, "word-unknown"),
        (("openmpi", "--sources", "pyproject.toml"), 2, "sources-unreadable"),
        (("openmpi", "--on", "nowhere"), 2, "stack-not-folder"),
    ],
)
def test_what_cannot_be_built_is_refused(
    run: Run, words: tuple[str, ...], code: int, text: str
) -> None:
    ended = run("build", *words, "--dry-run")
    assert (ended.code, ended.out) == (code, "")
    assert text in ended.err
    assert "what to do" in ended.err


def test_of_a_stack_s_version_the_tree_of_this_node_counts(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EESSI's version has a tree for each CPU: `check` takes the node's, and so does a build."""
    top = tmp_path / "versions/2023.06/software/linux"
    for name in ("x86_64/amd/zen2", "x86_64/amd/zen4"):
        StackFiles(top / name, [tmp_path / f"host_injections/{name}/lib"]).program("One/1")
    monkeypatch.setenv("EESSI_SOFTWARE_SUBDIR_OVERRIDE", "x86_64/amd/zen4")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    ended = run("build", "openmpi", "--on", tmp_path / "versions/2023.06", "--json")
    assert (ended.code, "2023.06-zen4" in ended.out) == (0, True), ended.err
    assert shows(ended.err, f"{top}/x86_64/amd/zen4")


def test_each_package_is_built_after_what_it_needs(run: Run, eb: Path, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    ended = run("build", "openmpi", "--prefix", prefix, "--no-check")
    assert (ended.code, ended.err.count("[2/2]")) == (0, 1)
    assert built(eb) == ["libfabric-2.1.0-gnu.eb", "OpenMPI-5.0.8-gnu.eb"]
    assert f"{prefix}/software/OpenMPI/5.0.8-gnu" in ended.out
    assert sorted(path.name for path in prefix.iterdir()) == [
        "easyconfigs",
        "modules",
        "mpigraft",
        "tmp",
    ]


def test_what_cannot_be_used_is_no_success(run: Run, eb: Path, tmp_path: Path) -> None:
    """The stand-in installs no MPI, and so `discover` lists none."""
    ended = run("build", "openmpi", "--prefix", tmp_path / "prefix")
    assert (ended.code, "built-unusable" in ended.err) == (3, True)


def test_an_easybuild_that_leaves_no_module_built_nothing(
    run: Run, eb: Path, tmp_path: Path
) -> None:
    (eb / "eb").write_text("#!/bin/sh\necho This is EasyBuild 5.4.1\n")
    ended = run("build", "openmpi", "--prefix", tmp_path / "prefix")
    assert (ended.code, "build-step-failed" in ended.err) == (3, True)
    assert matches(ended.err, "build-step-failed", step="left no module")


def test_a_prefix_that_no_makefile_takes_is_refused(run: Run, eb: Path, tmp_path: Path) -> None:
    ended = run("build", "openmpi", "--prefix", tmp_path / "my mpi")
    assert (ended.code, "prefix-unsuitable" in ended.err) == (2, True)
    assert not (eb / "asked").exists()


def test_a_step_that_fails_is_named_with_its_last_lines_and_log(
    run: Run, eb: Path, tmp_path: Path
) -> None:
    (eb / "fails").write_text("libfabric")
    ended = run("build", "openmpi", "--prefix", tmp_path / "prefix")
    assert ended.code == 3
    assert built(eb) == ["libfabric-2.1.0-gnu.eb"]
    for words in ("libfabric 2.1.0", "cannot find flex", "/tmp/easybuild-x.log"):
        assert words in ended.err


def test_sources_that_changed_are_refused_before_anything_is_built(
    run: Run, eb: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "sources"
    folder.mkdir()
    for name in ("libfabric_2.1.0.orig.tar.xz", "openmpi_5.0.7.orig.tar.xz"):
        (folder / name).write_text("another")
    words = ("build", "openmpi", "--sources", folder, "--prefix", tmp_path / "prefix")
    for ended in (run(*words), run(*words, "--dry-run")):
        assert (ended.code, ended.out) == (2, "")
        assert "source-changed" in ended.err
    assert not (eb / "asked").exists()
    assert not (tmp_path / "prefix").exists()


def test_root_and_a_machine_without_easybuild_are_refused(
    run: Run, eb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("build", "openmpi", "--prefix", tmp_path / "prefix")
    monkeypatch.delenv("LMOD_CMD")
    assert "module-tool-missing" in run(*words).err
    (eb / "eb").write_text("#!/bin/sh\necho This is EasyBuild 4.9.4\n")
    assert "easybuild-missing" in run(*words).err
    (eb / "eb").unlink()
    assert "easybuild-missing" in run(*words).err
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert (run(*words).code, "build-as-root" in run(*words).err) == (3, True)
