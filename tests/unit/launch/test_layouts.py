"""Layouts as the CPUs and GPUs of ranks on well-known nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Allocation, Cpu, Gpu, Layout, Placement, parse_layout
from mpigraft.launch import THIS_HOST as HERE
from mpigraft.launch import placement as layouts
from mpigraft.launch.placement import assign_cpus
from tests.builders.configuration import a_machine
from tests.builders.messages import matches
from tests.unit.core.test_layout_keys import LAYOUTS

Groups = tuple[tuple[int, ...], ...]


def masks(layout: Layout, cpu: Cpu, gpus: Sequence[Gpu] = ()) -> tuple[tuple[int, ...], ...]:
    return assign_cpus(layout, cpu, gpus).masks


def split(cpus: Sequence[int], parts: int) -> Groups:
    size = len(cpus) // parts
    return tuple(tuple(cpus[n * size : (n + 1) * size]) for n in range(parts))


def node(
    cores: int, sockets: int, numa: int, l3: int, *, threads: int = 1, without: Sequence[int] = ()
) -> Cpu:
    """Cores numbered as Linux does on AMD and Arm: second hardware threads after all first ones.
    `without` are cores that a job does not get."""

    def groups(parts: int) -> Groups:
        found = (
            tuple(c + t * cores for t in range(threads) for c in group if c not in without)
            for group in split(range(cores), parts)
        )
        return tuple(tuple(sorted(group)) for group in found if group)

    got = cores - len(without)
    return Cpu(
        "", "x86_64", got, got * threads, sockets, groups(numa), groups(l3), groups(cores),
        groups(sockets),
    )  # fmt: skip


def lumi_g(**more: object) -> Cpu:
    """EPYC 7A53: 4 NUMA domains, 8 L3 groups of 8 cores."""
    made = node(64, 1, 4, 8, **more)  # type: ignore[arg-type]
    return replace(made, model="AMD EPYC 7A53 64-Core Processor")


ARCHER2 = node(128, 2, 8, 32, threads=2)  # 2 x EPYC 7742: an L3 for each 4 cores
LUMI_C = node(128, 2, 8, 16)  # 2 x EPYC 7763: an L3 for each 8 cores
GH200 = replace(node(288, 4, 4, 4), model="Neoverse V2", architecture="aarch64")
GCDS = tuple(Gpu(n, "amd", "AMD Instinct MI250X", 65536) for n in range(8))
HOPPERS = tuple(Gpu(n, "nvidia", "NVIDIA GH200 120GB", 97871) for n in range(4))


def mask(words: str) -> Groups:
    """Slurm's mask_cpu list as CPUs."""
    return tuple(
        tuple(n for n in range(int(word, 16).bit_length()) if int(word, 16) >> n & 1)
        for word in words.split(",")
    )


def test_only_what_was_requested_is_reported() -> None:
    machine = replace(a_machine(), cpu=LUMI_C)
    for words, told in (
        ("1x2", ()), ("1x2-none", ()), ("1x2:numa-none", ()), ("1x129:numa", ()),
        ("1x2:core", ((0,), (1,))), ("1x2-core", ((0,), (1,))), ("1x2:node", ((0,), (1,))),
        ("1x2x2-core", ((0, 1), (2, 3))), ("1x2:numa", ((0,), (64,))),
    ):  # fmt: skip
        assert layouts.placement_for(parse_layout(words, 128), machine, HERE).masks == told


def test_ranks_stay_in_the_affinity_mask_of_this_node() -> None:
    """Launchers take the first CPUs of the cpuset; of other nodes the mask is not known."""
    cpu = replace(LUMI_C, core_cpus=((6,), (7,)), cpuset=tuple(range(8)))
    machine = replace(a_machine(), cpu=cpu)
    here = (machine.hostname, "n2")
    job, elsewhere = Allocation(here, "Slurm job 7", "slurm", "7"), Allocation(("n2",), "--hosts")
    for nodes in (HERE, job):
        assert layouts.placement_for(Layout(1, 1), machine, nodes).masks == ((6,),)
        assert layouts.placement_for(Layout(1, 2), machine, nodes).masks == ((6,), (7,))
        assert not layouts.placement_for(Layout(1, 2, bind="none"), machine, nodes).masks
        assert not layouts.placement_for(Layout(2, 1), machine, nodes).masks
    assert not layouts.placement_for(Layout(1, 1), machine, elsewhere).masks


