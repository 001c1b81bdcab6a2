"""What a stack offers to a build, read from the names of its folders."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.build.easyconfigs import easyconfigs_of
from mpigraft.build.plan import plan_build
from mpigraft.build.stack import stack_name, with_stack
from mpigraft.build.values import BuildHost, BuildPlan, BuildRequest, BuildStack, Offer
from mpigraft.core.errors import CheckFailed, UsageError
from mpigraft.knowledge.builds import packages, plan_table
from tests.builders.messages import matches
from tests.unit.build.test_easyconfigs import switches, values

HOST = BuildHost("x86_64", frozenset({"cxi"}), {})
PLACE = "versions/2023.06/software/linux/x86_64/amd/zen4"
INSTALLED = (
    "hwloc/2.9.1-GCCcore-12.3.0", "hwloc/2.9.2-GCCcore-13.2.0", "PMIx/4.2.4-GCCcore-12.3.0",
    "libevent/2.1.12-GCCcore-12.3.0", "UCX/1.14.1-GCCcore-12.3.0", "GCCcore/12.3.0",
    "OpenMPI/4.1.5-GCC-12.3.0", "libfabric/1.18.0-GCCcore-12.3.0", "numactl/2.0.16-GCCcore-12.3.0",
)  # fmt: skip


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    """EESSI's layout, with empty packages."""
    for name in INSTALLED:
        prefix = tmp_path / PLACE / "software" / name
        (prefix / "include").mkdir(parents=True)
        (prefix / "bin").mkdir()
    gcc = tmp_path / PLACE / "software/GCCcore/12.3.0/bin/gcc"
    shutil.copy(Path(sys.executable).resolve(), gcc)
    return tmp_path


def planned(host: BuildHost, **versions: str) -> BuildPlan:
    return plan_build(BuildRequest("openmpi", versions), host, packages(), plan_table())


def options_of(plan: BuildPlan) -> dict[str, str | bool]:
    """Of the last easyconfig, as `switches` has them."""
    last = values(list(easyconfigs_of(plan).values())[-1])
    return switches(str(last["configopts"]).split())


def test_packages_of_its_mpis_compiler_are_used_and_not_built(stack: Path) -> None:
    host = with_stack(HOST, stack, packages(), {})
    assert host.provided["pmix"].version == "4.2.4"
    assert host.provided["hwloc"].version == "2.9.1", "not the one of another GCC"
    assert "libfabric" not in host.provided, "the stack's has no provider for this machine"
    assert host.stack
    assert (host.stack.name, host.stack.generation) == ("2023.06-zen4", "12.3.0")
    plan = planned(host)
    assert not {"pmix", "hwloc", "libevent", "numactl"} & plan.versions.keys()
    assert {"libcxi", "libfabric", "openmpi"} <= plan.versions.keys()
    assert "stack-toolchains" in {f.code for f in plan.findings}
    last = list(easyconfigs_of(plan).items())[-1]
    assert last[0] == f"OpenMPI-{plan.versions['openmpi']}-gnu-{host.stack.name}.eb"
    assert options_of(plan)["pmix"] == host.provided["pmix"].prefix
    assert f"-rpath,{host.provided['hwloc'].prefix}/lib" in last[1]


def test_its_compiler_builds(stack: Path) -> None:
    host = with_stack(HOST, stack, packages(), {})
    assert host.stack
    assert planned(host).compiler.cc == f"{host.stack.compilers}/bin/gcc"
    other = plan_build(BuildRequest("openmpi", compiler="llvm"), host, packages(), plan_table())
    assert other.compiler.cc == "clang"
    assert "stack-other-compiler" in {f.code for f in other.findings}
    shutil.rmtree(stack / PLACE / "software/GCCcore")
    host = with_stack(HOST, stack, packages(), {})
    assert "stack-without-compiler" in {f.code for f in planned(host).findings}
    assert planned(host).compiler.cc == "gcc"


