"""The systemd units and the cron line of the docs are what systemd and cron read."""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs/howto/recheck.md"
INDENT = "    "
FIELD = re.compile(r"(\*|\d+(-\d+)?)(/\d+)?(,(\*|\d+(-\d+)?)(/\d+)?)*")


def block(after: str) -> str:
    """The first indented block behind a text."""
    _, found, rest = PAGE.read_text().partition(after)
    assert found
    lines = rest.splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith(INDENT))
    ends = (n for n, line in enumerate(lines) if n > begin and line and line[0] != " ")
    return "\n".join(line.removeprefix(INDENT) for line in lines[begin : next(ends)]).strip()


def units() -> dict[str, str]:
    names = ("mpigraft-recheck.service", "mpigraft-recheck.timer")
    return {name: block(f"`/etc/systemd/system/{name}`") for name in names}


def test_units_have_the_sections_and_the_command() -> None:
    parsed = {}
    for name, text in units().items():
        parsed[name] = configparser.ConfigParser(interpolation=None, strict=True)
        parsed[name].read_string(text)
    service, timer = parsed.values()
    words = shlex.split(service["Service"]["ExecStart"])
    assert words[1] == "recheck"
    assert Path(words[0]).is_absolute()
    assert service["Service"]["Type"] == "oneshot"
    assert timer["Timer"]["OnCalendar"]
    assert timer["Install"]["WantedBy"] == "timers.target"


def test_systemd_reads_the_units(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here")
    for name, text in units().items():
        (tmp_path / name).write_text(text.replace("/usr/local/bin/mpigraft", "/bin/true") + "\n")
    paths = [tmp_path / name for name in units()]
    ended = subprocess.run(
        ["systemd-analyze", "verify", *paths], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_cron_reads_its_line() -> None:
    line = block("With cron")
    assert "\n" not in line
    *fields, command = line.split(None, 5)
    assert all(FIELD.fullmatch(field) for field in fields)
    assert "%" not in command  # cron ends the command there
    assert subprocess.run(["sh", "-n", "-c", command]).returncode == 0
    assert shlex.split(command)[0] == "mpigraft"


@pytest.mark.parametrize(
    ("code", "mailed"),
    [(0, ""), (1, "slower"), (2, "not measured"), (5, "not measured"), (6, "nothing judged")],
)
def test_cron_mails_what_the_exit_code_means(tmp_path: Path, code: int, mailed: str) -> None:
    command = block("With cron").split(None, 5)[5].replace("/srv/mpigraft", str(tmp_path))
    ends = f"mpigraft() {{ echo measured; return {code}; }}; mail() {{ echo $*; cat; }}; {command}"
    ended = subprocess.run(["sh", "-c", ends], capture_output=True, text=True)
    expected = f"-s mpigraft: {mailed} on {socket.gethostname()} root\nmeasured\n"
    assert (ended.stdout, ended.stderr) == (expected if mailed else "", "")
