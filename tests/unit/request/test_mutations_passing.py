"""Every small change of the code that decides what of a user's environment a job and its guest
are given is noticed by the tests of it."""

from __future__ import annotations

from types import ModuleType

import pytest

from mpigraft.graft.engines import mounts
from mpigraft.request import environment
from tests.mutation.checks import checks
from tests.mutation.mutator import every, survivors
from tests.unit.graft import test_engine_folders, test_engines, test_engines_written
from tests.unit.request import test_passing, test_passing_guest

PASSING = (test_passing, test_passing_guest)
ENGINES = (*PASSING, test_engine_folders, test_engines, test_engines_written)
# Functions and constants that the tests below do not hold, and why.
WITHOUT_PRELOADS = ("UserEnvironment.with_preload", "UserEnvironment._without")  # those of `run` do
# MOST_STEPS and USERS: any as great is as good. The rest: only a real engine shows it.
WITHOUT_ENGINE = (
    "MOST_STEPS", "USERS", "mounts", "is_device", "_sessions", "_cwd", "_of_guest", "given",
    "inside",
)  # fmt: skip


@pytest.mark.covering
@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "tests", "but"),
    [(environment, PASSING, WITHOUT_PRELOADS), (mounts, ENGINES, WITHOUT_ENGINE)],
    ids=["passing", "mounts"],
)
def test_every_change_is_noticed(
    module: ModuleType, tests: tuple[ModuleType, ...], but: tuple[str, ...]
) -> None:
    alive = survivors(module, every(module, but), [c for test in tests for c in checks(test)])
    assert not alive, "\n".join(["nothing noticed:", *alive])
