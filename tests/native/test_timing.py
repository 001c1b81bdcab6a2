"""How long, how often and by which clock: the timing loop in worlds that are made up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from tests.native.timing import CHECKS, Ask, asker, build

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def ask(mpis: Mapping[Family, Path], tmp_path_factory: pytest.TempPathFactory) -> Ask:
    folder = tmp_path_factory.mktemp("timing") / "built"
    program = build(folder, mpis[Family.MPICH] / "include", {})
    assert program
    return asker(program)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_timing_loop(check: object, ask: Ask) -> None:
    assert callable(check)
    check(ask)