# ------------------------------------------------------------------ CPUs


def test_cores_are_taken_one_after_the_other() -> None:
    assert masks(Layout(1, 3, 2), LUMI_C) == ((0, 1), (2, 3), (4, 5))
    assert masks(Layout(1, 3, 2, map_by="node"), LUMI_C) == ((0, 1), (2, 3), (4, 5))
    assert masks(Layout(1, 3, bind="none"), LUMI_C) == ()


def test_the_hardware_threads_of_a_core_are_one_place() -> None:
    assert masks(Layout(1, 2, 2), ARCHER2) == ((0, 1, 128, 129), (2, 3, 130, 131))
    full = masks(Layout(1, 128), ARCHER2)
    assert full[127] == (127, 255)
    with pytest.raises(UsageError, match=r"129 ranks with one core each on a node, which has 128"):
        masks(Layout(1, 129), ARCHER2)


def test_ranks_are_dealt_evenly_and_in_order() -> None:
    assert masks(Layout(1, 2, map_by="socket"), LUMI_C) == ((0,), (64,))
    assert masks(Layout(1, 4, map_by="socket"), LUMI_C) == ((0,), (1,), (64,), (65,))
    assert masks(Layout(1, 4, map_by="numa"), LUMI_C) == ((0,), (32,), (64,), (96,))
    assert masks(Layout(1, 8, 4, map_by="l3cache"), ARCHER2)[1][:4] == (16, 17, 18, 19)
    nemo = masks(Layout(1, 50, map_by="numa"), ARCHER2)  # 48 and 2 servers, on 128 cores
    assert Counter(m[0] // 16 for m in nemo) == {0: 7, 1: 6, 2: 6, 3: 6, 4: 7, 5: 6, 6: 6, 7: 6}


def test_a_rank_is_bound_to_what_its_cores_lie_in() -> None:
    assert masks(Layout(1, 4, 8, "l3cache", "numa"), LUMI_C)[1] == tuple(range(32, 40))
    assert masks(Layout(1, 2, 1, "socket", "socket"), LUMI_C)[1] == tuple(range(64, 128))
    assert masks(Layout(1, 8, 1, "numa", "core"), LUMI_C)[7] == tuple(range(16))


def test_a_rank_is_bound_to_what_was_requested_or_to_nothing() -> None:
    """Its own cores alone would go under the name of a cache that nobody knows of."""
    for level in ("l3cache", "numa", "socket"):
        bare = replace(LUMI_C, l3=(), numa=(), socket_cpus=())
        with pytest.raises(UsageError, match=f"binds each rank to its {level}, but that of CPU 0"):
            masks(Layout(1, 2, bind=level), bare)
    with pytest.raises(UsageError, match="that of CPU 124 is not known"):
        masks(Layout(1, 32, 4, bind="l3cache"), replace(ARCHER2, l3=ARCHER2.l3[:-1]))
    with pytest.raises(UsageError, match="that of CPU 124 is not known"):  # half of it is in one
        masks(Layout(1, 16, 8, bind="l3cache"), replace(ARCHER2, l3=ARCHER2.l3[:-1]))


def test_no_rank_takes_cores_of_two_caches() -> None:
    with pytest.raises(UsageError, match=r"32 x l3cache of 4 cores have no room") as no:
        masks(Layout(1, 8, 7, map_by="l3cache"), ARCHER2)
    assert matches(no.value, "layout-level-too-small", wider="core or numa or socket or node")
    bare = replace(LUMI_C, l3=())
    with pytest.raises(UsageError, match="no l3cache is known on this machine"):
        masks(Layout(1, 8, map_by="l3cache"), bare)


def test_what_the_system_keeps_for_itself_is_left_alone() -> None:
    low_noise = lumi_g(without=(0,))
    assert len(masks(Layout(1, 63), low_noise)) == 63
    seven = masks(Layout(1, 8, 7, map_by="l3cache"), low_noise)
    assert seven[0] == tuple(range(1, 8))
    assert seven[1] == tuple(range(8, 15))
    with pytest.raises(UsageError, match="l3cache of 7 to 8 cores"):
        masks(Layout(1, 7, 8, map_by="l3cache"), lumi_g(without=(0, 8)))
    # One domain is smaller: the rank that it has no room for goes to the next.
    full = masks(Layout(1, 63, map_by="numa"), low_noise)
    assert sorted(m[0] for m in full) == list(range(1, 64))
    reserved = lumi_g(without=range(0, 64, 8))
    assert masks(Layout(1, 8, 7, map_by="l3cache"), reserved) == mask(
        "fe,fe00,fe0000,fe000000,fe00000000,fe0000000000,fe000000000000,fe00000000000000"
    )


def test_neighbours_are_those_of_the_hardware_not_of_the_numbers() -> None:
    """Two sockets whose CPUs are numbered in turn, as many of Dell's are."""
    even, odd = tuple(range(0, 16, 2)), tuple(range(1, 16, 2))
    turns = Cpu(
        "", "x86_64", 16, 16, 2, (even, odd), (even, odd), split(range(16), 16), (even, odd)
    )
    assert masks(Layout(1, 2, 4), turns) == ((0, 2, 4, 6), (8, 10, 12, 14))


def test_a_machine_of_which_little_is_known_has_cores_at_least() -> None:
    bare = Cpu("", "x86_64", 4, 4, 1, (), ())
    assert masks(Layout(1, 2, 2), bare) == ((0, 1), (2, 3))
    recorded = Cpu("", "x86_64", 2, 2, 1, ((4, 6),), ())
    assert masks(Layout(1, 2), recorded) == ((4,), (6,))


NODES = st.sampled_from(
    [ARCHER2, LUMI_C, GH200, lumi_g(), lumi_g(without=(0,)), lumi_g(threads=2, without=(0, 8))]
)


@given(NODES, LAYOUTS)
def test_masks_are_disjoint_cores_or_the_layout_is_refused(cpu: Cpu, layout: Layout) -> None:
    layout = replace(layout, gpus=False)
    try:
        found = assign_cpus(layout, cpu)
    except UsageError:
        return
    if layout.bind == "none":
        assert found == Placement()
        return
    assert len(found.masks) == layout.ranks_per_node
    known = {c for core in cpu.core_cpus for c in core}
    assert all(known.issuperset(m) and m == tuple(sorted(set(m))) for m in found.masks)
    if layout.bind != "core":
        groups = layouts.groups_of(layout.bind, cpu)
        assert all(set(m) == {c for g in groups if set(g) & set(m) for c in g} for m in found.masks)
    if layout.bind == "core":
        taken = Counter(c for m in found.masks for c in m)
        assert set(taken.values()) == {1}
        size = len(cpu.core_cpus[0])
        assert all(len(m) == layout.threads * size for m in found.masks)
        level = layouts.groups_of(layout.map_by, cpu)
        assert all(any(set(m) <= set(group) for group in level) for m in found.masks)


GROUPS = st.lists(st.lists(st.integers(0, 7), max_size=4).map(tuple), max_size=4).map(tuple)
ODD = st.builds(
    Cpu,
    model=st.just(""), architecture=st.just("x86_64"), cores=st.integers(0, 9),
    threads=st.integers(0, 9), sockets=st.integers(0, 2), numa=GROUPS, l3=GROUPS,
    core_cpus=st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=2).map(tuple), max_size=8)
    .map(tuple),
    socket_cpus=GROUPS,
)  # fmt: skip


