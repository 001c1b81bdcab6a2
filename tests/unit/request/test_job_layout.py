"""Nodes, ranks and programs of one job, from its words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Allocation, Group, Layout
from mpigraft.launch.hosts.allocation import THIS_HOST
from mpigraft.request.job.layout import decide_layout, mpmd_programs
from mpigraft.request.job.spec import JobPlacement, MpmdProgram

TWO = Allocation(("n1", "n2"), "Slurm job 42", "slurm", "42")


def decided(
    where: JobPlacement, cores: int = 8, nodes: Allocation = THIS_HOST, **environ: str
) -> Layout:
    return decide_layout(where, cores, nodes, environ)[0]


def test_a_rank_for_every_core_by_default() -> None:
    assert decided(JobPlacement()) == Layout(1, 8)
    assert decided(JobPlacement(), OMP_NUM_THREADS="3,2") == Layout(1, 2, 3)
    assert decided(JobPlacement(threads=4), OMP_NUM_THREADS="3") == Layout(1, 2, 4)
    for odd in ("many", "0", "-2", "", "9" * 5000, "\u0662", "1e3", "+2", "1000000"):
        assert decided(JobPlacement(), OMP_NUM_THREADS=odd) == Layout(1, 8)
    assert decided(JobPlacement(ranks=9)).bind == "none"
    assert decided(JobPlacement(map_by="numa", bind_to="socket", gpus=True, ranks=2)).key == (
        "1x2:numa-socket+gpus"
    )


def test_all_nodes_of_the_allocation_unless_fewer_are_asked_for() -> None:
    assert decided(JobPlacement(), nodes=TWO) == Layout(2, 8)
    assert decided(JobPlacement(nodes=1), nodes=TWO) == Layout(1, 8)
    assert decided(JobPlacement(ranks=1), nodes=TWO) == Layout(1, 1)
    assert decided(JobPlacement(ranks=4), nodes=TWO) == Layout(2, 2)
    assert decided(JobPlacement(ranks=4, ranks_per_node=2), nodes=TWO) == Layout(2, 2)
    with pytest.raises(UsageError, match="--nodes 3: Slurm job 42 has 2"):
        decided(JobPlacement(nodes=3), nodes=TWO)
    with pytest.raises(UsageError, match="5 ranks cannot be spread evenly over 2 nodes"):
        decided(JobPlacement(ranks=5), nodes=TWO)
    with pytest.raises(UsageError, match="-n 4 contradicts --ranks-per-node 3 on 2 nodes"):
        decided(JobPlacement(ranks=4, ranks_per_node=3), nodes=TWO)


def test_a_job_has_no_more_ranks_than_cpus_were_granted() -> None:
    """Not every scheduler keeps a job's processes to them, so this one may see more."""
    some = replace(TWO, cpus=(4, 2))
    assert decided(JobPlacement(), nodes=some) == Layout(2, 2)
    assert decided(JobPlacement(nodes=1), nodes=some) == Layout(1, 4)
    assert decided(JobPlacement(ranks_per_node=3), nodes=some).bind == "none"
    assert decided(JobPlacement(), nodes=replace(TWO, cpus=(256, 256))) == Layout(2, 8)


def test_nemo_has_two_servers_beside_its_ocean_on_each_node() -> None:
    ocean, others = mpmd_programs(
        ["./nemo", ":", "--ranks-per-node", "2", "./xios_server", "in.xml"]
    )
    assert (ocean, others) == (("./nemo",), (MpmdProgram(("./xios_server", "in.xml"), 0, 2),))
    layout, groups = decide_layout(JobPlacement(ranks_per_node=48, others=others), 128, TWO, {})
    assert (layout, groups) == (Layout(2, 50), (Group(2, ("./xios_server", "in.xml")),))
    assert decided(JobPlacement(others=others), cores=128) == Layout(1, 128)
    in_all = mpmd_programs(["./nemo", ":", "-n", "4", "./xios_server"])[1]
    assert (
        decide_layout(JobPlacement(ranks_per_node=48, others=in_all), 128, TWO, {})[1][
            0
        ].ranks_per_node
        == 2
    )
    with pytest.raises(UsageError, match="3 ranks cannot be spread"):
        decided(JobPlacement(others=mpmd_programs(["a", ":", "-n", "3", "b"])[1]), nodes=TWO)


def test_a_colon_of_the_programs_own_stays_its_own() -> None:
    for words in ("./app a : b", "./app :", "./app x: -n 2", "./app : -newer : "):
        assert mpmd_programs(words.split()) == (tuple(words.split()), ())
    three = mpmd_programs(["a", ":", "-n", "2", "b", ":", "c", ":", "-n=1", "d"])
    assert three == (("a",), (MpmdProgram(("b", ":", "c"), 2), MpmdProgram(("d",), 1)))


@pytest.mark.parametrize(
    "words",
    [": -n 2 b", "a : -n b", "a : -n 0 b", "a : -n 2", "a : -n", "a : -np b", "a : -n= b",
     "a : -n -1 b", "a : -n 1000000 b", "a : -n \u0662 b", f"a : -n {'9' * 5000} b"],
)  # fmt: skip
def test_what_stands_wrongly_behind_a_colon_is_refused(words: str) -> None:
    with pytest.raises(UsageError):
        mpmd_programs(words.split())


@given(st.lists(st.sampled_from([":", "-n", "-n=2", "--ranks-per-node", "1", "a", "--", ""])))
def test_no_word_is_lost(words: list[str]) -> None:
    try:
        first, others = mpmd_programs(["p", *words])
    except UsageError:
        return
    kept = sum(len(part.words) for part in others)
    counts = sum(1 for word in words if word.startswith(("-n", "--ranks")))
    assert len(first) + kept <= 1 + len(words) <= len(first) + kept + 3 * len(others)
    assert len(others) <= counts
    assert all(part.words and part.ranks + part.ranks_per_node > 0 for part in others)
