"""What programs of a stack need of an MPI besides C is planned, or the plan says what has it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mpigraft.build.plan import plan_build
from mpigraft.build.spack import render_spack
from mpigraft.build.values import BuildHost, BuildPlan, BuildRequest, BuildStack, Offer
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Finding
from mpigraft.knowledge.builds import packages, plan_table
from tests.builders.messages import matches
from tests.unit.build.test_easyconfigs import switches

FORTRAN = {"fortran": Offer("gfortran")}


def planned(
    *sonames: str,
    recipe: str = "openmpi",
    versions: Mapping[str, str] | None = None,
    without: str = "",
    provided: Mapping[str, Offer] = FORTRAN,
) -> BuildPlan:
    stack = BuildStack("2023.06", "/stack", needed={"libmpi.so.40": 9} | dict.fromkeys(sonames, 3))
    host = BuildHost("x86_64", frozenset(), provided, stack=stack)
    request = BuildRequest(recipe, versions or {}, frozenset(without.split()))
    return plan_build(request, host, packages(), plan_table())


def options(plan: BuildPlan) -> dict[str, str | bool]:
    return switches(plan.steps[-1].configure)


def lacking(plan: BuildPlan) -> list[Finding]:
    return [f for f in plan.findings if f.code in ("stack-interface", "stack-other-family")]


def test_a_stack_of_c_programs_wants_nothing_else() -> None:
    plan = planned()
    assert options(plan)["oshmem"] is False
    assert not [word for word in plan.steps[-1].configure if "fortran" in word or "cxx" in word]
    assert not lacking(plan)


def test_openshmem_is_built_where_programs_need_it_with_the_ucx_that_it_needs() -> None:
    plan = planned("liboshmem.so.40")
    assert (options(plan)["oshmem"], options(plan)["ucx"]) == (True, "{ucx}")
    assert "ucx" in plan.versions
    assert not lacking(plan)
    (finding,) = lacking(planned("liboshmem.so.40", without="ucx"))
    assert matches(
        finding, "stack-interface", what="OpenSHMEM", programs="3 programs", stack="2023.06",
        sonames="liboshmem.so.40",
    )  # fmt: skip
    assert matches(finding, "stack-interface", advice="leave --without away")


def test_cxx_bindings_are_built_in_versions_that_have_them_and_others_name_these() -> None:
    four = planned("libmpi_cxx.so.40", versions={"openmpi": "4.1.8"})
    assert options(four)["mpi-cxx"] is True
    assert not lacking(four)
    (finding,) = lacking(planned("libmpi_cxx.so.40"))
    assert matches(
        finding, "stack-interface", mpi="5.0.8", what="C++ bindings", programs="3 programs",
        advice="openmpi@4.1.8",
    )  # fmt: skip


def test_configure_stops_where_fortran_that_programs_need_cannot_be_built() -> None:
    """Without the option it would go on, and the MPI would lack the library."""
    f08 = planned("libmpi_mpifh.so.40", "libmpi_usempif08.so.40")
    assert options(f08)["mpi-fortran"] == "usempif08"
    assert options(planned("libmpi_mpifh.so.40"))["mpi-fortran"] is True
    (finding,) = lacking(planned("libmpi_mpifh.so.40", provided={}))
    assert matches(
        finding, "stack-interface", what="Fortran bindings",
        advice="put gfortran into PATH, or load its module",
    )  # fmt: skip


def test_an_interface_without_a_recipe_and_another_family_are_told() -> None:
    (java,) = lacking(planned("libmpi_java.so.40"))
    assert matches(java, "stack-interface", advice="no recipe here gives it")
    (family,) = lacking(planned(recipe="mpich"))
    assert matches(
        family, "stack-other-family", sonames="libmpi.so.40", programs="9 programs", stack="2023.06"
    )


def test_an_interface_may_be_requested_by_name() -> None:
    versions = {"openmpi": "4.1.8", "mpi-cxx": "", "openshmem": ""}
    plan = planned(versions=versions)
    assert (options(plan)["mpi-cxx"], options(plan)["oshmem"]) == (True, True)
    assert {"+cxx", "+openshmem"} <= set(render_spack(plan).split())
    with pytest.raises(UsageError) as error:
        planned(versions={"mpi-cxx": ""})
    assert matches(error.value, "interface-absent", advice="openmpi@4.1.8")
    with pytest.raises(UsageError) as error:
        planned(versions={"openshmem": "1.4"})
    assert error.value.code == "version-unknown"


def test_openshmem_of_sources_that_gcc_14_refuses_is_patched() -> None:
    def patches(version: str, *sonames: str) -> list[str]:
        plan = planned(*sonames, versions={"openmpi": version})
        return [p.patch.id for p in plan.steps[-1].patches]

    for version in ("5.0.7", "4.1.8"):
        assert patches(version, "liboshmem.so.40") == [f"sshmem-{version}"]
    assert not patches("5.0.7") + patches("5.0.8", "liboshmem.so.40")
