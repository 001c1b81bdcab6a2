"""What copies of an MPI under a stack see of the environment."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
from pathlib import Path

import pytest

from mpigraft.native.programs import PREBUILT, SETTINGS

LINES = "OPAL_PREFIX=/g/mpi\nPMIX_LIBDIR=\n\n=x\nPMIX_MCA_psec\nUCX=a=b\n"


@pytest.fixture
def library(tmp_path: Path) -> ctypes.CDLL:
    """The library as it lies in a generation."""
    (tmp_path / "mpi/lib").mkdir(parents=True)
    (tmp_path / "mpi/environment").write_text(LINES)
    copy = str(shutil.copy(PREBUILT / platform.machine() / SETTINGS, tmp_path / "mpi/lib/s.so"))
    loaded = ctypes.CDLL(copy)
    loaded.mpigraft_getenv.restype = ctypes.c_char_p
    return loaded


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"OPAL_PREFIX", b"/g/mpi"),
        (b"PMIX_LIBDIR", b""),
        (b"PMIX_MCA_psec", None),
        (b"UCX", b"a=b"),
        (b"OPAL", b"of the process"),
        (b"OPAL_PREFIXES", None),
        (b"PMIX_MCA_psecs", b"of the process"),
        (b"", None),
    ],
)
def test_its_lines_precede_the_process(
    library: ctypes.CDLL, name: bytes, value: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in ("OPAL", "PMIX_MCA_psec", "PMIX_MCA_psecs", "UCX"):
        monkeypatch.setenv(other, "of the process")
    assert library.mpigraft_getenv(name) == value


def test_what_has_a_line_is_not_set_for_others(library: ctypes.CDLL) -> None:
    libc = ctypes.CDLL(None)
    libc.getenv.restype = ctypes.c_char_p
    assert "OPAL_PREFIX" not in os.environ
    assert library.mpigraft_setenv(b"OPAL_PREFIX", b"/other", 1) == 0
    assert libc.getenv(b"OPAL_PREFIX") is None
    try:
        assert library.mpigraft_setenv(b"MPIGRAFT_OTHER", b"1", 1) == 0
        assert libc.getenv(b"MPIGRAFT_OTHER") == b"1"
        assert library.mpigraft_setenv(b"MPIGRAFT_OTHER", b"2", 0) == 0
        assert libc.getenv(b"MPIGRAFT_OTHER") == b"1"
    finally:
        libc.unsetenv(b"MPIGRAFT_OTHER")
    assert library.mpigraft_setenv(b"", b"1", 1) == -1


def test_without_the_file_it_is_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copy(PREBUILT / platform.machine() / SETTINGS, tmp_path / "s.so")
    loaded = ctypes.CDLL(str(copy))
    loaded.mpigraft_getenv.restype = ctypes.c_char_p
    monkeypatch.setenv("OPAL_PREFIX", "/own")
    assert loaded.mpigraft_getenv(b"OPAL_PREFIX") == b"/own"
