"""What is planned on Slingshot: the versions of the study, and a machine's own libcxi."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mpigraft.build.easyconfigs import easyconfigs_of, root_variable
from mpigraft.build.plan import plan_build
from mpigraft.build.values import ASSUMED, BuildHost, BuildPlan, BuildRequest, Offer
from mpigraft.knowledge.builds import packages, plan_table
from tests.builders.messages import matches
from tests.unit.build.test_easyconfigs import switches, values

SLINGSHOT = BuildHost("x86_64", frozenset({"cxi"}), {})


def planned(host: BuildHost, versions: Mapping[str, str] | None = None) -> BuildPlan:
    return plan_build(BuildRequest("openmpi", versions or {}), host, packages(), plan_table())


def archive(plan: BuildPlan, name: str) -> tuple[str, str | None]:
    """The commit and the checksum of the archive of one package."""
    files = {file: values(text) for file, text in easyconfigs_of(plan).items()}
    found: Any = next(file for called, file in files.items() if called.startswith(name))
    (source,), (checksum,) = found["sources"], found["checksums"]
    return source["git_config"]["commit"] if isinstance(source, dict) else "", checksum


def test_the_versions_of_the_study_are_credited_to_it() -> None:
    """They were to EESSI's post, which names neither libfabric's version nor libconfig's."""
    plan = planned(SLINGSHOT, {"openmpi": "5.0.7", "libfabric": "2.1.0"})
    assert plan.versions["libcxi"] == "a38a9c5"
    assert plan.versions["libconfig"] == "1.7.3"
    credited = {step.id: step.source for step in plan.steps if "study" in step.chosen}
    assert {"libcxi", "libconfig"} <= credited.keys()
    (source,) = set(credited.values())
    assert "CUG 2025" in source
    assert archive(plan, "libcxi-") == ("a38a9c5", None)
    assert "archive-from-commit" in {finding.code for finding in plan.findings}
    assert planned(SLINGSHOT, {"libcxi": ""}).versions["libcxi"] == "12.0.1"


def test_what_easybuild_packs_from_git_is_proven_by_its_commit() -> None:
    """EasyBuild 5 refused it before: the SHA-256 is of an archive that somebody else packed."""

    (known,) = packages()["cassini-headers"].archives
    assert archive(planned(SLINGSHOT), "cassini-headers-") == (known.commit, None)
    given = replace(SLINGSHOT, sources=frozenset({known.file}))
    assert archive(planned(given), "cassini-headers-") == (known.commit, known.sha256)
    codes = {finding.code: finding.message for finding in planned(SLINGSHOT).findings}
    assert matches(
        codes["archive-from-commit"], "archive-from-commit",
        packages="cassini-headers 12.0.1, cxi-driver 12.0.1",
    )  # fmt: skip
    assert matches(codes["archive-from-tag"], "archive-from-tag", packages="12.0.1")


def test_a_machines_own_libcxi_is_used_with_what_its_headers_need() -> None:
    own = replace(SLINGSHOT, provided={"libcxi": Offer("/usr")})
    plan = planned(own)
    assert {"cassini-headers", "cxi-driver", "json-c"} <= plan.versions.keys()
    assert not {"libcxi", "fuse", "libconfig"} & plan.versions.keys()
    libfabric = next(step for step in plan.steps if step.id == "libfabric")
    assert switches(libfabric.configure)["cxi"] == "{libcxi}"
    assert planned(own, {"libcxi": ""}).versions["libcxi"] == "12.0.1"


def test_variables_of_easybuild_are_those_that_its_modules_set() -> None:
    for row in plan_table().provided:
        names = [prefix for prefix in row.prefixes if prefix.startswith("$EBROOT")]
        assert set(names) <= {f"${root_variable(row.id)}"}


def test_what_is_assumed_of_a_machine_is_no_origin() -> None:
    host = replace(SLINGSHOT, provided={"rocm": Offer("/opt/rocm", by=ASSUMED)})
    findings = planned(host, {"openmpi": "4.1.8"}).findings
    assert any(
        matches(f, "versions-known", package="4.1.8", other="rocm", problem="Open MPI 4.1")
        for f in findings
    )
