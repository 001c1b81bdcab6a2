"""A plan for a real stack, whose loader and C library are its own."""

from __future__ import annotations

import pytest

from mpigraft.build.plan import plan_build
from mpigraft.build.stack import with_stack
from mpigraft.build.values import BuildHost, BuildRequest
from mpigraft.knowledge import packages, plan_table
from testbed.stacks import MACHINE, Stack

pytestmark = pytest.mark.testbed


def test_a_plan_knows_the_loader_and_the_c_library_of_a_stack(stack: Stack) -> None:
    host = BuildHost(MACHINE, frozenset(), {}, glibc="99.1")
    for place in (stack.root, stack.software):
        added = with_stack(host, place, packages(), {}).stack
        assert added
        assert added.loader == str(stack.loader)
        assert added.glibc.startswith("2.")
        assert added.generation == "12.2.0"
    plan = plan_build(
        BuildRequest("openmpi"), with_stack(host, stack.root, packages(), {}), packages(),
        plan_table(),
    )  # fmt: skip
    codes = {finding.code for finding in plan.findings}
    assert {"stack-without-compiler", "stack-older-glibc"} <= codes
