"""Every small change of the code that decides what a probe or a launch proves is noticed by the
tests of it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from mpigraft.bench import files, measurement
from mpigraft.core import worlds
from mpigraft.evidence import judge, keys
from mpigraft.evidence.files import config, used
from mpigraft.evidence.traffic import attribution, lanes, probe, sockets
from mpigraft.evidence.world import builds, mapped, networks, records, witness
from tests.mutation import mutator
from tests.mutation.checks import checks
from tests.mutation.mutator import every, mutants, name_of, survivors
from tests.unit.bench import test_measure
from tests.unit.evidence import (
    test_attribution,
    test_attribution_nodes,
    test_bindings,
    test_builds,
    test_config_files,
    test_config_files_exact,
    test_kept_evidence,
    test_lanes,
    test_network_libraries,
    test_overrides,
    test_prove,
    test_prove_parts,
    test_prove_recorded,
    test_records,
    test_signs,
    test_sockets,
    test_used_files,
    test_wires,
    test_wires_hosts,
    test_witness,
    test_witness_many,
    test_worlds,
)

# Functions and constants that the tests below do not hold, and why.
TASTE, WORDS = "any number as great is as good", "it writes for people"
BUT: dict[ModuleType, dict[str, str]] = {
    judge: {"FAR": "no case is so close"},
    probe: {"WHOLE": "no case is so close"},
    lanes: {"TrafficFinding.fix": WORDS, "_unrequested": WORDS},
    witness: {"_named": WORDS, "_numbers": WORDS, "due_library": "tests of grafts hold it"},
    worlds: {"TYPE_CHECKING": "it is of types alone"},
    records: {
        **dict.fromkeys(("MOST", "MOST_BROKEN", "MOST_CPUS", "MOST_ENTERED"), TASTE),
        "_bytes": "changed, it waits for a pipe that nobody writes to",
        **dict.fromkeys(("_of_launch", "_unread"), "numbers that nobody reads where none is known"),
        "read_entered": "tests of launches that hang hold it",
    },
    measurement: {
        "OWN_LINES": TASTE,
        "TAIL_LINES": TASTE,
        **dict.fromkeys(("launch_record", "native_words", "program"), "tests of campaigns hold it"),
    },
    config: {
        "MAX_LIBRARY": TASTE,
        "_inspected_files": "tests put small libraries in its place",
    },
    used: dict.fromkeys(("_libraries", "_mapped"), "libraries of these tests are no ELF files"),
    builds: {"FEW": "how many are named"},
    mapped: {"DueLibrary.contents": "it saves reading a file that is not there"},
}
PROOFS = (
    test_attribution, test_attribution_nodes, test_prove, test_prove_parts, test_prove_recorded,
    test_witness, test_wires, test_wires_hosts,
)  # fmt: skip


TESTS: dict[ModuleType, tuple[ModuleType, ...]] = {
    judge: PROOFS,
    keys: (test_kept_evidence, test_config_files),
    lanes: (test_lanes, test_signs, *PROOFS),
    probe: (test_lanes, *PROOFS),
    attribution: (test_attribution, test_attribution_nodes),
    sockets: (test_sockets, test_attribution),
    witness: (
        test_builds, test_worlds, test_bindings, test_overrides, test_witness_many,
        test_network_libraries, *PROOFS,
    ),
    worlds: (test_worlds,),
    records: (test_records, test_worlds),
    measurement: (test_measure,),
    config: (test_config_files, test_config_files_exact),
    used: (test_used_files,),
    files: (test_used_files,),
    networks: (test_network_libraries,),
    builds: (test_builds, test_witness),
    mapped: (test_builds, test_witness, test_network_libraries),
}  # fmt: skip


@pytest.mark.covering
@pytest.mark.long
@pytest.mark.parametrize("module", TESTS, ids=name_of)
def test_every_change_is_noticed(module: ModuleType) -> None:
    every_check = [check for test in TESTS[module] for check in checks(test)]
    alive = survivors(module, every(module, BUT.get(module, {})), every_check)
    assert not alive, "\n".join(["nothing noticed:", *alive])


@pytest.mark.long
@pytest.mark.covering
def test_code_that_is_put_in_place_unchanged_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails the checks above is the change, and not that the code was exchanged."""

    def nothing(*_: object) -> str:
        return "itself"

    monkeypatch.setattr(mutator, "_mutate", nothing)
    for module, tests, only in (
        (judge, test_prove_parts, ("judge_evidence", "_crash", "TIMED_OUT")),
        (lanes, test_lanes, ("judge_traffic", "_part_state")),
        (probe, test_lanes, ("_part", "LONG")),
        (witness, test_witness, ("check_witness", "_world")),
        (measurement, test_measure, ("launch_outcome",)),
    ):
        assert module.__file__
        due = [m.name for m in mutants(Path(module.__file__).read_text(), only)]
        assert survivors(module, only, checks(tests)) == due
