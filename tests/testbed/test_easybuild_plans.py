"""EasyBuild's own checks and dry run of plans that nobody can build here: Slingshot's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.build.easyconfigs import easyconfigs_of, root_variable
from mpigraft.build.host import HostOptions, build_host
from mpigraft.build.plan import plan_system
from mpigraft.build.values import BuildPlan, BuildRequest
from mpigraft.core.model import Machine
from mpigraft.discovery.inventory import discover_machine
from mpigraft.knowledge import packages, plan_table
from testbed.easybuild import EasyBuilder
from tests.builders.machine_trees import plant

pytestmark = pytest.mark.testbed


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> list[Machine]:
    """Two kinds of nodes of one system, as Olivia has: with AMD CPUs, and with GH200."""
    folder = tmp_path_factory.mktemp("machines")
    (folder / "x86").mkdir()
    (folder / "arm").mkdir()
    x86 = discover_machine(plant("slingshot-amd", folder / "x86"))
    arm = discover_machine(plant("grace-hopper", folder / "arm"))
    return [x86, replace(arm, fabrics=x86.fabrics)]


def planned(
    system: list[Machine], compiler: str, recipe: str = "openmpi", **versions: str
) -> tuple[BuildPlan, ...]:
    options = HostOptions(compiler, here=False)
    hosts = [build_host(machine, plan_table(), options, {}) for machine in system]
    names = {name.replace("_", "-"): version for name, version in versions.items()}
    request = BuildRequest(recipe, names, compiler=compiler)
    return plan_system(request, hosts, packages(), plan_table())


def written(plan: BuildPlan, folder: Path) -> list[Path]:
    folder.mkdir(parents=True)
    files = []
    for name, text in easyconfigs_of(plan).items():
        files.append(folder / name)
        files[-1].write_text(text)
    return files


def resolved(easybuilder: EasyBuilder, plan: BuildPlan) -> None:
    """EasyBuild resolves a chain, without building anything: as many packages as are planned."""
    folder = easybuilder.home / "plans" / plan.compiler.id / plan.host.architecture
    last = written(plan, folder)[-1]
    easybuilder.give(easybuilder.home / "plans")
    done = easybuilder.run(*eb(easybuilder, folder), "--dry-run", last)
    assert done.ok, done.text()
    assert done.text().count("(module: ") == len(plan.steps)


def eb(easybuilder: EasyBuilder, robot: Path) -> list[str | Path]:
    prefix = easybuilder.home / "p"
    words = ["--ignoreconfigfiles=*", f"--prefix={prefix}", "--modules-tool=Lmod"]
    return [easybuilder.tool / "bin/eb", *words, f"--robot={robot}"]


def test_easybuild_resolves_the_plans_of_both_partitions(
    easybuilder: EasyBuilder, system: list[Machine]
) -> None:
    x86, arm = planned(system, "gnu")
    resolved(easybuilder, x86)
    assert arm.host.partition == "aarch64-cuda"


@pytest.mark.long
@pytest.mark.parametrize("compiler", [row.id for row in plan_table().compilers])
def test_easybuild_resolves_plans_with_each_compiler(
    easybuilder: EasyBuilder, system: list[Machine], compiler: str
) -> None:
    for plan in planned(system, compiler):
        if (plan.compiler.id, plan.host.architecture) != ("gnu", "x86_64"):
            resolved(easybuilder, plan)


def test_plans_pass_easybuilds_checks_for_contributions(
    easybuilder: EasyBuilder, system: list[Machine]
) -> None:
    folder = easybuilder.home / "contributed"
    plans = {name: planned(system, "gnu", name)[0] for name in ("openmpi", "mpich", "mvapich")}
    plans["study"] = planned(system, "gnu", openmpi="5.0.7", libfabric="2.1.0")[0]
    plans["older"] = planned(system, "gnu", openmpi="4.1.8", mpi_cxx="", openshmem="")[1]
    files = [path for name, plan in plans.items() for path in written(plan, folder / name)]
    easybuilder.give(folder)
    done = easybuilder.run(easybuilder.tool / "bin/eb", "--check-contrib", *files)
    assert done.ok, done.text()
    assert "All contribution checks PASSed" in done.text()
    bad = folder / "bad.eb"
    bad.write_text(files[-1].read_text().replace("checksums", "homepage"))
    easybuilder.give(bad)
    assert not easybuilder.run(easybuilder.tool / "bin/eb", "--check-contrib", bad).ok


def test_prefixes_have_the_names_that_easybuild_gives_them(easybuilder: EasyBuilder) -> None:
    names = sorted(row.name for row in packages().values())
    script = (
        "import json, sys; from easybuild.tools.filetools import convert_name\n"
        "print(json.dumps({n: convert_name(n, upper=True) for n in sys.argv[1:]}))"
    )
    done = easybuilder.run(easybuilder.tool / "bin/python", "-c", script, *names)
    assert done.ok, done.text()
    theirs = json.loads(done.stdout)
    assert {name: root_variable(name) for name in names} == {
        name: f"EBROOT{text}" for name, text in theirs.items()
    }


@pytest.mark.long
def test_a_dry_run_of_each_step_ends_well(easybuilder: EasyBuilder, system: list[Machine]) -> None:
    """EasyBuild goes through every step of each package and says what it would start."""
    folder = easybuilder.home / "steps"
    for plan in planned(system, "gnu"):
        files = written(plan, folder / plan.host.architecture)
        easybuilder.give(folder)
        words = eb(easybuilder, files[-1].parent)
        done = easybuilder.run(*words, "--extended-dry-run", files[-1])
        assert done.ok, done.text()
        assert done.text().count("[SUCCESS]") == len(files)
        assert "applying patch libfabric-2.3-cxi-api.patch" in done.text()
