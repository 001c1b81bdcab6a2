"""What is built, in which order and version, and what is refused before anything is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.build.plan import BuildHost, BuildPlan, BuildRequest, plan_build
from mpigraft.core.errors import CheckFailed, MissingError, MpigraftError, UsageError
from mpigraft.core.model import Level
from mpigraft.knowledge.builds.rows import packages, plan_table

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
    verbs = replace(PLAIN, features=frozenset({"infiniband"}), provided={"rdma-core": "/usr"})
    assert {"ucx", "ucc"} <= planned(host=verbs).versions.keys()


def test_options_follow_what_is_in_the_plan_and_on_the_machine() -> None:
    def options(name: str, host: BuildHost, **words: Any) -> set[str]:
        steps = planned(host=host, **words).steps
        return set(next(step for step in steps if step.id == name).configure)

    assert {"--disable-cxi", "--disable-xpmem"} <= options("libfabric", PLAIN)
    assert "--enable-cxi={libcxi}" in options("libfabric", SLINGSHOT)
    gpus = replace(SLINGSHOT, provided={"cuda": "/opt/cuda", "xpmem": "/opt/xpmem"})
    assert {"--with-cuda={cuda}", "--enable-xpmem={xpmem}"} <= options("libfabric", gpus)
    assert {"--with-cuda={cuda}", "--without-rocm"} <= options("openmpi", gpus)
    assert "--with-pmix=internal" in options("openmpi", PLAIN)
    assert "--with-pmix={pmix}" in options("openmpi", PLAIN, versions={"pmix": ""})


def test_versions_that_ran_together_are_taken_and_named() -> None:
    cxi = planned(host=SLINGSHOT)
    assert cxi.versions["libfabric"] == "2.3.0"
    assert cxi.versions["openmpi"] == "5.0.8"
    assert "LUMI" in cxi.steps[-1].chosen
    assert planned().versions == {"libfabric": "2.1.0", "openmpi": "5.0.8"}


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


@pytest.mark.parametrize(
    ("versions", "clash"),
    [
        ({"prrte": "4.1.0", "pmix": "5.0.8"}, "PMIx 6.1.0"),
        ({"libfabric": "2.5.0"}, "libcxi before 14"),
        ({"libfabric": "2.0.0"}, "does not build with an open libcxi"),
    ],
)
def test_versions_that_cannot_work_together_are_refused(
    versions: dict[str, str], clash: str
) -> None:
    with pytest.raises(CheckFailed) as error:
        planned(versions=versions, host=SLINGSHOT)
    assert clash in error.value.why
    assert error.value.fix


def test_pmix_4_2_2_does_not_go_below_prrte_3_0_8() -> None:
    """Neither has known sources; the row is held as it is."""
    (row,) = [clash for clash in plan_table().clashes if clash.id == "prrte-3-pmix"]
    assert row.meets({"prrte": "3.0.8", "pmix": "4.2.2"}, ())
    assert not row.meets({"prrte": "3.0.8", "pmix": "4.2.4"}, ())
    assert not row.meets({"prrte": "3.0.8"}, ())
    assert row.level is Level.ERROR


def test_what_is_known_of_versions_is_said_where_it_matters() -> None:
    gpus = replace(SLINGSHOT, provided={"cuda": "/opt/cuda"})
    older = {"openmpi": "5.0.7", "libfabric": "2.1.0"}
    (finding,) = planned(versions=older, host=gpus).findings
    assert "Required key not available" in finding.message
    assert planned(versions=older, host=SLINGSHOT).findings == ()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"recipe": "lammps"}, "recipe-unknown"),
        ({"versions": {"libfabrik": ""}}, "package-unknown"),
        ({"versions": {"libpdap": ""}}, "package-unneeded"),
        ({"versions": {"libfabric": "1.2"}}, "version-unknown"),
        ({"without": "openmpi"}, "package-contradiction"),
        ({"without": "ucx", "versions": {"ucx": ""}}, "package-contradiction"),
        ({"without": "libfabric"}, "package-needed"),
    ],
)
def test_bad_requests_are_refused(words: dict[str, Any], code: str) -> None:
    assert refused(UsageError, **words) == code


@given(
    st.dictionaries(st.sampled_from(sorted(packages())), st.just(""), max_size=6),
    st.sets(st.sampled_from(["cxi", "infiniband"])),
    st.sets(st.sampled_from(["cuda", "rocm", "xpmem", "slurm", "fortran", "rdma-core"])),
    st.sampled_from(["openmpi", "mpich"]),
)
def test_every_plan_is_whole(
    versions: dict[str, str], features: set[str], provided: set[str], recipe: str
) -> None:
    """Each {NAME} of an option has a prefix: of a package before it, of the machine, or its own."""
    host = BuildHost("aarch64", frozenset(features), {name: f"/opt/{name}" for name in provided})
    try:
        plan = planned(recipe, versions, host=host)
    except CheckFailed:
        return
    before = {"own", *provided}
    for step in plan.steps:
        used = {part.partition("}")[0] for word in step.configure for part in word.split("{")[1:]}
        assert used <= before, step.id
        assert set(step.needs) <= before
        before.add(step.id)