@given(ODD, LAYOUTS, st.sampled_from([(), GCDS[:3]]))
def test_what_a_kernel_may_say_is_a_placement_or_refused(
    cpu: Cpu, layout: Layout, gpus: tuple[Gpu, ...]
) -> None:
    """A virtual machine, a container or a file may describe cores that no hardware has."""
    try:
        found = assign_cpus(layout, cpu, gpus)
    except UsageError:
        return
    assert len(found.masks) in (0, layout.ranks_per_node)
    assert all(found.masks) or layout.bind == "none"
    assert set(found.gpus) <= {gpu.index for gpu in gpus}


# ------------------------------------------------------------------ GPUs


def test_ranks_of_lumi_g_have_the_die_next_to_their_cores() -> None:
    """The same pairs of cores and dies as in LUMI's guide, in the order of the cores."""
    reserved = lumi_g(without=range(0, 64, 8))
    found = assign_cpus(Layout(2, 8, 7, map_by="l3cache", gpus=True), reserved, GCDS)
    assert found.gpus == (4, 5, 2, 3, 6, 7, 0, 1)
    guide = mask("fe000000000000,fe00000000000000,fe0000,fe000000,fe,fe00,fe00000000,fe0000000000")
    assert dict(zip(found.gpus, found.masks, strict=True)) == dict(enumerate(guide))


