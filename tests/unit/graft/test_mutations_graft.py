"""Every small change of the code that decides what goes into a guest is noticed by the tests."""

from __future__ import annotations

from types import ModuleType

import pytest

from mpigraft.core import fingerprint
from mpigraft.graft.injection import contents, fixpoint, plan, private_names, simulation
from tests.mutation.checks import checks
from tests.mutation.mutator import assert_noticed, every, name_of
from tests.unit.core import test_own_state
from tests.unit.graft import (
    test_injection,
    test_injection_details,
    test_injection_glibc,
    test_injection_ladder,
    test_injection_levels,
    test_injection_libmpi,
    test_plan,
)

INJECTION = (
    test_injection, test_injection_details, test_injection_glibc, test_injection_ladder,
    test_injection_levels, test_injection_libmpi, test_plan,
)  # fmt: skip

# Functions and constants that the tests below do not hold, and why.
WHOLE = "tests of whole grafts hold it: no small guest has such files"
SEARCH = "the search ends with the same graft by another way; properties of grafts hold it"
BUT: dict[ModuleType, dict[str, str]] = {
    contents: {
        "MAX_STEPS": "any number as great is as good",
        "GraftContents.of_host": "tests of checks hold it",
        "_inputs": WHOLE,
    },
    fixpoint: {
        **dict.fromkeys(
            ("GraftState.names", "graft_sources", "cover_files", "cover_modules"), WHOLE
        ),
        **dict.fromkeys(
            ("GraftState.opened", "load_paths", "begin", "needed_bindings",
             "add", "change_copies", "unbound_of_host", "robbed_libraries", "providers", "climb",
             "take_glibc"),
            SEARCH,
        ),
    },
    fingerprint: {"TYPE_CHECKING": "it is for type checkers alone"},
    simulation: {"compare_levels": "it names levels of CPUs: tests of checks hold it"},
}  # fmt: skip
# Changes that change nothing that anyone could see, and why: beginnings of their names.
SAME: dict[ModuleType, dict[str, str]] = {
    private_names: {
        "PrivateNames.alone: if name not in self._alone: -> if True": "it is kept for speed alone",
    },
    fixpoint: {
        "copy_elf: if key not in state.facts: -> if True":
            "a library is known by its soname as well",
        "copy_elf: None if libc else state.lib -> if False":
            "parts of glibc are found without a path",
    },
    simulation: {
        "Loaded.files: self.main.soname or self.program -> None": "a program has no soname",
        "compare_loading: {(u.by, u.library, u.node) for u in before.unmet} if after.unmet":
            "speed",
        "_unbound: set(before.unbound) if after.unbound": "speed",
        "brought_by: plugin and r.path -> plugin and True": "no file is called None",
        "brought_by: r.elf.name if r.elf else '' -> if False": "plugins are called by their paths",
        "brought_by: if plugin: -> if False":
            "a plugin that is not whole stands there by its own path",
    },
    contents: {
        "decide_contents: (*before, *after) -> ": "libraries of small guests are no files",
        "_closed: r.rule is Rule.OPENED and": "only what is opened has both a path and a problem",
        "_collisions: r.path and (not state.grafted(r.path)) and":
            "what is laid over is known before",
        "_copies: () if library.role is Role.LIBC": "nothing of glibc is private",
    },
    plan: {"_data: given.abi and given.whole -> True and": "a whole MPI has an ABI"},
}  # fmt: skip


TESTS: dict[ModuleType, tuple[ModuleType, ...]] = {
    **dict.fromkeys((fixpoint, private_names, contents, simulation), INJECTION),
    plan: (test_plan,),
    fingerprint: (test_plan, test_own_state),
}


@pytest.mark.covering
@pytest.mark.long
@pytest.mark.parametrize("module", TESTS, ids=name_of)
def test_every_change_is_noticed(module: ModuleType) -> None:
    every_check = [check for test in TESTS[module] for check in checks(test)]
    assert_noticed(module, every(module, BUT.get(module, {})), every_check, SAME.get(module, {}))
