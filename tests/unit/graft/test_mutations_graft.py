"""Every small change of the code that decides what goes into a guest is noticed by the tests."""

from __future__ import annotations

from types import ModuleType

import pytest

from mpigraft.core import fingerprint
from mpigraft.graft.injection import contents, fixpoint, plan, private_names, simulation
from tests.mutation.checks import checks
from tests.mutation.mutator import every, survivors
from tests.unit.graft import (
    test_injection,
    test_injection_details,
    test_injection_glibc,
    test_injection_ladder,
    test_injection_libmpi,
    test_plan,
)

INJECTION = (
    test_injection, test_injection_details, test_injection_glibc, test_injection_ladder,
    test_injection_libmpi,
)  # fmt: skip
FIXPOINT = (
    "add_needs", "improve", "add_missing", "load_bare", "_opened", "rank_environment",
    "graft_files", "copy_elf", "copy_name", "name_of",
)  # fmt: skip
NAMES = (
    "PrivateNames.file_name",
    "PrivateNames.renamed",
    "PrivateNames.symbols",
    "PrivateNames.alone",
    "names_of",
)
WHOLE = (
    "_closed", "_collisions", "_why", "_libmpi", "_copies", "_environment",
)  # fmt: skip
SIMULATION = ("compare_loading", "brought_by", "_unbound", "plain")
PLAN = (
    "plan_folder", "_data", "_of_mpi", "_other_programs", "_environment", "path_stamps",
    "changed_paths",
)  # fmt: skip

# Changes that change nothing that anyone could see, and why: beginnings of their names.
SAME = {
    "PrivateNames.alone: if name not in self._alone: -> if True": "it is kept for speed alone",
    "copy_elf: if key not in state.facts: -> if True": "a library is known by its soname as well",
    "_data: given.abi and given.whole -> True and": "a whole MPI has an ABI",
    "copy_elf: None if libc else state.lib -> if False": "parts of glibc are found without a path",
    "compare_loading: {(u.by, u.library, u.node) for u in before.unmet} if after.unmet": "speed",
    "_unbound: set(before.unbound) if after.unbound": "speed",
    "brought_by: plugin and r.path -> plugin and True": "no file is called None",
    "brought_by: r.elf.name if r.elf else '' -> if False": "plugins are called by their paths",
    "brought_by: if plugin: -> if False": "a plugin that is not whole stands there by its own path",
    "_closed: r.rule is Rule.OPENED and": "only what is opened has both a path and a problem",
    "_collisions: r.path and (not state.grafted(r.path)) and": "what is laid over is known before",
    "_copies: () if library.role is Role.LIBC": "nothing of glibc is private",
}  # fmt: skip


@pytest.mark.covering
@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "tests", "only"),
    [
        (fixpoint, INJECTION, FIXPOINT),
        (private_names, INJECTION, NAMES),
        (contents, INJECTION, WHOLE),
        (simulation, INJECTION, SIMULATION),
        (plan, (test_plan,), PLAN),
        (fingerprint, (test_plan,), every(fingerprint)),
    ],
    ids=["fixpoint", "names", "contents", "simulation", "plan", "fingerprint"],
)
def test_every_change_is_noticed(
    module: ModuleType, tests: tuple[ModuleType, ...], only: tuple[str, ...]
) -> None:
    alive = survivors(module, only, [check for test in tests for check in checks(test)])
    unexpected = [name for name in alive if not name.startswith(tuple(SAME))]
    assert not unexpected, "\n".join(["nothing noticed:", *unexpected])