def test_ranks_go_where_the_gpus_are_unless_mapped_elsewhere() -> None:
    assert masks(Layout(1, 4, 1, gpus=True), GH200, HOPPERS) == ((0,), (72,), (144,), (216,))
    assert assign_cpus(Layout(1, 4, 72, gpus=True), GH200, HOPPERS).gpus == (0, 1, 2, 3)
    assert assign_cpus(Layout(1, 2, gpus=True), lumi_g(), GCDS) == Placement(
        ((0,), (32,)), (4, 6), "amd"
    )
    packed = assign_cpus(Layout(1, 2, map_by="l3cache", gpus=True), lumi_g(), GCDS[:1])
    assert packed.gpus == (0, 0)


def test_no_gpu_serves_more_ranks_than_it_must() -> None:
    found = assign_cpus(Layout(1, 16, 1, map_by="socket", gpus=True), lumi_g(), GCDS)
    assert set(Counter(found.gpus).values()) == {2}
    assert found.gpus[:2] == (4, 4)
    assert (
        Counter(assign_cpus(Layout(1, 9, gpus=True), lumi_g(), GCDS).gpus).most_common(1)[0][1] == 2
    )


def test_what_the_kernel_says_counts_where_nothing_else_is_known() -> None:
    """JUWELS Booster: 4 A100 at NUMA domains 3, 1, 7 and 5 of 8."""
    cpu = node(48, 2, 8, 16)
    gpus = tuple(
        Gpu(n, "nvidia", "NVIDIA A100", 40960, (), cpu.numa[at])
        for n, at in enumerate((3, 1, 7, 5))
    )
    found = assign_cpus(Layout(1, 4, 6, gpus=True), cpu, gpus)
    assert found.gpus == (1, 0, 3, 2)
    assert found.masks[0] == cpu.numa[1]
    far = assign_cpus(Layout(1, 8, 6, map_by="numa", gpus=True), cpu, gpus)
    assert far.gpus == (1, 1, 0, 0, 3, 3, 2, 2)
    blind = tuple(replace(gpu, cpus=()) for gpu in gpus)
    assert assign_cpus(Layout(1, 4, gpus=True), cpu, blind).gpus == (0, 1, 2, 3)


def test_gpus_that_are_not_there_cannot_be_given() -> None:
    with pytest.raises(UsageError, match="this node has none"):
        assign_cpus(Layout(1, 2, gpus=True), LUMI_C)
    assert assign_cpus(Layout(1, 8, 9, "none", gpus=True), lumi_g(), GCDS[:4]).gpus == (
        0, 0, 1, 1, 2, 2, 3, 3,
    )  # fmt: skip
