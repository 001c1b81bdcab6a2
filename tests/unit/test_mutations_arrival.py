"""Every small change of the code that hands arguments and standard input to ranks is noticed."""

from __future__ import annotations

from types import ModuleType

import pytest

from mpigraft import seating, standard_input
from tests.unit import test_seating, test_standard_input
from tests.unit.mutator import survivors
from tests.unit.mutator_checks import checks

SEATING = ("words", "seated", "encoded", "decoded", "is_binary", "MOST")
INPUT = ("ensure", "is_empty", "serve", "end")

SAME = {"MOST: 65536 -> 65537": "any number well below execve's limit would do"}


@pytest.mark.parametrize(
    ("module", "only", "test"),
    [(seating, SEATING, test_seating), (standard_input, INPUT, test_standard_input)],
    ids=["seating", "standard_input"],
)
def test_every_change_is_noticed(
    module: ModuleType, only: tuple[str, ...], test: ModuleType
) -> None:
    alive = survivors(module, only, checks(test))
    unexpected = [name for name in alive if not name.startswith(tuple(SAME))]
    assert not unexpected, "\n".join(["nothing noticed:", *unexpected])
