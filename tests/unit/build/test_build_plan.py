"""What is built, in which order and version, and what is refused before anything is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.build.choice import VersionChoice
from mpigraft.build.plan import plan_build, plan_system
from mpigraft.build.values import BuildHost, BuildPlan, BuildRequest, Offer
from mpigraft.core.errors import CheckFailed, MissingError, MpigraftError, UsageError
from mpigraft.core.model import Level
from mpigraft.knowledge.builds import Clash, packages, plan_table
from mpigraft.knowledge.sonames import LANGUAGES
from mpigraft.knowledge.versions import Range
from tests.builders.messages import matches, shows
from tests.unit.build.test_easyconfigs import switches

PLAIN = BuildHost("x86_64", frozenset(), {})
SLINGSHOT = replace(PLAIN, features=frozenset({"cxi"}))
DEBIAN = frozenset(a.file for p in packages().values() for a in p.archives if a.by == "debian")


def planned(
    recipe: str = "openmpi",
    versions: Mapping[str, str] | None = None,
    without: str = "",
    host: BuildHost = PLAIN,
) -> BuildPlan:
    request = BuildRequest(recipe, versions or {}, frozenset(without.split()))
    return plan_build(request, host, packages(), plan_table())


def refused(kind: type[MpigraftError], **words: Any) -> str:
    with pytest.raises(kind) as error:
        planned(**words)
    return error.value.code


def test_each_package_comes_after_what_it_needs() -> None:
    done: set[str] = set()
    for step in planned(host=SLINGSHOT).steps:
        assert set(step.needs) <= done, step.id
        done.add(step.id)
    assert step.id == "openmpi"


def test_a_chain_has_what_the_machine_wants() -> None:
    assert [step.id for step in planned().steps] == ["libfabric", "openmpi"]
    chain = planned(host=SLINGSHOT).versions
    assert {"libcxi", "libconfig", "libuv", "fuse", "libyaml", "json-c", "libnl"} <= chain.keys()
    assert "ucx" not in chain
    verbs = replace(
        PLAIN, features=frozenset({"infiniband"}), provided={"rdma-core": Offer("/usr")}
    )
    assert {"ucx", "ucc"} <= planned(host=verbs).versions.keys()


def test_options_follow_what_is_in_the_plan_and_on_the_machine() -> None:
    def options(name: str, host: BuildHost, **words: Any) -> set[tuple[str, str | bool]]:
        steps = planned(host=host, **words).steps
        return {*switches(next(step for step in steps if step.id == name).configure).items()}

    assert {("cxi", False), ("xpmem", False)} <= options("libfabric", PLAIN)
    assert ("cxi", "{libcxi}") in options("libfabric", SLINGSHOT)
    gpus = replace(SLINGSHOT, provided={"cuda": Offer("/opt/cuda"), "xpmem": Offer("/opt/xpmem")})
    assert {("cuda", "{cuda}"), ("xpmem", "{xpmem}")} <= options("libfabric", gpus)
    assert {("cuda", "{cuda}"), ("rocm", False)} <= options("openmpi", gpus)
    assert ("pmix", "internal") in options("openmpi", PLAIN)
    assert ("pmix", "{pmix}") in options("openmpi", PLAIN, versions={"pmix": ""})


def test_versions_that_ran_together_are_taken_and_named() -> None:
    cxi = planned(host=SLINGSHOT)
    assert cxi.versions["libfabric"] == "2.3.0"
    assert cxi.versions["openmpi"] == "5.0.8"
    assert "LUMI" in cxi.steps[-1].chosen
    assert planned().versions == {"libfabric": "2.1.0", "openmpi": "5.0.8"}


def test_an_older_open_mpi_gets_a_libfabric_that_it_compiles_with() -> None:
    assert planned(versions={"openmpi": "4.1.6"}).versions["libfabric"] == "1.22.0"
    assert planned(versions={"openmpi": "4.1.8"}).versions["libfabric"].startswith("2.")


def test_a_request_overrules_and_a_set_that_contradicts_it_is_left() -> None:
    plan = planned(versions={"openmpi": "5.0.10"}, host=SLINGSHOT)
    assert plan.versions["openmpi"] == "5.0.10"
    assert plan.steps[-1].chosen == "requested"


def test_offline_only_the_given_sources_count() -> None:
    host = replace(PLAIN, sources=DEBIAN, offline=True)
    plan = planned(host=host, versions={"libuv": "", "fuse": "", "libconfig": ""})
    assert plan.versions == {
        "fuse": "2.9.9", "libconfig": "1.7.3", "libfabric": "2.1.0", "libuv": "1.50.0",
        "openmpi": "5.0.7",
    }  # fmt: skip
    assert {step.archive.by for step in plan.steps} == {"debian"}
    fewer = replace(host, sources=DEBIAN - {"libfabric_2.1.0.orig.tar.xz"})
    assert refused(MissingError, host=fewer) == "sources-missing"
    assert refused(MissingError, host=host, versions={"libfabric": "2.3.0"}) == "sources-missing"


OFFLINE = replace(
    SLINGSHOT,
    offline=True,
    sources=frozenset(a.file for p in packages().values() for a in p.archives),
)


@pytest.mark.parametrize(
    ("versions", "host", "clash"),
    [
        ({"prrte": "4.1.0", "pmix": "5.0.8"}, SLINGSHOT, "PMIx 6.1.0"),
        ({"prrte": "4.0.0", "pmix": "5.0.8"}, PLAIN, "PMIx 6.0.0"),
        ({"prrte": "3.0.8", "pmix": "4.2.2"}, PLAIN, "PMIx 4.2.4"),
        ({"libfabric": "2.5.0"}, OFFLINE, "libcxi before 14"),
        ({"libfabric": "2.0.0"}, SLINGSHOT, "does not build with an open libcxi"),
        ({"openmpi": "4.1.4", "libfabric": "2.1.0"}, PLAIN, "do not compile with libfabric 2"),
        ({"openmpi": "4.1.4", "pmix": "4.2.4"}, PLAIN, "do not handle PMIx 4.2.3"),
    ],
)
def test_versions_that_cannot_work_together_are_refused(
    versions: dict[str, str], host: BuildHost, clash: str
) -> None:
    with pytest.raises(CheckFailed) as error:
        planned(versions=versions, host=host)
    assert clash in error.value.why
    assert error.value.fix


def test_what_an_mpi_brings_along_counts() -> None:
    """Open MPI 5.0.7 builds PRRTE 3.0.8 for itself, which wants PMIx 4.2.4."""
    with pytest.raises(CheckFailed) as error:
        planned(versions={"openmpi": "5.0.7", "pmix": "4.2.2"})
    assert matches(error.value, "versions-clash", package=("3.0.8", "5.0.7"), other="pmix 4.2.2")
    assert "prrte" not in planned(versions={"openmpi": "5.0.7", "pmix": "4.2.4"}).versions
    offered = {"pmix": Offer("/cvmfs/PMIx", "4.2.2", "stack")}
    host = replace(PLAIN, provided=offered | {n: Offer("/x", "", "stack") for n in HOLDS_PMIX})
    with pytest.raises(CheckFailed) as error:
        planned(versions={"openmpi": "5.0.7"}, host=host)
    assert matches(error.value, "versions-clash", other="4.2.2")


HOLDS_PMIX = ("hwloc", "libevent")


def test_a_patch_is_planned_where_its_versions_and_its_machine_are() -> None:
    def patches(versions: dict[str, str], host: BuildHost) -> list[str]:
        steps = planned(versions=versions, host=host).steps
        return [planned.patch.id for step in steps for planned in step.patches]

    assert patches({"libfabric": "2.3.0"}, SLINGSHOT) == ["cxi-api-2.3"]
    assert patches({"libfabric": "2.3.0"}, PLAIN) == []
    assert patches({"libfabric": "2.5.1"}, SLINGSHOT) == []
    (older,) = patches({"libfabric": "2.5.0"}, SLINGSHOT)
    (known,) = (p for p in packages()["libfabric"].patches if p.id == older)
    assert patches({"libfabric": "2.5.0"}, replace(OFFLINE, patches={known.file: "0" * 64})) == [
        older
    ]


def test_a_patch_that_nobody_has_is_told_and_is_planned_once_it_is_given() -> None:
    gpus = replace(SLINGSHOT, provided={"rocm": Offer("/opt/rocm")})
    older = {"openmpi": "5.0.7", "libfabric": "2.1.0"}
    findings = planned(versions=older, host=gpus).findings
    (missing,) = (f for f in findings if f.code == "patch-missing")
    assert shows(str(missing), "Required key not available")
    given = planned(versions=older, host=replace(gpus, patches={"ompi-13090.patch": "1" * 64}))
    assert [p.sha256 for p in given.steps[-1].patches] == ["1" * 64]
    assert "Required key" not in str(given.findings)
    assert "Required key" not in str(planned(versions=older, host=SLINGSHOT).findings)
    newer = planned(versions={"openmpi": "5.0.8"}, host=gpus)
    assert "patch-missing" not in {f.code for f in newer.findings}


def test_a_patch_of_an_architecture_is_for_it_alone() -> None:
    def patches(host: BuildHost) -> list[str]:
        return [p.patch.id for step in planned(host=host).steps for p in step.patches]

    assert "fuse-aarch64" in patches(replace(SLINGSHOT, architecture="aarch64"))
    assert "fuse-aarch64" not in patches(SLINGSHOT)


def test_lnx_is_built_where_the_version_has_it() -> None:
    def options(version: str) -> tuple[str, ...]:
        return planned(versions={"libfabric": version}).steps[0].configure

    assert "--enable-lnx" in options("2.0.0")
    assert "--enable-lnx" not in options("1.22.0")


def test_curl_comes_with_cxi_and_libraries_of_devices_with_the_devices() -> None:
    assert {"curl", "json-c", "numactl"} <= planned(host=SLINGSHOT).versions.keys()
    assert not {"curl", "xpmem", "gdrcopy"} & planned().versions.keys()
    devices = replace(SLINGSHOT, features=frozenset({"cxi", "xpmem", "gdrcopy"}))
    assert {"xpmem", "gdrcopy"} <= planned(host=devices).versions.keys()
    installed = replace(devices, provided={"xpmem": Offer("/usr"), "gdrcopy": Offer("/usr")})
    assert not {"xpmem", "gdrcopy"} & planned(host=installed).versions.keys()


def test_what_is_offered_is_used_unless_it_is_to_be_built_or_left_out() -> None:
    host = replace(
        PLAIN, provided={"hwloc": Offer("/s/hwloc", "2.9.1", "stack"), "cuda": Offer("/c")}
    )
    plan = planned(host=host)
    assert "hwloc" not in plan.versions
    last = switches(plan.steps[-1].configure)
    assert (last["hwloc"], last["cuda"]) == ("{hwloc}", "{cuda}")
    assert planned(host=host, versions={"hwloc": ""}).versions["hwloc"] == "2.12.1"
    for left_out, value in (("cuda", False), ("hwloc", "internal")):
        without = planned(host=host, without=left_out).steps[-1]
        assert switches(without.configure)[left_out] == value


def test_libfabric_may_be_left_out_where_ucx_carries_the_bytes() -> None:
    def option(name: str, recipe: str, without: str = "") -> str | bool:
        return switches(planned(recipe, {"ucx": ""}, without).steps[-1].configure)[name]

    assert option("ofi", "openmpi", "libfabric") is False
    assert option("device", "mpich", "libfabric") == "ch4:ucx"
    assert option("device", "mpich") == "ch4:ofi,ucx"
    assert refused(UsageError, recipe="mpich", without="libfabric") == "package-one-of"


def test_a_set_of_which_less_is_known_to_go_wrong_is_taken() -> None:
    """foss/2025b and foss/2026.1 name as many packages."""
    assert "2025b" in planned(versions={"ucx": ""}).steps[-1].chosen


def test_partitions_of_one_system_get_the_same_versions() -> None:
    arm = replace(
        SLINGSHOT, architecture="aarch64", provided={"cuda": Offer("/c"), "gdrcopy": Offer("/g")}
    )
    request = BuildRequest("openmpi")
    x86, gpu = plan_system(request, [SLINGSHOT, arm], packages(), plan_table())
    assert (x86.host.partition, gpu.host.partition) == ("x86_64", "aarch64-cuda")
    assert x86.versions == gpu.versions
    cuda = [switches(plan.steps[-1].configure)["cuda"] for plan in (gpu, x86)]
    assert cuda == ["{cuda}", False]
    with pytest.raises(UsageError) as error:
        plan_system(request, [SLINGSHOT, SLINGSHOT], packages(), plan_table())
    assert error.value.code == "partition-twice"


@pytest.mark.parametrize("clash", plan_table().clashes, ids=lambda row: row.id)
def test_each_row_meets_what_it_names_and_nothing_else(clash: Clash) -> None:
    def some(span: Range) -> str:
        high = span.high or (2,)
        return ".".join(map(str, span.low or (*high[:-1], high[-1] - 1, 99)))

    versions = {clash.package: some(clash.versions), clash.other: some(clash.others)}
    assert clash.meets(versions, clash.on)
    assert not clash.meets({clash.package: versions[clash.package]}, clash.on)
    if clash.on:
        assert not clash.meets(versions, ())
    if clash.absent:
        assert not clash.meets(versions, (*clash.on, clash.absent))
    if clash.patch:
        assert not clash.meets(versions, clash.on, {clash.patch})
        assert clash.patch in {patch.id for p in packages().values() for patch in p.patches}
    if clash.versions.high:
        newer = versions | {clash.package: ".".join(map(str, clash.versions.high))}
        assert not clash.meets(newer, clash.on)


def test_rows_name_what_is_there() -> None:
    """A name that nothing has would make a row that never holds."""
    table, known = plan_table(), packages()
    places = {row.id for row in table.provided}
    features = {"cxi", "infiniband", "xpmem", "gdrcopy"}
    machines = {"x86_64", "aarch64"} | {row.id for row in table.compilers}
    everything = known.keys() | places | features | machines | {"fortran"}
    everything |= {row.id for row in table.interfaces}
    for clash in table.clashes:
        names = {clash.package, clash.other, *clash.on} | ({clash.absent} - {""})
        assert names <= everything, clash.id
    for package in known.values():
        assert {*package.needs, *package.one_of} <= known.keys(), package.id
        for option in package.options:
            names = {option.package, option.beside, option.without, *option.needs} - {""}
            assert names <= everything, (package.id, option)
        for patch in package.patches:
            assert {*patch.on, *patch.besides} <= everything, patch.id
    assert {row.language for row in table.interfaces} <= set(LANGUAGES)
    for recipe in table.recipes:
        for part in recipe.parts:
            assert part.package in known
            assert not part.on or part.on in everything
    for row in table.sets:
        for name, version in row.versions:
            assert version in known[name].versions, (row.id, name)


def test_what_is_known_of_versions_is_said_where_it_matters() -> None:
    gpus = replace(SLINGSHOT, provided={"cuda": Offer("/opt/cuda")})
    levels = {f.level for f in planned(host=gpus).findings}
    assert shows(str(planned(host=gpus).findings), "GDRCopy")
    assert Level.ERROR not in levels
    card = replace(gpus, provided={**gpus.provided, "gdrcopy": Offer("/usr")})
    assert not shows(str(planned(host=card).findings), "without GDRCopy")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"recipe": "lammps"}, "word-unknown"),
        ({"versions": {"libfabrik": ""}}, "word-unknown"),
        ({"versions": {"cuda": ""}}, "word-unknown"),
        ({"versions": {"libpdap": ""}}, "package-unneeded"),
        ({"versions": {"libfabric": "1.2"}}, "version-unknown"),
        ({"versions": {"mpich": ""}}, "package-other-recipe"),
        ({"without": "openmpi"}, "package-contradiction"),
        ({"without": "ucx", "versions": {"ucx": ""}}, "package-contradiction"),
        ({"without": "hwloc", "versions": {"pmix": ""}}, "package-needed"),
    ],
)
def test_bad_requests_are_refused(words: dict[str, Any], code: str) -> None:
    assert refused(UsageError, **words) == code


def test_a_misspelt_word_gets_a_suggestion() -> None:
    with pytest.raises(UsageError) as error:
        planned("openmpi5")
    assert matches(error.value, "word-unknown", near="did you mean openmpi")


REFUSALS = {"versions-clash", "package-needed", "package-contradiction", "package-one-of",
            "package-other-recipe", "sources-missing", "version-unknown"}  # fmt: skip
NAMES = sorted(packages())
FILES = [archive.file for package in packages().values() for archive in package.archives]


@st.composite
def requests(draw: st.DrawFn) -> tuple[BuildRequest, BuildHost]:
    versions = {}
    for name in draw(st.sets(st.sampled_from(NAMES), max_size=6)):
        versions[name] = draw(st.sampled_from(["", *packages()[name].versions]))
    places = ["cuda", "rocm", "xpmem", "slurm", "fortran", "rdma-core", "gdrcopy"]
    offers = {n: Offer(f"/opt/{n}") for n in draw(st.sets(st.sampled_from(places)))}
    shared = [name for name in NAMES if packages()[name].from_stack]
    for name in draw(st.sets(st.sampled_from(shared), max_size=4)):
        known = draw(st.sampled_from(["", *packages()[name].versions]))
        offers[name] = Offer(f"/stack/{name}", known, "stack")
    offline = draw(st.booleans())
    host = BuildHost(
        draw(st.sampled_from(["x86_64", "aarch64"])),
        frozenset(draw(st.sets(st.sampled_from(["cxi", "infiniband", "xpmem", "gdrcopy"])))),
        offers,
        frozenset(draw(st.sets(st.sampled_from(FILES), min_size=30)) if offline else ()),
        offline,
    )
    request = BuildRequest(
        draw(st.sampled_from(["openmpi", "mpich", "mvapich"])),
        versions,
        frozenset(draw(st.sets(st.sampled_from([*NAMES, "cuda", "slurm"]), max_size=2))),
        draw(st.sampled_from(["gnu", "llvm", "cce"])),
    )
    return request, host


@given(requests())
def test_every_request_gives_a_whole_plan_or_a_known_refusal(
    asked: tuple[BuildRequest, BuildHost],
) -> None:
    """Each {NAME} of an option has a prefix: of a package before it, of the machine, or its own;
    and nothing that is known to fail is planned."""
    request, host = asked
    plan = refusal = None
    try:
        plan = plan_build(request, host, packages(), plan_table())
    except MpigraftError as error:
        refusal = error
    if plan is None:
        assert refusal
        assert refusal.code in REFUSALS
        assert refusal.fix
        return
    offered = plan.host.provided.keys()
    assert not offered & (request.versions.keys() | request.without)
    before = {"own", *offered}
    for step in plan.steps:
        used = {part.partition("}")[0] for word in step.configure for part in word.split("{")[1:]}
        assert used <= before, step.id
        assert {*step.needs, *step.package.needs} <= before
        before.add(step.id)
    assert not request.without & plan.versions.keys()
    assert request.versions.keys() <= plan.versions.keys()
    choice = VersionChoice(plan.host, packages(), plan_table(), request.compiler)
    assert Level.ERROR not in {row.level for row in choice.met(plan.versions)}
