"""Every small change of the code that decides what a probe or a launch proves is noticed by the
tests of it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from mpigraft import (
    attribution,
    campaign_files,
    config_files,
    kept_evidence,
    lanes,
    measure,
    network_libraries,
    phases,
    prove,
    records,
    sockets,
    used_files,
    witness,
)
from tests.unit import (
    mutator,
    test_attribution,
    test_attribution_nodes,
    test_config_files,
    test_config_files_exact,
    test_kept_evidence,
    test_lanes,
    test_measure,
    test_network_libraries,
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
)
from tests.unit.mutator import mutants, survivors
from tests.unit.mutator_checks import checks

PROVE = (
    "TIMED_OUT", "judge", "worth_repeating", "_all_proven", "_hear_all", "_label", "ran",
    "_context", "_ending", "_crash", "_known", "_of_lanes", "_mismatches", "_unreachable",
    "_of_phases", "telling", "TAIL_LINES",
)  # fmt: skip
KEPT = ("evidence_key", "_libraries")
LANES = (
    "drowned", "left_out", "exercised", "placed", "phase_of", "expected", "claims_of",
    "wire_says", "apart", "_crossed", "look", "named", "hear", "_all_seen", "_missing",
    "_with_wire",
)  # fmt: skip
PHASES = (
    "CARRIED", "LONG", "BURST", "phases", "_phase", "_part", "_idle_rate", "_seconds", "records",
    "_counts", "Part.carried", "Part.drowned", "Part.left_out", "Part.of_one", "Part._shared",
    "Part.by_own",
)  # fmt: skip
WITNESS = (
    "check_witness", "_unshared", "_world", "_hosts", "libmpis", "_library", "_of_one_kernel",
    "_of_nodes_of", "_may_be",
)  # fmt: skip
RECORDS = (
    "UNREAD", "read_witness", "_told_apart", "_of_node", "_objects", "_noting",
    "_common", "_record", "cpus", "_whole", "_text", "_texts",
)  # fmt: skip
CONFIG = (
    "config_files", "_variables", "_facts", "_filled", "_built", "built_in", "_named", "_in_guest",
    "ConfigFiles.present", "ConfigFiles.with_settings",
    "Surroundings.steering", "Surroundings.inherited",
)  # fmt: skip
USED = (
    "libraries", "launchers", "graft_files", "image_lists", "used_files", "changed",
    "named_digests",

)  # fmt: skip
CAMPAIGN = ("refuse_changed", "refuse_other", "_few")
NETWORKS = ("network_name", "due_networks", "check_networks", "_others", "_is")
MEASURE = ("TIMED_OUT", "outcome", "_errors", "_ending", "_missing", "_finding")

ATTRIBUTION = (
    "attributed", "_attributed", "_unplaced", "_complete", "_enough", "_with_devices",
    "cannot_tell", "disagreement", "own_bytes",
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


@pytest.mark.parametrize(
    ("module", "tests", "only"),
    [
        (prove, PROOFS, PROVE),
        (kept_evidence, (test_kept_evidence, test_config_files), KEPT),
        (lanes, (test_lanes, test_signs, *PROOFS), LANES),
        (phases, (test_lanes, *PROOFS), PHASES),
        (attribution, (test_attribution, test_attribution_nodes), ATTRIBUTION),
        (sockets, (test_sockets, test_attribution), SOCKETS),
        (witness, (test_witness, test_witness_many, test_network_libraries, *PROOFS), WITNESS),
        (records, (test_records,), RECORDS),
        (measure, (test_measure,), MEASURE),
        (config_files, (test_config_files, test_config_files_exact), CONFIG),
        (used_files, (test_used_files,), USED),
        (campaign_files, (test_used_files,), CAMPAIGN),
        (network_libraries, (test_network_libraries,), NETWORKS),
    ],
    ids=[
        "prove",
        "kept",
        "lanes",
        "phases",
        "attribution",
        "sockets",
        "witness",
        "records",
        "measure",
        "config",
        "used",
        "campaign",
        "networks",
    ],
)
def test_every_change_is_noticed(
    module: ModuleType, tests: tuple[ModuleType, ...], only: tuple[str, ...]
) -> None:
    alive = survivors(module, only, [check for test in tests for check in checks(test)])
    assert not alive, "\n".join(["nothing noticed:", *alive])


def test_code_that_is_put_in_place_unchanged_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails the checks above is the change, and not that the code was exchanged."""

    def nothing(*_: object) -> str:
        return "itself"

    monkeypatch.setattr(mutator, "_mutate", nothing)
    for module, tests, only in (
        (prove, test_prove_parts, ("judge", "_crash", "TIMED_OUT")),
        (lanes, test_lanes, ("hear", "_crossed")),
        (phases, test_lanes, ("_part", "LONG")),
        (witness, test_witness, ("check_witness", "_world")),
        (measure, test_measure, ("outcome",)),
    ):
        assert module.__file__
        due = [m.name for m in mutants(Path(module.__file__).read_text(), only)]
        assert survivors(module, only, checks(tests)) == due