@pytest.mark.parametrize("machines", [{}, {"fortran": Offer("gfortran")}])
def test_fortran_is_that_of_the_stacks_gcc_whatever_the_machine_has(
    stack: Path, machines: dict[str, Offer]
) -> None:
    def options() -> dict[str, str | bool]:
        host = with_stack(replace(HOST, provided=machines), stack, packages(), {})
        return options_of(planned(host))

    assert options()["mpi-fortran"] is False
    (stack / PLACE / "software/GCCcore/12.3.0/bin/gfortran").touch()
    assert "mpi-fortran" not in options()


def test_a_stack_with_an_older_c_library_is_told_of() -> None:
    def codes(own: str, theirs: str) -> set[str]:
        stack = BuildStack("2023.06", "/stack", loader="/stack/ld.so", glibc=theirs)
        plan = planned(replace(HOST, stack=stack, glibc=own))
        return {finding.code for finding in plan.findings}

    assert "stack-older-glibc" in codes("2.36", "2.31")
    assert "stack-older-glibc" not in codes("2.31", "2.36") | codes("2.36", "") | codes("", "2.36")


def test_another_compilers_packages_are_used_where_they_are_wanted(stack: Path) -> None:
    host = with_stack(HOST, stack, packages(), {}, "13.2.0")
    assert host.provided.keys() == {"hwloc"}
    assert host.provided["hwloc"].version == "2.9.2"
    with pytest.raises(UsageError) as error:
        with_stack(HOST, stack, packages(), {}, "9.1.0")
    assert error.value.code == "stack-toolchain-unknown"


def test_versions_of_the_stack_count_in_what_clashes(stack: Path) -> None:
    host = with_stack(HOST, stack, packages(), {})
    with pytest.raises(CheckFailed) as error:
        planned(host, prrte="4.0.0")
    assert matches(error.value, "versions-clash", other="pmix 4.2.4 of 2023.06-zen4")
    old = stack / PLACE / "software/PMIx"
    (old / "4.2.4-GCCcore-12.3.0").rename(old / "4.2.2-GCCcore-12.3.0")
    with pytest.raises(CheckFailed) as error:
        planned(with_stack(HOST, stack, packages(), {}), openmpi="5.0.7")
    assert matches(error.value, "versions-clash", package=("3.0.8", "5.0.7"))


@pytest.mark.parametrize("place", ["", "versions/2023.06", PLACE, f"{PLACE}/software"])
def test_a_stack_may_be_named_at_any_height(stack: Path, place: str) -> None:
    host = with_stack(HOST, stack / place, packages(), {})
    assert host.stack
    assert host.stack.folder == str(stack / PLACE / "software")


def test_folders_that_are_no_stack_or_several_are_refused(stack: Path) -> None:
    def refused(folder: Path, host: BuildHost = HOST) -> str:
        with pytest.raises(UsageError) as error:
            with_stack(host, folder, packages(), {})
        return error.value.code

    assert refused(stack / "nowhere") == "stack-not-folder"
    assert refused(stack / PLACE / "software/hwloc") == "stack-empty"
    assert refused(stack, replace(HOST, architecture="aarch64")) == "stack-empty"
    second = stack / PLACE.replace("zen4", "zen3")
    (second / "software/hwloc/2.9.1").mkdir(parents=True)
    assert refused(stack) == "stack-several"
    own = {"EESSI_SOFTWARE_PATH": str(stack / PLACE)}
    assert with_stack(HOST, stack, packages(), own).stack


def test_a_path_that_no_makefile_takes_is_refused(stack: Path) -> None:
    odd = stack / "our stack"
    (stack / "versions").rename(odd)
    with pytest.raises(UsageError) as error:
        with_stack(HOST, odd / PLACE.partition("/")[2], packages(), {})
    assert error.value.code == "stack-unsuitable"
    link = stack / "plain"
    link.symlink_to(odd)
    assert with_stack(HOST, link / PLACE.partition("/")[2], packages(), {}).stack


def test_names_of_stacks_may_stand_in_a_modules_name() -> None:
    assert stack_name(Path("/cvmfs/x/versions/2023.06/software/linux/x86_64/amd/zen4")) == (
        "2023.06-zen4"
    )
    assert stack_name(Path("/opt/our stack")) == "our-stack"
