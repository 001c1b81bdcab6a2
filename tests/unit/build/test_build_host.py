"""What a machine offers to a build: by what discover found, and by its folders."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.build.folders import BuildFolders
from mpigraft.build.host import HostOptions, build_host, check_sources, features_of, source_folders
from mpigraft.build.plan import plan_build
from mpigraft.build.values import ASSUMED, BuildRequest
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Machine
from mpigraft.discovery.inventory import discover_machine
from mpigraft.knowledge.builds import packages, plan_table
from tests.builders.configuration import a_machine
from tests.builders.machine_trees import plant

OTHER = HostOptions(here=False)


@pytest.fixture(scope="module")
def slingshot(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return discover_machine(plant("slingshot-amd", tmp_path_factory.mktemp("machine")))


def test_what_discover_found_decides_what_is_built(slingshot: Machine, tmp_path: Path) -> None:
    assert {"cxi", "xpmem", "amd"} <= features_of(slingshot)
    gpus = discover_machine(plant("grace-hopper", tmp_path))
    assert {"nvidia", "gdrcopy"} <= features_of(gpus)


def test_another_machine_is_not_described_by_this_ones_folders(
    slingshot: Machine, tmp_path: Path
) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/cuda.h").touch()
    environ = {"CUDA_HOME": str(tmp_path), "PATH": ""}
    assert "cuda" in build_host(a_machine(), plan_table(), HostOptions(), environ).provided
    host = build_host(slingshot, plan_table(), OTHER, environ)
    assert "cuda" not in host.provided
    assert host.provided["rocm"].by == ASSUMED
    plan = plan_build(BuildRequest("openmpi"), host, packages(), plan_table())
    assert "provided-assumed" in {finding.code for finding in plan.findings}
    use = replace(OTHER, use={"rocm": "/opt/rocm-6.2.2"})
    host = build_host(slingshot, plan_table(), use, environ)
    assert host.provided["rocm"].prefix == "/opt/rocm-6.2.2"


def test_a_machine_without_a_fabric_is_told_of(slingshot: Machine) -> None:
    login = replace(slingshot, fabrics=())
    host = build_host(login, plan_table(), OTHER, {})
    plan = plan_build(BuildRequest("openmpi"), host, packages(), plan_table())
    assert "fabric-none" in {finding.code for finding in plan.findings}


def test_patches_of_the_given_sources_are_known_by_their_content(tmp_path: Path) -> None:
    (tmp_path / "ompi-13090.patch").write_text("--- a\n")
    (tmp_path / "folder.patch").mkdir()
    options = HostOptions(sources=tmp_path)
    host = build_host(a_machine(), plan_table(), options, {})
    assert list(host.patches) == ["ompi-13090.patch"]
    assert len(host.patches["ompi-13090.patch"]) == 64
    with pytest.raises(UsageError) as error:
        build_host(a_machine(), plan_table(), HostOptions(sources=tmp_path / "no"), {})
    assert error.value.code == "sources-unreadable"


def test_sources_lie_where_easybuild_keeps_them(tmp_path: Path) -> None:
    """A site without internet has a folder of EasyBuild's, or a mirror of Spack's."""
    places = {"openmpi-5.0.8.tar.bz2": "o/OpenMPI", "libfabric-2.1.0.tar.bz2": "libfabric"}
    for name, place in places.items():
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / name).write_text("cut short")
    (tmp_path / "o/OpenMPI/other.patch").write_text("of no package")
    host = build_host(a_machine(), plan_table(), HostOptions(sources=tmp_path), {})
    assert (places.keys() <= host.sources, host.patches) == (True, {})
    host = replace(host, provided={})
    plan = plan_build(BuildRequest("openmpi"), host, packages(), plan_table())
    folders = source_folders(plan, tmp_path)
    assert folders == [tmp_path / "libfabric", tmp_path / "o/OpenMPI"]
    with pytest.raises(UsageError) as error:
        check_sources(plan, tmp_path)
    assert str(tmp_path / "libfabric/libfabric-2.1.0.tar.bz2") in str(error.value)


def test_a_compiler_may_be_named_by_its_command() -> None:
    host = build_host(a_machine(), plan_table(), OTHER, {})
    request = BuildRequest("openmpi", compiler="gcc")
    assert plan_build(request, host, packages(), plan_table()).compiler.id == "gnu"


def test_partitions_share_what_is_fetched_and_nothing_else(tmp_path: Path) -> None:
    x86 = BuildFolders(tmp_path / "x86_64", common=tmp_path)
    arm = BuildFolders(tmp_path / "aarch64-cuda", common=tmp_path)
    assert x86.downloads == arm.downloads == tmp_path / "sources"
    assert x86.modules != arm.modules
    assert BuildFolders(tmp_path).downloads == tmp_path / "sources"
