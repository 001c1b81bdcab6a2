"""The world in which the C programs are tested."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.native.programs import PREBUILT
from tests.native.native_world import World, compile_c


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the prebuilt programs of this architecture."""
    folder = PREBUILT / platform.machine()
    if not folder.is_dir():
        pytest.fail("the C programs are not built: `make natives`", pytrace=False)
    return folder


@pytest.fixture(scope="session")
def world(mpis: Mapping[Family, Path], programs: Path) -> World:
    return World(mpis, programs)


@pytest.fixture(scope="session")
def corrupt(mpis: Mapping[Family, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shim for MPICH's ABI that spoils what one call delivers."""
    output = tmp_path_factory.mktemp("corrupt") / "corrupt.so"
    headers = mpis[Family.MPICH] / "include"
    return compile_c("corrupt.c", output, "-shared", "-fPIC", "-isystem", headers)


@pytest.fixture(scope="session")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with drivers of two GPUs whose memory is the host's."""
    folder = tmp_path_factory.mktemp("gpu")
    for name in ("libcuda.so.1", "libamdhip64.so"):
        compile_c("gpu.c", folder / name, "-shared", "-fPIC")
    return folder
