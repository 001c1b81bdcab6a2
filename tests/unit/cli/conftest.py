"""Running commands, and replacing what they call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.builders.commands import Ended, Run, run_on_store


@pytest.fixture
def replace_everywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[ModuleType, str, object], None]]:
    """Sets `module.name` to a value, and the same name wherever it was imported from there. Modules
    that are first imported meanwhile take the value too: they get the real one back."""
    replaced: list[tuple[str, object, object]] = []

    def replace(module: ModuleType, name: str, value: object) -> None:
        real = getattr(module, name)
        replaced.append((name, real, value))
        for known, other in list(sys.modules.items()):
            if known.startswith("mpigraft.") and other.__dict__.get(name) is real:
                monkeypatch.setattr(other, name, value)

    yield replace
    monkeypatch.undo()
    for name, real, value in replaced:
        for known, other in list(sys.modules.items()):
            if known.startswith("mpigraft.") and other.__dict__.get(name) is value:
                setattr(other, name, real)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on the store of this test, at 80 columns, in the test's own folder."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)

    def start(*words: object) -> Ended:
        code = run_on_store(tmp_path / "store", *words)
        return Ended(code, *capsys.readouterr())

    return start
