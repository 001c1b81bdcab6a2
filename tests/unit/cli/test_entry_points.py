"""The ways into the command: its script, `python -m mpigraft`, and an interrupt before either."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mpigraft import __version__
from mpigraft.cli import entry
from mpigraft.core.errors import UsageError
from mpigraft.graft import machine_content


def test_python_m_is_the_command() -> None:
    words = [sys.executable, "-m", "mpigraft", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"mpigraft {__version__}\n")


def test_an_interrupt_during_imports_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "collect_seldom", interrupted)
    monkeypatch.setattr(sys, "argv", ["mpigraft", "--version"])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "mpigraft: interrupted\n"


def test_a_description_from_a_pipe_is_read_once(tmp_path: Path) -> None:
    """`check --machine <(ssh node mpigraft discover --abi --json)`"""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_bytes, args=(b"{}",), daemon=True).start()
    assert machine_content(pipe) == b"{}"
    assert machine_content(pipe) == b"{}"
    with pytest.raises(UsageError, match="none"):
        machine_content(tmp_path / "none")
    file = tmp_path / "file"
    for content in (b"1", b"2"):  # a file may change
        file.write_bytes(content)
        assert machine_content(file) == content
