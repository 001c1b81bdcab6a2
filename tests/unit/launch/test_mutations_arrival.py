"""Every small change of the code that hands arguments and standard input to ranks is noticed."""

from __future__ import annotations

from types import ModuleType

import pytest

from mpigraft.core.process import stdin
from mpigraft.launch import gpu_select
from tests.mutation.checks import checks
from tests.mutation.mutator import survivors
from tests.unit.core import test_standard_input
from tests.unit.launch import test_gpu_select

GPU_SELECT = ("rank_prefix", "wrap_words", "encode_word", "is_binary", "MAX_WORD")
INPUT = ("ensure_stdin", "is_empty", "serve_stdin", "end_stdin")

SAME = {"MAX_WORD: 65536 -> 65537": "any number well below execve's limit would do"}


@pytest.mark.covering
@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "only", "test"),
    [(gpu_select, GPU_SELECT, test_gpu_select), (stdin, INPUT, test_standard_input)],
    ids=["gpu_select", "standard_input"],
)
def test_every_change_is_noticed(
    module: ModuleType, only: tuple[str, ...], test: ModuleType
) -> None:
    alive = survivors(module, only, checks(test))
    unexpected = [name for name in alive if not name.startswith(tuple(SAME))]
    assert not unexpected, "\n".join(["nothing noticed:", *unexpected])
