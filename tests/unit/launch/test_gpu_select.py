"""How ranks are shown their GPUs, and what is said of ranks that are not where they should be."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.env import ENV
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Allocation, Group, Launch, Layout, Placement, RankRecord
from mpigraft.evidence.world import bindings
from mpigraft.knowledge import gpus, read_rows
from mpigraft.knowledge.fit.ranks import RankVariables
from mpigraft.launch import gpu_select
from tests.builders.messages import matches, shows
from tests.builders.probes import configuration
from tests.unit.launch.test_launch import launch, of_ranks

PROGRAM = Path("/n/gpu-select")
ORDER = ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # CUDA's own is by speed
AMD = Placement(((0,), (1,)), (4, 5), "amd")
NAMES = RankVariables("a launcher", ("W", "V"), (), ("L",))
NVIDIA = Placement(((0,), (1,)), (1, 0), "nvidia")


# ------------------------------------------------------------------ words


def test_the_gpu_is_selected_by_the_rank_number_on_the_node() -> None:
    chosen = f"{PROGRAM} --rank L --set ROCR_VISIBLE_DEVICES=4/5 --"
    assert gpu_select.rank_prefix(AMD, PROGRAM, NAMES) == (*chosen.split(),)
    assert gpu_select.rank_prefix(Placement(), PROGRAM, NAMES) == ()
    place = Path("/a b")
    first, every, none = (
        gpu_select.rank_prefix(Placement(), PROGRAM, NAMES, whose, place)
        for whose in ("0", "all", "none")
    )
    for whose, words in (("0", first), ("all", every)):
        options = f"--stdin {whose} --world W,V --folder /a%20b --"
        assert words == (str(PROGRAM), *options.split())
    assert none == (str(PROGRAM), "--stdin", "none", "--")
    both = gpu_select.rank_prefix(AMD, PROGRAM, NAMES, "0", place)
    assert both == (*gpu_select.rank_prefix(AMD, PROGRAM, NAMES)[:-1], *first[1:])
    assert gpu_select.gpu_environment(Placement()) == ()
    assert gpu_select.visible_gpus(AMD, 1).split("=") == ["ROCR_VISIBLE_DEVICES", "5"]


@pytest.mark.parametrize(
    "word",
    ["", ":", "-", "--map-by", "-tune", "%", "a%3A", "a\nb", "@f", "é", "\udcff", "\t", "\x7f",
     "--a=b"],
)  # fmt: skip
def test_words_that_a_launcher_may_change_are_encoded(word: str) -> None:
    given = ("/usr/bin/env", "A=b c", "--long", "/n/app", word)
    words = gpu_select.wrap_words((), PROGRAM, given, ("/n/app", word))
    assert words[:4] == (str(PROGRAM), "--", given[0], "A=b%20c")
    assert words[4:6] == ("%2D-long", "/n/app")
    assert words[6] != word
    assert not re.fullmatch(r":|.*[^!-~].*|[-@].*|", words[6], re.DOTALL)


@pytest.mark.parametrize(
    "word", ["a", "-x", "/a/b=c", "1:2", ":a", "a b", "it's", '"$HOME"', "~", "a-b", "K=V", "\\"]
)
def test_words_that_all_launchers_pass_on_stay(word: str) -> None:
    given = ("/usr/bin/env", "--long", "/n/app", word)
    assert gpu_select.wrap_words((), PROGRAM, given, ("/n/app", word)) == given
    colon = ("/n/engine", ":", "/n/app", word)
    assert gpu_select.wrap_words((), PROGRAM, colon, ("/n/app", word))[3] == "%3A"
    front = ("/n/gpu-select", "--stdin", "none", "--")
    behind = gpu_select.wrap_words(front, PROGRAM, given, ("/n/app", word))
    assert behind[:7] == (*front, "/usr/bin/env", "%2D-long", "/n/app")


def decode_word(word: str) -> str:
    """Decode a word that is in one piece, as gpu_select.c does."""
    if word == gpu_select.EMPTY:
        return ""
    data = os.fsencode(word)
    assert not re.search(rb"%(?![0-9A-F]{2})|%00", data)
    return os.fsdecode(re.sub(rb"%(..)", lambda match: bytes([int(match[1], 16)]), data))


@given(st.binary(max_size=40).filter(lambda data: b"\0" not in data))
def test_any_word_comes_back(data: bytes) -> None:
    word = os.fsdecode(data)
    (alone,) = gpu_select.encode_word(word)
    assert decode_word(alone) == word
    assert alone.isascii()
    assert alone.isprintable()
    assert " " not in alone
    assert alone not in ("", ":")
    assert alone[0] not in "-@" or len(alone) == 2
    assert (alone == word) == bool(gpu_select.PLAIN.fullmatch(word))
    assert gpu_select.is_binary(word) == (data != data.decode("utf-8", "replace").encode())


def test_bytes_that_are_no_utf8_are_noticed() -> None:
    words = ("", "a", "é", "\udcff", "a\udcffb", os.fsdecode("é".encode("latin-1")))
    assert [gpu_select.is_binary(word) for word in words] == [False] * 3 + [True] * 3


def test_gpus_need_a_number_on_the_node() -> None:
    with pytest.raises(UsageError, match="does not tell ranks their number on their node"):
        gpu_select.rank_prefix(AMD, PROGRAM, replace(NAMES, node=()))


def test_a_long_word_is_several() -> None:
    plain = "x" * gpu_select.MAX_WORD
    assert gpu_select.encode_word(plain) == (plain,)
    step = gpu_select.MAX_WORD // 3
    for word in (plain + "y", "é" * 30_000, "%" * step, "%" * (step + 1)):
        pieces = gpu_select.encode_word(word)
        assert all(piece.endswith("%+") for piece in pieces[:-1])
        assert max(map(len, pieces)) <= gpu_select.MAX_WORD + 1
        whole = "".join(piece.removesuffix("%+") for piece in pieces)
        assert decode_word(whole) == word
        due = -(-len(os.fsencode(word)) // step)
        assert len(pieces) == due


def test_nothing_chooses_among_the_gpus_once_more() -> None:
    dropped = {row.name for row in gpu_select.gpu_environment(AMD) if row.value is None}
    assert dropped == {"CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES"}
    (row,) = gpu_select.gpu_environment(NVIDIA)
    assert (row.name, row.value) == ORDER


def test_a_vendor_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match="no known variable gives a rank one GPU of moore"):
        gpu_select.gpu_environment(Placement((), (0,), "moore"))


def given_to(asked: str, placement: Placement, **more: Any) -> Launch:
    return launch(configuration("openmpi@5.0.11", asked), placement=placement, **more)


def test_gpu_select_runs_between_launcher_and_environment() -> None:
    found = given_to("ob1-sm", NVIDIA)
    at = found.argv.index("/n/mpigraft-gpu-select")
    due = "--rank OMPI_COMM_WORLD_LOCAL_RANK --set CUDA_VISIBLE_DEVICES=1/0 --"
    assert found.argv[at + 1 : at + 7] == (*due.split(), ENV)
    assert of_ranks(found)[ORDER[0]] == ORDER[1]
    assert not any("gpu-select" in word for word in given_to("ob1-sm", Placement()).argv)


def test_each_program_of_a_world_has_its_ranks_and_the_same_environment() -> None:
    """NEMO: 48 ocean tasks and 2 servers on each of two nodes."""
    servers = Group(2, ("/n/xios", "in.xml"))
    nodes = Allocation(("n1", "n2"), "--hosts")
    asked = {"layout": Layout(2, 50), "other_programs": (servers,), "allocation": nodes}
    programs, scripts = in_files(given_to("ob1-sm", Placement(), **asked))
    assert [re.search(r"-n (\d+) ", line)[1] for line in programs] == ["48", "2"] * 2  # type: ignore[index]
    ran = [scripts[Path(line.split()[-1]).name] for line in programs]
    assert ran == [ran[0], ran[1]] * 2
    assert ENV in ran[0]
    assert ran[0].removesuffix("/n/mpigraft-probe --buffers\n") == ran[1].removesuffix(
        "/n/xios in.xml\n"
    )


def in_files(asked: Launch) -> tuple[list[str], dict[str, str]]:
    """Lines of the list of programs, and the script of each by its name."""
    texts = {path.name: text for path, text in asked.files}
    return texts.pop("programs").splitlines(), texts


def test_crowded_programs_do_not_gather_on_the_first_node() -> None:
    """PRRTE 3.0.13 maps all of them there when it may oversubscribe; a host each keeps them."""
    nodes = Allocation(("n1", "n2"), "--hosts")
    asked = {"layout": Layout(2, 2), "other_programs": (Group(1, ("/n/io",)),), "allocation": nodes}
    asked_for = given_to("ob1-sm", Placement(), **asked, cores=1)
    mapping = asked_for.argv[asked_for.argv.index("--map-by") + 1]
    assert mapping.split(":") == ["slot", "OVERSUBSCRIBE"]
    programs, _ = in_files(asked_for)
    told = [re.search(r"--host (\S+) ", line)[1] for line in programs]  # type: ignore[index]
    assert told == ["n1:1", "n1:1", "n2:1", "n2:1"]


# ------------------------------------------------------------------ findings


def ranks(*cores: tuple[int, ...], hosts: int = 1, gpus: tuple[str, ...] = ()) -> list[RankRecord]:
    """One record for each tuple of CPUs, in turn on each host."""
    return [
        RankRecord(n, len(cores), f"n{n % hosts}", 100 + n, "", own, (), gpus=gpus)
        for n, own in enumerate(cores)
    ]


def said(layout: Layout, placement: Placement, *records: RankRecord) -> list[str]:
    return [found.message for found in bindings.check(layout, placement, records)]


def test_ranks_on_their_masks_are_no_finding() -> None:
    placement = Placement(((0, 4), (1, 5)))
    assert said(Layout(), placement, *ranks((0, 4), (1, 5))) == []
    one_thread = ranks((0,), (5,))  # what a scheduler hands out without hardware threads
    assert said(Layout(), placement, *one_thread) == []


def test_ranks_are_counted_on_each_node() -> None:
    placement = Placement(((0,), (1,)))
    dealt = ranks((0,), (0,), (1,), (1,), hosts=2)
    assert said(Layout(2, 2, map_by="node"), placement, *dealt) == []
    crossed = ranks((0,), (1,), (1,), (0,), hosts=2)
    (wrong,) = said(Layout(2, 2), placement, *crossed)
    one, other = wrong.split("; ")
    assert shows(one, "rank 1 on n1", "1 instead of 0")
    assert shows(other, "rank 3 on n1", "0 instead of 1")


def test_ranks_that_nobody_bound_are_reported() -> None:
    free = ranks(*[tuple(range(8))] * 8)
    placement = Placement(tuple((n,) for n in range(8)))
    wrong, shared = said(Layout(1, 8), placement, *free)
    assert shows(wrong, "rank 0 on n0", "0-7 instead of 0", "rank 1 on n0")
    assert shows(wrong.split(";")[-1], "4 more")
    assert matches(shared, "cores-shared", cores="0-7")
    assert len(said(Layout(1, 8, bind="none"), Placement(), *free)) == 0
    (pair,) = said(Layout(1, 3), Placement(), *ranks((0,), (1, 2), (2, 3)))
    assert matches(pair, "cores-shared", cores=2)


def test_a_domain_may_be_shared_where_that_was_asked_for() -> None:
    placement = Placement(((0, 1), (0, 1)))
    assert said(Layout(bind="numa"), placement, *ranks((0, 1), (0, 1))) == []


def test_a_rank_with_another_gpu_is_reported() -> None:
    right = [
        replace(rank, gpus=(f"ROCR_VISIBLE_DEVICES={4 + n}", "OTHER_VISIBLE_DEVICES=9"))
        for n, rank in enumerate(ranks((0,), (1,)))
    ]
    assert said(Layout(gpus=True), AMD, *right) == []
    all_of_them = ranks((0,), (1,), gpus=("ROCR_VISIBLE_DEVICES=0,1",))
    (wrong,) = said(Layout(gpus=True), AMD, *all_of_them)
    for n, one in enumerate(wrong.split("; ")):
        assert shows(one, f"rank {n} on n0", "ROCR_VISIBLE_DEVICES=0,1", AMD.gpus[n])
    (none, _) = said(Layout(gpus=True), AMD, *ranks((0,), (1,)))[0].split("; ")
    assert shows(none, "rank 0 on n0", "no ROCR_VISIBLE_DEVICES", "not ROCR_VISIBLE_DEVICES=4")


# ------------------------------------------------------------------ the rows


def test_rows_of_gpus_are_read() -> None:
    nodes = gpus.gpu_nodes()
    assert len(nodes) == len({node.id for node in nodes}) == 2
    for node in nodes:
        cpus = [cpu for near in node.nearest for cpu in near]
        assert len(cpus) == len(set(cpus)), f"{node.id}: a CPU is nearest to two GPUs"
        assert node.source
    assert [gpus.gpu_variables(vendor).id for vendor in ("nvidia", "amd")] == ["nvidia", "amd"]


ROW = {"id": "a", "what": "w", "gpu": ".*", "cpu": ".*", "nearest": ["0-1"], "source": "s"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"nearest": ["1-0"]}, "'1-0' is not FIRST-LAST"),
        ({"nearest": ["0"]}, "'0' is not FIRST-LAST"),
        ({"nearest": ["0-9999"]}, "is not FIRST-LAST"),
        ({"gpu": "("}, "not a regular expression"),
        ({"source": ""}, "key source: is empty"),
        ({"more": 1}, "unknown key"),
    ],
)
def test_a_wrong_row_is_refused(change: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_rows(gpus.GpuNode, "node", {"node": [{**ROW, **change}]}, "gpus.toml")
    with pytest.raises(UsageError, match="two rows are called a"):
        read_rows(gpus.GpuNode, "node", {"node": [ROW, ROW]}, "gpus.toml")
