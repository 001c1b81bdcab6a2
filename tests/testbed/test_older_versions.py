"""What an older mpigraft left in a home: it is understood or made anew, also while jobs run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed.images import Images

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root, pytest.mark.long]

ENTRY = (sys.executable, "-m", "mpigraft.cli.entry", "run")
LINES = ["RANK 0 of SIZE 2", "RANK 1 of SIZE 2"]
WAIT = "echo begun; read line; exec /opt/app/hello"


def graft(folder: Path) -> Path:
    (made,) = (folder / "grafts").iterdir()
    return made


def edit(file: Path, change: Callable[[Any], Any]) -> None:
    """The document changed in place, as another version would have written it."""
    changed = change(json.loads(file.read_bytes()))
    text = changed if isinstance(changed, str) else json.dumps(changed)
    begun = file.with_name("by-another")
    begun.write_text(text, encoding="utf-8")
    begun.chmod(0o600)
    begun.rename(file)


def without(*names: str) -> Callable[[Any], Any]:
    """The document as it was before these parts came, and with one that went since."""

    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(one) for one in value]
        if not isinstance(value, dict):
            return value
        kept = {name: change(one) for name, one in value.items() if name not in names}
        return {**kept, "went_since": 1} if len(kept) < len(value) else kept

    return change


OLDER = {
    # Of 0.1 before standard input and network libraries were looked at.
    "run": ("run", without("stdin", "networks", "network_name", "copies")),
    "run-format": ("run", lambda value: {**value, "stdin": [], "stamps": [["/", 1]]}),
    "job": ("job", without("launcher", "placement", "sources", "family")),
    "evidence": ("evidence", without("count", "asked", "standing")),
    "evidence-text": ("evidence", lambda value: {**value, "document": "proven"}),
    "all-cut": ("*", lambda value: json.dumps(value)[:-9]),
}


@pytest.fixture(scope="module")
def job(
    outside: Mapping[str, str], images: Images, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[str], dict[str, Any], Path]:
    """(its words, how it is started, home), all kept of it."""
    folder = tmp_path_factory.mktemp("older")
    home, cwd = folder / "home", folder / "work"
    home.mkdir()
    cwd.mkdir()
    (home / "mpi").symlink_to(Path(outside["MPIGRAFT_HOME"], "mpi"))
    of = [
        *ENTRY, "--image", str(images.folder("bookworm")), "--engine", "bwrap", "--mpi",
        "openmpi@4.1.8", "--transport", "ob1-sm", "--program", "/opt/app/hello", "-n", "2",
        "--", "sh", "-c", WAIT,
    ]  # fmt: skip
    how: dict[str, Any] = {"env": {**outside, "MPIGRAFT_HOME": str(home)}, "cwd": cwd, "text": True}
    good(subprocess.run(of, input="\n", capture_output=True, timeout=200, check=False, **how))
    return of, how, home


def good(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    lines = [line[:16] for line in done.stdout.splitlines() if line != "begun"]
    assert sorted(lines) == LINES, done.stderr


@pytest.mark.parametrize("what", OLDER)
def test_what_another_version_kept_is_no_obstacle(
    what: str, job: tuple[list[str], dict[str, Any], Path]
) -> None:
    """A job that runs meanwhile ends well, and so do the next two starts."""
    of, how, home = job
    kind, change = OLDER[what]
    pipe = subprocess.PIPE
    with subprocess.Popen(of, stdin=pipe, stdout=pipe, stderr=pipe, **how) as running:
        assert running.stdout is not None
        begun = running.stdout.readline()
        for file in (home / "cache").glob(f"{kind}/*.json"):
            edit(file, change)
        out, told = running.communicate("\n", timeout=200)
    good(subprocess.CompletedProcess(of, running.returncode, begun + out, told))
    for _ in range(2):
        good(subprocess.run(of, input="\n", capture_output=True, timeout=200, check=False, **how))


@pytest.mark.covering
def test_a_graft_of_another_version_is_listed_and_stays_usable(
    job: tuple[list[str], dict[str, Any], Path],
) -> None:
    of, how, home = job
    plan = graft(home) / "plan.json"
    edit(plan, without("guest", "binds"))
    listing = [sys.executable, "-m", "mpigraft.cli.main", "plan", "--list"]
    listed = subprocess.run(listing, capture_output=True, timeout=200, check=False, **how)
    assert listed.returncode == 0, listed.stderr
    assert graft(home).name[:12] in listed.stdout
    for _ in range(2):
        good(subprocess.run(of, input="\n", capture_output=True, timeout=200, check=False, **how))
