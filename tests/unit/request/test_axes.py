"""Layouts by their axes: from flags and files, on the nodes and the CPUs that a job has."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench import pairing_spec
from mpigraft.bench import submission as jobs
from mpigraft.bench.schedule import campaign
from mpigraft.cli import main
from mpigraft.core.errors import UsageError
from mpigraft.core.model import BIND_TO, MAP_BY, MAX_COUNT, Allocation, Machine
from mpigraft.core.serialize import canonical
from mpigraft.discovery import inventory
from mpigraft.launch import placement as layouts
from mpigraft.launch.hosts.allocation import THIS_HOST
from mpigraft.request.job.layout import decide_layout
from mpigraft.request.job.spec import JobPlacement
from mpigraft.request.spec import (
    AXES,
    CampaignSpec,
    asked_campaign,
    override_spec,
    read_spec,
    stored_spec,
)
from mpigraft.selection import layouts as axes
from tests.builders.configuration import a_machine
from tests.unit.launch.test_layouts import LUMI_C, lumi_g

EIGHT = a_machine(cores=8)
TWO = Allocation(("n1", "n2"), "Slurm job 42", "slurm", "42")


def keys(spec: CampaignSpec, nodes: Allocation = THIS_HOST, machine: Machine = EIGHT) -> list[str]:
    return [layout.key for layout in axes.requested_layouts(spec, machine, nodes)]


# ------------------------------------------------------------------ what they mean


def test_threads_alone_are_an_axis_of_full_nodes() -> None:
    assert keys(CampaignSpec(threads=(1, 2, 3))) == ["1x8", "1x4x2", "1x2x3"]
    assert keys(CampaignSpec(threads=(4,)), TWO) == ["2x2x4"]
    assert keys(CampaignSpec(nodes=(1, 2)), TWO) == ["1x8", "2x8"]
    assert keys(CampaignSpec(threads=(9,))) == ["1x1x9-none"]


def test_without_a_word_a_pair_and_every_core_unless_they_are_the_same() -> None:
    for cores, due in ((1, ["1x2-none"]), (2, ["1x2"]), (3, ["1x2", "1x3"])):
        assert keys(CampaignSpec(), machine=a_machine(cores=cores)) == due
    assert keys(CampaignSpec(), TWO) == ["2x1", "2x8"]
    assert keys(CampaignSpec(quick=True), TWO) == ["2x1"]


def test_each_axis_is_taken_with_each_of_the_others() -> None:
    spec = CampaignSpec(ranks_per_node=(2, 4), map_by=("core", "node"), bind_to=("core", "none"))
    assert keys(spec) == [
        "1x2:core", "1x2-none", "1x2:node", "1x2:node-none",
        "1x4:core", "1x4-none", "1x4:node", "1x4:node-none",
    ]  # fmt: skip
    assert keys(CampaignSpec(ranks_per_node=(2, 2), threads=(1, 1))) == ["1x2"]


def test_axes_make_the_layouts_that_words_name() -> None:
    machine = replace(EIGHT, cpu=LUMI_C)
    by_axes = CampaignSpec(
        nodes=(2,), ranks_per_node=(8,), threads=(7,), map_by=("l3cache",), bind_to=("numa",)
    )
    whole = CampaignSpec(layout=("2x8x7:l3cache-numa",))
    assert axes.requested_layouts(by_axes, machine, TWO) == axes.requested_layouts(
        whole, machine, TWO
    )
    lumi = replace(EIGHT, cpu=lumi_g(threads=2, without=range(0, 64, 8)))
    documented = CampaignSpec(threads=(1, 7), map_by=("l3cache",))
    assert keys(documented, machine=lumi) == ["1x56:l3cache", "1x8x7:l3cache"]


def test_a_layout_has_no_more_than_the_cpus_that_the_job_was_granted() -> None:
    """As `run` has it: not every scheduler keeps a job to them, so this process may see more."""
    some = replace(TWO, cpus=(4, 2))
    assert keys(CampaignSpec(threads=(1, 2)), some) == ["2x2", "2x1x2"]
    assert keys(CampaignSpec(nodes=(1,)), some) == ["1x4"]
    assert keys(CampaignSpec(), replace(TWO, cpus=(4, 4))) == ["2x1", "2x4"]
    assert keys(CampaignSpec(layout=("1x4", "2x4")), some) == ["1x4", "2x4-none"]
    with pytest.raises(UsageError, match="binds 4 ranks with one core each, of 2 in all"):
        keys(CampaignSpec(layout=("2x4-core",)), some)


def test_what_cannot_be_is_refused_before_anything_starts() -> None:
    for spec, seen in (
        (CampaignSpec(nodes=(3,)), "asks for 3 nodes, Slurm job 42 has 2"),
        (CampaignSpec(layout=("999999x999999",)), "asks for 999999 nodes"),
        (CampaignSpec(ranks_per_node=(9,), bind_to=("core",)), "binds 9 ranks"),
        (CampaignSpec(ranks_per_node=(2,), gpus=True), "this node has none"),
        (
            CampaignSpec(ranks_per_node=tuple(range(1, 41)), threads=tuple(range(1, 41))),
            "1600 layouts",
        ),
    ):
        with pytest.raises(UsageError, match=seen):
            keys(spec, TWO)


COUNTS = st.lists(st.integers(1, MAX_COUNT), max_size=3).map(tuple)
WISHES = st.builds(
    CampaignSpec,
    nodes=st.lists(st.integers(1, 2), max_size=2).map(tuple),
    ranks_per_node=COUNTS,
    threads=COUNTS,
    map_by=st.lists(st.sampled_from(MAP_BY), max_size=2).map(tuple),
    bind_to=st.lists(st.sampled_from(BIND_TO), max_size=2).map(tuple),
    gpus=st.booleans(),
)


@given(WISHES)
def test_any_axes_are_layouts_that_fit_or_refused(spec: CampaignSpec) -> None:
    assert stored_spec(json.loads(canonical(spec)), "stored plan") == spec
    try:
        found = axes.requested_layouts(spec, replace(EIGHT, cpu=LUMI_C), TWO)
    except UsageError:
        return
    assert all(x.bind == "none" or x.ranks_per_node * x.threads <= 128 for x in found)
    if spec.axes:
        asked = [getattr(spec, name) or ("",) for name in AXES[:-1]]
        assert 1 <= len(found) <= len(asked[0]) * len(asked[1]) * len(asked[2]) * 4
        assert {x.nodes for x in found} == set(spec.nodes or (2,))


@given(WISHES, st.sampled_from([(), (4, 2), (256, 256)]))
def test_run_and_bench_mean_the_same_by_the_same_flags(
    spec: CampaignSpec, cpus: tuple[int, ...]
) -> None:
    """Of axes with one value each, as `run` has them."""
    one = replace(spec, **{name: getattr(spec, name)[:1] for name in AXES[:-1]})
    told = {name: found[0] for name in AXES[:-1] if (found := getattr(one, name))}
    machine, nodes = replace(EIGHT, cpu=LUMI_C), replace(TWO, cpus=cpus)
    told = told or {"nodes": 2}  # without a flag `bench` chooses layouts of its own
    one = override_spec(one, asked_campaign({name: [word] for name, word in told.items()}))
    try:
        (here,) = axes.requested_layouts(one, machine, nodes)
    except UsageError as error:
        with pytest.raises(UsageError, match=re.escape(error.message)):
            layouts.placement_for(
                decide_layout(JobPlacement(**told, gpus=spec.gpus), 128, nodes, {})[0],
                machine,
                nodes,
            )
        return
    assert decide_layout(JobPlacement(**told, gpus=spec.gpus), 128, nodes, {}) == (here, ())


# ------------------------------------------------------------------ who says them


def test_flags_and_files_do_not_mix_the_two_ways() -> None:
    whole, parts = (
        CampaignSpec(layout=("1x2",)),
        CampaignSpec(ranks_per_node=(8,), threads=(7,), gpus=True),
    )
    assert override_spec(whole, asked_campaign({"threads": [2]})) == CampaignSpec(threads=(2,))
    assert override_spec(parts, asked_campaign({"layout": ["1x2"]})) == whole
    assert override_spec(parts, asked_campaign({"threads": [1, 2]})) == replace(
        parts, threads=(1, 2)
    )
    assert override_spec(whole, asked_campaign({"rounds": 6})).layout == ("1x2",)
    assert override_spec(parts, asked_campaign({"rounds": 6})).ranks_per_node == (8,)
    with pytest.raises(UsageError, match=r"^--threads with --layout: both give layouts"):
        asked_campaign({"layout": ["1x2"], "threads": [1]})


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\nthreads = 0", "toml:2: threads is 0"),
        ("nodes = [1, -1]", "toml:1: nodes is -1"),
        (
            "ranks_per_node = 1_000_000",
            "is 1000000\nwhat to do: give a number above 0, at most 999,999",
        ),
        ("threads = true", "threads must be a whole number or several, not true"),
        ("threads = [1.0]", "threads must be a whole number or several"),
        ("threads = [[1]]", "threads must be a whole number or several"),
        ("threads = '1'", "threads must be a whole number or several, not '1'"),
        ("map_by = 'l3'", "map_by 'l3' is unknown\nwhat to do: give one of: core, l3cache"),
        ("bind_to = ['core', 'node']", "bind_to 'node' is unknown"),
        ("gpus = 1", "gpus must be true or false"),
        ("layout = '1x2'\nthreads = 7", "toml:2: threads with layout: both give layouts"),
        ("gpus = true\nlayout = '1x2'", "toml:1: gpus with layout"),
    ],
)
def test_a_file_is_refused_with_its_line(tmp_path: Path, text: str, seen: str) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=seen):
        read_spec(path)


def test_a_file_says_axes_as_flags_do(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text("threads = [1, 7]\nranks_per_node = 8\nmap_by = 'numa'\ngpus = true\n")
    flags = {"threads": [1, 7], "ranks_per_node": [8], "map_by": ["numa"], "gpus": True}
    assert read_spec(path) == asked_campaign(flags).value


def test_blanks_after_a_comma_are_none_of_a_value(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text("layout = '1x2, 1x4'\nmpi = 'openmpi, mpich@5'\nstop_early_at = [9, 14]\n")
    typed = {"layout": ["1x2, 1x4"], "mpi": ["openmpi, mpich@5"], "stop_early_at": ["9, 14"]}
    spec = asked_campaign(typed).value
    assert (spec.layout, spec.mpi, spec.looks) == (("1x2", "1x4"), ("openmpi", "mpich@5"), (9, 14))
    assert read_spec(path) == spec


@pytest.mark.parametrize(
    ("flags", "seen"),
    [
        ("--threads 0", "--threads is 0"),
        ("--ranks-per-node 1000000", "--ranks-per-node is 1000000"),
        (f"--nodes {'9' * 5000}", "--nodes"),
        ("--map-by l3", "--map-by 'l3' is unknown"),
        ("--layout 1x2 --bind-to none", "--bind-to with --layout"),
        ("--pairs --hosts a,b --threads 2", "--pairs sets benchmark and layout"),
        ("--threads 3 --threads 8", "layout 1x1x8 is one rank"),
        ("--resume --threads 2", "takes no other option"),
        (f"--resume --share 1/{'9' * 5000}", "invalid --share"),
    ],
)
def test_bench_refuses_by_the_flag_that_was_typed(
    flags: str, seen: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(inventory, "discover_machine", lambda: EIGHT)
    assert main.run_command(["bench", "--dry-run", "--here", *flags.split()]) == 2
    assert seen in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (
            "run -n 1000000 -- true",
            "-n 1000000 [number-invalid]\nwhat to do: give a number, 1 to 999,999",
        ),
        ("run -n -1 -- true", "-n -1"),
        ("run --threads 0 -- true", "--threads 0"),
        ("run --ranks-per-node 1000000 -- true", "--ranks-per-node 1000000"),
        ("layout --ranks-per-node 0", "--ranks-per-node 0"),
        ("layout 1x2 --ranks-per-node 0", "both describe a layout"),
        ("layout --nodes 0", "the number of ranks per node is missing"),
    ],
)
def test_counts_that_are_none_are_refused_everywhere(
    words: str, seen: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(inventory, "discover_machine", lambda: EIGHT)
    assert main.run_command(words.split()) == 2
    assert seen in capsys.readouterr().err


# ------------------------------------------------------------------ campaigns of them


def test_a_job_of_too_few_nodes_is_refused_before_it_waits_in_a_queue() -> None:
    for spec, seen in (
        (CampaignSpec(nodes=(1, 4)), "nodes = 4 asks for 4 nodes, the job has 2"),
        (CampaignSpec(layout=("2x8", "two",)), "layout 'two' is not NODESxRANKS"),
        (CampaignSpec(layout=(f"{'9' * 5000}x1",)), "is not NODESxRANKS"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=seen):
            jobs.plan_submission(spec, 2, 600, 1, "slurm")
    with pytest.raises(UsageError, match="sets benchmark and layout"):
        pairing_spec(CampaignSpec(threads=(2,)), TWO.hosts)


def test_pairs_on_all_nodes_of_a_job_may_take_as_long_as_when_they_are_counted() -> None:
    def limit_s(of_job: int, spec: CampaignSpec) -> float:
        return campaign.completed_spec(replace(spec, benchmark=("pairs",)), of_job).limit_s

    counted = limit_s(2, CampaignSpec(layout=("512x1",)))
    assert counted == limit_s(512, CampaignSpec()) == limit_s(512, CampaignSpec(threads=(2,)))
    assert counted == limit_s(2, CampaignSpec(nodes=(512,)))
    assert limit_s(512, CampaignSpec(layout=("4x1",))) == limit_s(4, CampaignSpec()) < counted
