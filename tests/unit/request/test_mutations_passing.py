"""Every small change of the code that decides what of a user's environment a job and its guest
are given is noticed by the tests of it."""

from __future__ import annotations

from types import ModuleType

import pytest

from mpigraft.graft.engines import mounts
from mpigraft.request import environment
from tests.mutation.checks import checks
from tests.mutation.mutator import survivors
from tests.unit.request import test_passing, test_passing_guest

PASSING = (
    "UserEnvironment.for_guest",
    "UserEnvironment.into",
    "UserEnvironment.absent",
    "UserEnvironment.reaching",
    "filter_environment",
    "_why_not",
    "_why_not_inside",
    "_brings",
    "_strange",
    "_not_there",
    "_bound_or_set",
    "_there",
    "_of_system",
    "_of_transports",
    "MOST_BINDS",
)
MOUNTS = ("same_inside", "_backing", "_source")

# Changes that change nothing that anyone could see, and why: beginnings of their names.
SAME: dict[str, str] = {}


@pytest.mark.covering
@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "only"), [(environment, PASSING), (mounts, MOUNTS)], ids=["passing", "mounts"]
)
def test_every_change_is_noticed(module: ModuleType, only: tuple[str, ...]) -> None:
    tests = [check for test in (test_passing, test_passing_guest) for check in checks(test)]
    alive = survivors(module, only, tests)
    unexpected = [name for name in alive if not name.startswith(tuple(SAME))]
    assert not unexpected, "\n".join(["nothing noticed:", *unexpected])
