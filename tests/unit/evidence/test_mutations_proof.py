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
from tests.mutation.mutator import every, mutants, survivors
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

LANES = (
    "drowned_parts", "left_out", "exercised", "with_peer_class", "phase_of", "expected",
    "claims_of", "wire_state", "differing_parts", "_part_state", "find_sign", "lane_name",
    "judge_traffic", "_printed", "_missing", "_with_wire",
)  # fmt: skip
WITNESS = (
    "check_witness", "_unshared", "_world", "_hosts", "libmpis", "_library",
)  # fmt: skip
RECORDS = (
    "UNREAD", "read_witness", "_with_distinct_hosts", "_of_node", "_objects", "_noting",
    "_common", "_record", "cpus", "_whole", "_text", "_texts",
)  # fmt: skip
CONFIG = (
    "mpi_config_files", "_variables", "_facts", "_filled", "_built", "built_in", "_named",
    "_in_guest", "ConfigFiles.present", "ConfigFiles.with_settings", "Surroundings.steering",
    "Surroundings.inherited",
)  # fmt: skip
USED = (
    "mpi_libraries", "launcher_files", "graft_files", "image_lists", "used_files",
    "changed_files",
)  # fmt: skip
CAMPAIGN = ("refuse_changed_files", "refuse_other_files")
MEASURE = ("TIMED_OUT", "launch_outcome", "_errors", "_ending", "_missing", "_last_words")


MAPPED = every(mapped, ["DueLibrary.contents"])  # which saves reading a file that is not there
# Without FAR and WHOLE: no case is so close; and without FEW: how many are named.
PROOFS = (
    test_attribution,
    test_attribution_nodes,
    test_prove,
    test_prove_parts,
    test_prove_recorded,
    test_witness,
    test_wires,
    test_wires_hosts,
)


@pytest.mark.covering
@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "tests", "only"),
    [
        (judge, PROOFS, every(judge, ["FAR"])),
        (keys, (test_kept_evidence, test_config_files), every(keys)),
        (lanes, (test_lanes, test_signs, *PROOFS), LANES),
        (probe, (test_lanes, *PROOFS), every(probe, ["WHOLE"])),
        (attribution, (test_attribution, test_attribution_nodes), every(attribution)),
        (sockets, (test_sockets, test_attribution), every(sockets)),
        (
            witness,
            (
                test_witness,
                test_builds,
                test_worlds,
                test_bindings,
                test_overrides,
                test_witness_many,
                test_network_libraries,
                *PROOFS,
            ),
            WITNESS,
        ),
        (worlds, (test_worlds,), every(worlds, ["TYPE_CHECKING"])),
        (records, (test_records, test_worlds), RECORDS),
        (measurement, (test_measure,), MEASURE),
        (config, (test_config_files, test_config_files_exact), CONFIG),
        (used, (test_used_files,), USED),
        (files, (test_used_files,), CAMPAIGN),
        (networks, (test_network_libraries,), every(networks)),
        (builds, (test_builds, test_witness), every(builds, ["FEW"])),
        (mapped, (test_builds, test_witness, test_network_libraries), MAPPED),
    ],
    ids=[
        "prove",
        "kept",
        "lanes",
        "phases",
        "attribution",
        "sockets",
        "witness",
        "worlds",
        "records",
        "measure",
        "config",
        "used",
        "campaign",
        "networks",
        "builds",
        "mapped",
    ],
)
def test_every_change_is_noticed(
    module: ModuleType, tests: tuple[ModuleType, ...], only: tuple[str, ...]
) -> None:
    alive = survivors(module, only, [check for test in tests for check in checks(test)])
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
