"""Which long tests run again: those whose inputs are others than when they passed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import parts

pytestmark = pytest.mark.long  # of the tests' own tools: they run when these changed

CONFTEST = """
from pathlib import Path
from tests.parts import Parts

def pytest_addoption(parser):
    parser.addoption("--parts")

def pytest_configure(config):
    if which := config.getoption("--parts"):
        config.pluginmanager.register(Parts(Path("cache"), changed=which == "changed"))
"""
NET = """
import pytest
from mpigraft import net

@pytest.mark.long
def test_slow():
    assert net.SPEED
    assert (__import__("pathlib").Path(__file__).parent / "rates.txt").read_text() != "none"

@pytest.mark.long
@pytest.mark.covering
def test_covers():
    pass

def test_quick():
    pass
"""
DISK = """
import pytest
import subprocess

@pytest.mark.long
def test_disk():
    "python -m mpigraft.disk"
"""
PLAIN = "[tool.pytest.ini_options]\nmarkers = ['long', 'covering', 'daily']\npythonpath = ['.']\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of two parts, each on a module of its own."""
    files = {
        "pyproject.toml": PLAIN,
        "tests/conftest.py": CONFTEST,
        "tests/net/test_net.py": NET,
        "tests/net/rates.txt": "",
        "tests/disk/test_disk.py": DISK,
        "src/mpigraft/__init__.py": "",
        "src/mpigraft/net.py": "from mpigraft.speed import SPEED\n",
        "src/mpigraft/speed.py": "SPEED = 1\n",
        "src/mpigraft/disk.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "testbed").mkdir()
    (tmp_path / "cache").mkdir()
    for name in ("tests/parts.py", "testbed/kept.py"):
        shutil.copy(parts.PROJECT / name, tmp_path / name)
    return tmp_path


def ran(project: Path, *words: str) -> set[str]:
    """The names of the tests that a run of them passed or failed."""
    argv = [sys.executable, "-B", "-m", "pytest", "-v", "-p", "no:cacheprovider", *words]
    environ = {
        **os.environ,
        "PYTHONPATH": str(project / "src"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(argv, cwd=project, env=environ, capture_output=True, text=True)
    assert done.returncode in (0, 1, 5), done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if "::" in line and "%" in line]
    return {line.split()[0].rpartition("::")[2] for line in lines}


ALL = {"test_slow", "test_covers", "test_disk"}


@pytest.mark.covering
def test_without_a_record_the_covering_tests_run_and_are_no_pass(project: Path) -> None:
    for _ in range(2):
        assert ran(project, "--parts=changed") == {"test_covers"}


@pytest.mark.covering
def test_what_passed_runs_again_when_an_input_changed(project: Path) -> None:
    assert ran(project, "--parts=all") == ALL
    assert ran(project, "--parts=changed") == set()
    (project / "src/mpigraft/speed.py").write_text("SPEED = 2\n")  # imported by an import
    assert ran(project, "--parts=changed") == {"test_slow", "test_covers"}
    (project / "src/mpigraft/disk.py").write_text("SIZE = 2\n")  # named as a program
    assert ran(project, "--parts=changed") == {"test_disk"}
    (project / "tests/net/rates.txt").write_text("1\n")
    assert ran(project, "--parts=changed") == {"test_slow", "test_covers"}
    (project / "tests/conftest.py").write_text(f"{CONFTEST}\n")
    assert ran(project, "--parts=changed") == ALL
    assert ran(project, "--parts=changed") == set()


def test_what_failed_or_did_not_run_has_not_passed(project: Path) -> None:
    (project / "tests/net/rates.txt").write_text("none")
    assert ran(project, "--parts=all") == ALL
    for _ in range(2):
        assert ran(project, "--parts=changed") == {"test_slow", "test_covers"}
    (project / "tests/net/rates.txt").write_text("")
    assert ran(project, "--parts=changed", "-k", "covers") == {"test_covers"}
    one = "tests/net/test_net.py::test_covers"
    assert ran(project, "--parts=changed", one) == {"test_covers"}
    assert ran(project, "--parts=changed") == {"test_slow", "test_covers"}
    assert ran(project, "--parts=changed") == set()


def test_a_part_that_runs_the_command_depends_on_all_of_it() -> None:
    here = Path(__file__).parent
    assert parts.PROJECT / "src/mpigraft/cli/main.py" in parts.inputs(here / "test_jobs.py")
    assert parts.PROJECT / "testbed/enter" in parts.inputs(here / "test_bare_debian.py")


def test_a_part_depends_on_the_tools_that_it_names() -> None:
    here, tools = Path(__file__).parent, parts.PROJECT / "tools"
    release = {file for file in (tools / "release").iterdir() if file.is_file()}
    assert {*parts.inputs(here / "test_install.py")} >= release
    assert not {*parts.inputs(here / "test_jobs.py")} & release
