"""Folders of which nothing can be executed."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpigraft.core import noexec
from mpigraft.core.errors import MissingError
from tests.builders.messages import matches


def test_a_file_system_mounted_noexec_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noexec.refuse_noexec(tmp_path, "a program")
    noexec.refuse_noexec(tmp_path / "is not there", "a program")
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_NOEXEC | 1))
    with pytest.raises(MissingError, match="is on a file system that is mounted") as refused:
        noexec.refuse_noexec(tmp_path, "the C programs", noexec.INSTALL_FIX)
    assert matches(refused.value, "folder-noexec", what="the C programs")
    assert refused.value.fix.startswith(noexec.INSTALL_FIX)
