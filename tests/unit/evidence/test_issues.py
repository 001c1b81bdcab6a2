"""Each detector that reads a text or a machine finds its planted case, and not the near miss."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.model import Gpu, Machine, NetDevice, NetLibrary, SingleCopy
from mpigraft.evidence.issues import issues_in_output, issues_of_machine, matching_issues
from mpigraft.knowledge import known_issues, resolve_transport
from tests.builders.configuration import a_machine
from tests.builders.messages import shows
from tests.builders.probes import HERE, install

DATA = Path(__file__).resolve().parents[2] / "data"
CASES: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    (DATA / "detectors.toml").read_text(encoding="utf-8")
)
KINDS = {"cxi": "cxi", "infiniband": "infiniband", "ethernet": "ethernet", "hfi1_0": "infiniband"}
ROWS = {issue.id: issue for issue in known_issues()}


def of_kind(*kinds: str) -> set[str]:
    return {issue.id for issue in known_issues() if set(kinds) & set(issue.detect.kinds)}


def test_every_detector_has_a_case_and_a_near_miss() -> None:
    assert CASES["text"].keys() == of_kind("text")
    assert CASES["machine"].keys() == of_kind("version", "fact")


@pytest.mark.parametrize("name", sorted(of_kind("text")))
def test_a_text_is_found_and_a_near_miss_is_not(name: str) -> None:
    case = CASES["text"][name]
    text = case.get("before", "")
    text += (DATA / "logs" / case["log"]).read_text() if "log" in case else case["fires"]
    hits = {match.issue.id: match for match in issues_in_output(text, "job.out")}
    assert hits[name].kind == "text"
    assert hits[name].of == "job.out"
    assert name not in {match.issue.id for match in issues_in_output(case["quiet"], "job.out")}


def described(case: dict[str, Any]) -> Machine:
    libraries = {
        name: NetLibrary(name, case[name], None) for name in ("libfabric", "ucx") if name in case
    }
    name = {"cxi": "cxi0", "infiniband": "mlx5_0", "ethernet": "eth0"}
    up = case.get("up", "ethernet")
    return replace(
        a_machine(install(case["mpi"], **libraries)),
        fabrics=(NetDevice(name.get(up, up), KINDS[up], "up"),),
        gpus=(Gpu(0, case["gpu"], "a GPU", 1024),) if "gpu" in case else (),
        single_copy=(
            SingleCopy("xpmem", case.get("xpmem", False), "as the case says"),
            SingleCopy("cma", "cma" not in case, case.get("cma", "can be used")),
        ),
    )


@pytest.mark.parametrize("name", sorted(of_kind("version", "fact")))
def test_a_machine_is_found_and_a_near_miss_is_not(name: str) -> None:
    case = CASES["machine"][name]
    hits = {match.issue.id: match for match in issues_of_machine(described(case["fires"]))}
    assert shows(hits[name].of, "host", case["fires"]["mpi"])
    fact = "cma" in case["fires"]
    assert hits[name].kind == ("fact" if fact else "version")
    assert hits[name].sure == ("matches" if fact else "possible")
    assert not fact or shows(hits[name].message, "single_copy.cma.reason", "ptrace_scope")
    assert name not in {m.issue.id for m in issues_of_machine(described(case["quiet"]))}


def test_an_mpi_that_cannot_be_used_has_no_issues() -> None:
    machine = described(CASES["machine"]["LNX-08"]["fires"])
    broken = tuple(replace(mpi, usable=False, reason="no libmpi") for mpi in machine.mpis)
    assert issues_of_machine(replace(machine, mpis=broken)) == ()


def test_a_message_quotes_the_line() -> None:
    (match,) = issues_in_output("start\n[n1] cxil_map: write error\nend\n", "job.out")
    assert shows(match.message, "[n1] cxil_map: write error")
    assert match.sure == "matches"
    (several,) = issues_in_output("  Framework: psec\n  Component: munge\n", "job.out")
    assert shows(several.message, "Component: munge")


def test_a_text_of_several_causes_is_possible_only() -> None:
    (match,) = issues_in_output("Error: Required key not available\n", "job.out")
    assert match.sure == "possible"


def test_issues_are_matched_by_what_is_printed() -> None:
    lnx = resolve_transport("ofi-lnx", install("openmpi@5.0.11"), HERE)
    said = "Open MPI failed a call (fi_endpoint).\n  Error: No data available (61)\n"
    assert [issue.id for issue in matching_issues(said, lnx)] == ["LNX-02"]
    assert matching_issues("all is well", lnx) == ()
    assert matching_issues(said, resolve_transport("ob1-sm", install("openmpi@5.0.11"), HERE)) == ()
    pmi = "No PMIx server was reachable, but a PMI1/2 was detected."
    assert [issue.id for issue in matching_issues(pmi, None)] == ["LCH-01"]


def test_a_session_folder_that_another_job_removed_is_a_known_issue() -> None:
    """As Open MPI 4.1.8 printed it."""
    printed = """A call to mkdir was unable to create the desired directory:

  Directory: /scratch/ompi.vm.0/pid.19601
  Error:     {error}

Please check to ensure you have adequate permissions to perform
the desired operation.
"""
    removed = printed.format(error="No such file or directory")
    assert [issue.id for issue in matching_issues(removed, None)] == ["LCH-12"]
    assert matching_issues(printed.format(error="Permission denied"), None) == ()


def test_the_transports_own_issues_come_first_and_in_its_order() -> None:
    lnx = resolve_transport("ofi-lnx", install("openmpi@5.0.11"), HERE)
    said = (
        'provider_include = "shm+cxi:lnx"\nNo PMIx server was reachable, but a PMI1/2 was detected.'
        "\nselect: init returned failure for component cm\nselected ob1 best priority 20\n"
    )
    assert [issue.id for issue in matching_issues(said, lnx)] == ["LNX-01", "SEL-03", "LCH-01"]
