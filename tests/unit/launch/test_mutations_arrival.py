"""Every small change of the code that hands arguments and standard input to ranks is noticed."""

from __future__ import annotations

from types import ModuleType

import pytest

from mpigraft.core.process import stdin
from mpigraft.launch import gpu_select
from tests.mutation.checks import checks
from tests.mutation.mutator import every, survivors
from tests.unit.core import test_standard_input
from tests.unit.launch import test_gpu_select

SAME = {"MAX_WORD: 65536 -> 65537": "any number well below execve's limit would do"}


@pytest.mark.covering
@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "but", "test"),
    [
        (gpu_select, [], test_gpu_select),
        (stdin, ["start_silent"], test_standard_input),  # posix_spawn alone
    ],
    ids=["gpu_select", "standard_input"],
)
def test_every_change_is_noticed(module: ModuleType, but: list[str], test: ModuleType) -> None:
    alive = survivors(module, every(module, but), checks(test))
    unexpected = [name for name in alive if not name.startswith(tuple(SAME))]
    assert not unexpected, "\n".join(["nothing noticed:", *unexpected])
