"""What a kept start rests on where a disk is full, and where the cache is of another version."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core import cache
from mpigraft.run import scratch
from mpigraft.run.cached import document, start


@pytest.mark.parametrize(
    "value", [{"configuration": {}}, {"layout": 1}, "text", {}, [], None], ids=str
)
def test_a_job_of_another_version_is_unknown_and_made_anew(
    value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"MPIGRAFT_HOME": str(tmp_path)}
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path))
    cache.put(document.KIND, "k", value)
    start.keep_start({"key": "k"}, environ)
    assert [*Path(start.folder(environ)).iterdir()] != []
    (finding,) = document.launch_findings("k", tmp_path)
    assert finding.code == "job-unknown"
    assert [*Path(start.folder(environ)).iterdir()] == []


def test_half_a_document_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(number: int, mode: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    environ = {"MPIGRAFT_HOME": str(tmp_path)}
    monkeypatch.setattr(os, "fchmod", full)
    start.keep_start({"key": "k"}, environ)
    assert [*Path(start.folder(environ)).iterdir()] == []


def test_records_get_an_empty_folder(tmp_path: Path) -> None:
    names = {scratch.new_folder(str(tmp_path)) for _ in range(3)}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert len(names) == 3
    assert [*tmp_path.glob("*/*")] == []


def test_there_is_no_folder_for_records_without_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scratch.new_folder(str(tmp_path / "absent")) == ""

    class Full:
        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def write(self, data: bytes) -> int:
            return len(data) // 2

    monkeypatch.setattr(scratch, "open", lambda *_, **__: Full(), raising=False)
    assert scratch.new_folder(str(tmp_path)) == ""
    assert [*tmp_path.iterdir()] == []
