"""Which configurations a spec means, their keys, and the order in which they are started."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench.schedule import benchmarks, campaign
from mpigraft.bench.schedule.again import repeated_spec
from mpigraft.bench.schedule.campaign import (
    DEFAULT_BUDGET_MS,
    campaign_record,
    completed_spec,
    plan_campaign,
    resume_campaign,
    schedule_launches,
)
from mpigraft.bench.schedule.extension import extend_campaign
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import Allocation, Gpu, MpiInstall, NetDevice, NetLibrary, Origin
from mpigraft.request.spec import CampaignSpec
from mpigraft.selection import configurations
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.messages import shows
from tests.builders.two_mpis import MACHINE, contents, make_up_transports, planned


@pytest.fixture(autouse=True)
def knowledge(monkeypatch: pytest.MonkeyPatch) -> None:
    make_up_transports(monkeypatch)


def test_by_default_every_configuration_that_can_run_here() -> None:
    ids = [c.id for c in planned().configurations]
    assert ids == [
        "openmpi@5.0.11/ob1-sm",
        "openmpi@5.0.11/ofi-lnx",
        "mpich@5.0.2/ofi-tcp",
        "mpich@5.0.2/ucx",
    ]
    (skipped,) = (why for name, why in planned().skipped if name.endswith("/ofi-cxi"))
    assert skipped == "no /dev/cxi*"
    assert not any(c.named for c in planned().configurations)


def test_what_is_named_and_cannot_run_ends_the_command_with_the_reason() -> None:
    with pytest.raises(MissingError, match="no /dev/cxi"):
        planned(transport=("ofi-cxi",))
    with pytest.raises(MissingError, match=r"unknown name|has no transport"):
        planned(transport=("warp",))
    with pytest.raises(MissingError, match=r"found: openmpi@5\.0\.11"):
        planned(mpi=("intel",))


def test_threads_of_a_rank_have_a_launch_to_themselves() -> None:
    """They start MPI in a way that other benchmarks would pay for."""
    asked = planned(mpi=("mpich",), benchmark=("latency, latency_mt,bw,latency_mt, threads=4",))
    steps = {step.program: step for step in schedule_launches(asked)}
    keys = {program: [b.key for b in asked.benchmarks_of(s)] for program, s in steps.items()}
    assert keys.pop("") == ["native:latency", "native:bw"]
    assert keys == {b.key: [b.key] for b in asked.benchmarks if b.name == "latency_mt"}
    assert len(keys) == 2
    alone = planned(mpi=("mpich",), benchmark=("latency_mt",))
    assert {step.program for step in schedule_launches(alone)} == {"native:latency_mt"}


def test_a_named_transport_marks_its_configurations() -> None:
    chosen = planned(mpi=("openmpi",), transport=("ob1-sm",)).configurations
    assert [(c.id, c.named) for c in chosen] == [("openmpi@5.0.11/ob1-sm", True)]


def test_a_broken_mpi_is_left_out_with_its_reason() -> None:
    broken = an_mpi("mpich@4.0", usable=False, reason="libfabric.so.1 is missing")
    machine = a_machine(*MACHINE.mpis, broken)
    asked = plan_campaign(CampaignSpec(mpi=("mpich",)), machine, contents)
    assert (broken.id, broken.reason) in asked.skipped
    with pytest.raises(MissingError, match=r"libfabric\.so\.1 is missing"):
        plan_campaign(CampaignSpec(mpi=("mpich@4.0",)), machine, contents)


def test_an_mpi_without_a_launcher_is_left_out_with_its_reason() -> None:
    asked = plan_campaign(
        CampaignSpec(),
        a_machine(replace(MACHINE.mpis[0], launcher=None), MACHINE.mpis[1]),
        contents,
    )
    assert shows(dict(asked.skipped)[MACHINE.mpis[0].id], "no prrte")
    assert {c.mpi.id for c in asked.configurations if c.mpi} == {"mpich@5.0.2"}


def test_no_network_address_is_stored() -> None:
    device = NetDevice("eth0", "ethernet", "up", "192.0.2.7", (("mtu", "1500"),))
    stored = campaign.allocation_record("c", replace(MACHINE, fabrics=(device,))).machine
    assert "eth0" in stored
    assert "192.0.2.7" not in stored


def test_the_key_follows_contents_transport_and_settings_and_no_label() -> None:
    def key(mpi: MpiInstall = MACHINE.mpis[1], **spec: object) -> str:
        asked = CampaignSpec(transport=("ucx",), **spec)  # type: ignore[arg-type]
        gpu = Gpu(0, "nvidia", "a GPU", 1024)
        machine = replace(a_machine(mpi), gpus=(gpu,))
        return plan_campaign(asked, machine, contents).configurations[0].key

    one = MACHINE.mpis[1]
    assert key() == key(replace(one, id="mpich@renamed", prefix=one.prefix / "elsewhere"))
    others = {key(replace(one, version="5.0.3")), key(env=("A=1",)), key(env=("A=2",)), key()}
    assert len({*others, key(buffers="cuda")}) == 5


def test_what_an_mpi_opens_at_run_time_is_part_of_its_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(configurations, "resolve_libraries", lambda *_: (("libmpi.so", "d"),))
    (tmp_path / "openmpi").mkdir()
    component = tmp_path / "openmpi/mca_pml_ob1.so"
    fabric = tmp_path / "libfabric.so.1"
    component.write_bytes(b"one")
    fabric.write_bytes(b"two")
    net = NetLibrary("libfabric", "2.5.1", fabric)
    mpi = replace(MACHINE.mpis[0], libmpi=tmp_path / "libmpi.so", libfabric=net)
    before = configurations.library_digests(mpi)
    assert [name for name, _ in before] == ["libfabric.so.1", "libmpi.so", "mca_pml_ob1.so"]
    fabric.write_bytes(b"another")
    assert configurations.library_digests(mpi) != before


def test_the_same_libraries_twice_are_one_configuration() -> None:
    twin = an_mpi("mpich@5.0.2+debian", version="5.0.2")
    asked = plan_campaign(
        CampaignSpec(transport=("ucx",)), a_machine(MACHINE.mpis[1], twin), contents
    )
    assert [c.mpi for c in asked.configurations] == [MACHINE.mpis[1]]
    assert shows(dict(asked.skipped)[f"{twin.id}/ucx"], "same libraries")


def test_settings_reach_every_rank() -> None:
    setting = "FI_TCP_IFACE=lo"
    one = planned(env=(setting,)).configurations[0]
    row = one.environment[-1]
    assert (row.name, row.value, row.source) == ("FI_TCP_IFACE", "lo", "user")
    assert one.id.endswith(f"+{setting}")


def test_the_baseline_is_the_named_one_else_cray_else_path_else_the_first_id() -> None:
    asked = planned(baseline="openmpi@5.0.11/ofi")
    assert (asked.baseline.id, asked.baseline.named) == ("openmpi@5.0.11/ofi-lnx", True)
    assert asked.baseline in asked.configurations
    with pytest.raises(UsageError, match="several"):
        planned(baseline="openmpi")
    assert planned().baseline.id == "mpich@5.0.2/ofi-tcp"
    in_path = a_machine(MACHINE.mpis[1], replace(MACHINE.mpis[0], source="path"))
    assert plan_campaign(CampaignSpec(), in_path, contents).baseline.id == "openmpi@5.0.11/ob1-sm"
    cray = a_machine(*in_path.mpis, an_mpi("cray-mpich@9.1.0"))
    assert plan_campaign(CampaignSpec(), cray, contents).baseline.id == "cray-mpich@9.1.0/ofi-cxi"
    with pytest.raises(UsageError, match="is none of them"):
        planned(baseline="nothing")


def test_layouts_stay_on_the_nodes_that_are_there() -> None:
    spec = CampaignSpec(layout=("2x4",), transport=("ofi-lnx",))
    with pytest.raises(UsageError, match="asks for 2 nodes, this host has 1"):
        plan_campaign(spec, MACHINE, contents)
    two = Allocation(("n1", "n2"), "--hosts")
    assert [x.key for x in plan_campaign(spec, MACHINE, contents, two).layouts] == ["2x4-none"]
    assert [
        x.key for x in plan_campaign(CampaignSpec(quick=True), MACHINE, contents, two).layouts
    ] == ["2x1"]


def test_by_default_a_pair_and_every_core_are_compared() -> None:
    many = a_machine(*MACHINE.mpis, cores=8)
    assert [layout.key for layout in plan_campaign(CampaignSpec(), many, contents).layouts] == [
        "1x2",
        "1x8",
    ]


@given(st.integers(1, 2**32), st.integers(1, 12))
def test_every_round_has_every_configuration_once_and_the_baseline_twice(
    seed: int, rounds: int
) -> None:
    asked = planned(seed=seed, rounds=rounds)
    steps = schedule_launches(asked)
    assert steps == schedule_launches(asked)
    assert len({s.place for s in steps}) == len(steps)
    for number in range(rounds):
        block = [s for s in steps if s.round == number]
        counted = Counter(s.configuration.id for s in block)
        assert counted.pop(asked.baseline.id) == 2
        assert set(counted.values()) == {1}
        assert [s.slot for s in block] == list(range(len(block)))


def test_the_order_differs_from_round_to_round() -> None:
    steps = schedule_launches(planned(seed=7, rounds=10))
    orders = {tuple(s.configuration.id for s in steps if s.round == r) for r in range(10)}
    assert len(orders) > 5


def test_layouts_change_places_from_round_to_round() -> None:
    """They may be held against each other: one that were always first would meet colder caches."""
    many = a_machine(*MACHINE.mpis, cores=8)
    asked = plan_campaign(
        CampaignSpec(rounds=12, seed=3, layout=("1x2", "1x4", "1x8")), many, contents
    )
    orders = {
        tuple(dict.fromkeys(s.layout.key for s in schedule_launches(asked) if s.round == number))
        for number in range(12)
    }
    assert len(orders) > 3
    assert {frozenset(order) for order in orders} == {frozenset({"1x2", "1x4", "1x8"})}


def test_a_launch_of_many_pairs_may_take_long() -> None:
    """511 meetings of three measurements each are no 23 sizes."""
    budget = DEFAULT_BUDGET_MS / 1000
    pairs = completed_spec(CampaignSpec(benchmark=("pairs",), layout=("512x1",), seed=1))
    assert pairs.limit_s > 20 * 3 * 511 * budget
    assert (
        completed_spec(CampaignSpec(benchmark=("latency",), layout=("512x1",), seed=1)).limit_s < 60
    )
    both = completed_spec(
        CampaignSpec(benchmark=("pairs,latency",), layout=("512x1", "2x1"), seed=1)
    )
    assert both.limit_s > pairs.limit_s


def test_a_launch_with_long_messages_may_take_long() -> None:
    """Five samples of 8 GiB pass the budget a hundredfold; 4 MiB and less are within it."""
    usual = completed_spec(CampaignSpec(benchmark=("bw", "barrier"), seed=1)).limit_s
    long = completed_spec(
        CampaignSpec(benchmark=("bw", "barrier"), seed=1, max_size=8 << 30)
    ).limit_s
    assert usual < 60
    assert long > 10 * (8 << 30) / 100e6
    two = completed_spec(CampaignSpec(benchmark=("bw", "bibw"), seed=1, max_size=8 << 30)).limit_s
    assert two > 1.9 * long
    with pytest.raises(UsageError, match="no message sizes from"):
        completed_spec(CampaignSpec(max_size=(4 << 40) + 1))


def test_a_stored_plan_gives_the_same_schedule_again() -> None:
    asked = planned(rounds=6, quick=True)
    again = resume_campaign(asked.plan, MACHINE, contents)
    assert [s.place for s in schedule_launches(again)] == [
        s.place for s in schedule_launches(asked)
    ]
    assert again.plan == asked.plan


def test_a_new_mpi_does_not_join_a_resumed_campaign() -> None:
    asked = planned()
    more = a_machine(*MACHINE.mpis, an_mpi("mpich@4.3.2"))
    assert len(resume_campaign(asked.plan, more, contents).configurations) == len(
        asked.configurations
    )


def test_changed_libraries_are_not_mixed_into_a_campaign() -> None:
    text = planned().plan
    with pytest.raises(UsageError, match="cannot resume"):
        resume_campaign(text, MACHINE, lambda mpi: (("libmpi", mpi.version + "+"),))


def test_other_cores_are_not_mixed_into_a_campaign() -> None:
    text = planned().plan
    assert resume_campaign(text, MACHINE, contents).layouts == planned().layouts
    with pytest.raises(UsageError, match=r"layouts, cpu"):
        resume_campaign(text, a_machine(*MACHINE.mpis, cores=1), contents)


def test_a_layout_whose_places_were_left_to_launchers_stays_so() -> None:
    """`1x2-core` was kept as `1x2` when its CPUs were not told to them: another layout today."""
    said = plan_campaign(CampaignSpec(layout=("1x2-core",)), MACHINE, contents)
    assert [layout.key for layout in said.layouts] == ["1x2:core"]
    assert resume_campaign(said.plan, MACHINE, contents).layouts == said.layouts
    old = said.plan.replace('"layouts":["1x2:core"]', '"layouts":["1x2"]')
    with pytest.raises(UsageError, match="cannot resume: layouts is no longer"):
        resume_campaign(old, MACHINE, contents)


def test_a_name_with_a_secret_in_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "planted-1234")
    for spec in ({"name": "a planted-1234"}, {"env": ("UCX_LOG_FILE=planted-1234",)}):
        with pytest.raises(UsageError, match="secret-looking"):
            planned(**spec)


def test_quick_is_shorter_and_both_say_what_they_do() -> None:
    quick, full = planned(quick=True).spec, planned().spec
    assert quick.rounds == campaign.QUICK_ROUNDS < full.rounds
    assert quick.budget_ms < full.budget_ms
    assert json.loads(planned(quick=True).plan)["benchmarks"] == list(benchmarks.QUICK_BENCHMARKS)


def test_benchmarks_may_be_listed_with_their_options() -> None:
    keys = [b.key for b in planned(benchmark=("latency,alltoallv,counts=sparse", "bw")).benchmarks]
    assert keys == ["native:latency", "native:alltoallv,counts=sparse", "native:bw"]


def test_like_osu_is_part_of_every_benchmark() -> None:
    wanted = ("latency,alltoallv,counts=sparse", "bw,like=osu,window=2")
    plan = planned(benchmark=wanted, like="osu")
    assert [b.key for b in plan.benchmarks] == [
        "native:latency,like=osu", "native:alltoallv,counts=sparse,like=osu",
        "native:bw,like=osu,window=2",
    ]  # fmt: skip
    assert json.loads(plan.plan)["benchmarks"] == [b.key for b in plan.benchmarks]
    assert [b.key for b in planned(benchmark=("bw,like=osu",)).benchmarks] == ["native:bw,like=osu"]
    for name in ("memory", "pairs", "launch_time"):
        with pytest.raises(UsageError, match="OSU has no benchmark of this kind"):
            planned(benchmark=(f"latency,{name}",), like="osu")
        with pytest.raises(UsageError, match="OSU has no benchmark of this kind"):
            planned(benchmark=(f"{name},like=osu",))


@pytest.mark.parametrize(
    "text",
    [
        "latencyy",
        "bw,,latency",
        "bw,",
        "bw,window=",
        "bw,colour=red",
        "alltoallv,counts=odd",
        "bw,like=imb",
    ],
)
def test_a_benchmark_that_is_not_there_is_refused_before_anything_starts(text: str) -> None:
    with pytest.raises(UsageError, match=r"no benchmark|no option|name is empty"):
        planned(benchmark=(text,))


def test_one_rank_and_absent_gpus_are_refused_before_anything_starts() -> None:
    with pytest.raises(UsageError, match="needs two or more"):
        planned(layout=("1x1",))
    assert planned(layout=("1x1",), benchmark=("init_time",)).layouts[0].ranks == 1
    for buffers in ("cuda", "rocm"):
        with pytest.raises(MissingError, match=r"no (nvidia|amd) GPU"):
            planned(buffers=buffers)


def test_sizes_and_suites_that_cannot_be_run_are_refused() -> None:
    with pytest.raises(UsageError, match="no message sizes"):
        planned(min_size=64, max_size=8)
    with pytest.raises(UsageError, match="suite 'nas' is unknown"):
        planned(benchmark=("nas:cg",))
    with pytest.raises(MissingError, match="no IMB-MPI1 here"):
        planned(benchmark=("imb:PingPong",))


def test_a_repeated_campaign_asks_the_same_of_the_mpis_of_today() -> None:
    """Words are resolved anew: `openmpi` is the newer one now; the order is drawn anew."""
    asked = planned(mpi=("openmpi",), benchmark=("latency",), rounds=7, seed=5, name="night")
    record = campaign_record(asked)
    spec = repeated_spec(record)
    newer = a_machine(an_mpi("openmpi@5.0.12"), an_mpi("mpich@5.0.2"))
    again = replace(plan_campaign(spec, newer, contents), repeats=record.id)
    assert [c.mpi for c in again.configurations] == [newer.mpis[0]] * 2
    assert (again.benchmarks, again.layouts) == (asked.benchmarks, asked.layouts)
    assert (again.spec.rounds, again.spec.name) == (7, "night")
    assert again.spec.seed != asked.spec.seed
    assert json.loads(again.plan)["repeats"] == record.id
    assert "repeats" not in json.loads(asked.plan)
    assert resume_campaign(again.plan, newer, contents).spec == again.spec


def test_a_repeated_campaign_keeps_its_looks_and_not_its_extensions() -> None:
    asked = planned(looks=(9, 14, 20))
    longer = extend_campaign(campaign_record(asked), 40, 20)
    spec = repeated_spec(longer)
    assert (spec.looks, spec.rounds) == ((9, 14, 20), 20)
    assert plan_campaign(spec, MACHINE, contents).spec.rounds == 20


def test_an_imported_campaign_cannot_be_repeated() -> None:
    record = replace(campaign_record(planned()), origin=Origin.IMPORT)
    with pytest.raises(UsageError) as error:
        repeated_spec(record)
    assert error.value.code == "again-imported"
