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
from tests.mutation.mutator import mutants, survivors
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

PROVE = (
    "TIMED_OUT", "judge_evidence", "worth_repeating", "_all_proven", "_assess_all", "_label",
    "lane_label", "_launch_failure", "_crash", "_explanation", "_lane_findings", "_mismatches",
    "_unreachable", "_phase_findings", "relevant_lines", "TAIL_LINES",
)  # fmt: skip
KEPT = ("evidence_key", "_libraries")
LANES = (
    "drowned_parts", "left_out", "exercised", "with_peer_class", "phase_of", "expected",
    "claims_of", "wire_state", "differing_parts", "_part_state", "find_sign", "lane_name",
    "judge_traffic", "_printed", "_missing", "_with_wire",
)  # fmt: skip
PHASES = (
    "CARRIED", "LONG", "BURST", "phases", "_phase", "_part", "_idle_rate", "_seconds", "records",
    "_counts", "Transfer.carried", "Transfer.drowned", "Transfer.left_out", "Transfer.of_one",
    "Transfer._shared", "Transfer.by_own",
)  # fmt: skip
WITNESS = (
    "check_witness", "_unshared", "_world", "_hosts", "libmpis", "_library",
)  # fmt: skip
WORLDS = (
    "Lineage.of_launcher", "make_lineage", "sort_worlds", "topmost", "_cut_off", "_by_turn",
    "_in_every_task", "_kind", "group_ranks", "list_worlds",
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
NETWORKS = ("network_name", "due_networks", "_others")
MAPPED = ("DueLibrary.is_mapped", "content_here", "identity_of", "_contents")
MEASURE = ("TIMED_OUT", "launch_outcome", "_errors", "_ending", "_missing", "_last_words")

ATTRIBUTION = (
    "attributed", "_attributed", "_unplaced", "_complete", "_enough", "_with_devices",
    "why_undecided", "disagreement", "own_bytes",
)  # fmt: skip
SOCKETS = (
    "QUIET", "SLACK", "Sockets.agree", "Sockets.unplaced", "read_sockets", "_bytes",
)  # fmt: skip

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
        (judge, PROOFS, PROVE),
        (keys, (test_kept_evidence, test_config_files), KEPT),
        (lanes, (test_lanes, test_signs, *PROOFS), LANES),
        (probe, (test_lanes, *PROOFS), PHASES),
        (attribution, (test_attribution, test_attribution_nodes), ATTRIBUTION),
        (sockets, (test_sockets, test_attribution), SOCKETS),
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
        (worlds, (test_worlds,), WORLDS),
        (records, (test_records, test_worlds), RECORDS),
        (measurement, (test_measure,), MEASURE),
        (config, (test_config_files, test_config_files_exact), CONFIG),
        (used, (test_used_files,), USED),
        (files, (test_used_files,), CAMPAIGN),
        (networks, (test_network_libraries,), NETWORKS),
        (builds, (test_builds, test_witness), ("check_builds", "_add_host", "_described")),
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
