"""A rank's own connections: the walk over its open files, the kernel's counts, routes and pairs."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.model import Family
from mpigraft.native.programs import PROBE
from tests.native.native_world import World, compile_c, compile_part

SANITIZED = ("-Wshadow", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
SENT = 100_000
IPV6 = Path("/proc/net/if_inet6")
LOOPBACK6 = "00000000000000000000000000000001"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("sockets") / "sockets"
    return compile_c("sockets.c", output, *SANITIZED)


@pytest.fixture(scope="module")
def in_fake_proc(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A program that reads another folder in the place of /proc/self, and that folder."""
    folder = tmp_path_factory.mktemp("proc")
    define = f'-DPROC_SELF="{folder}/self"'
    return compile_c("sockets.c", folder / "sockets", *SANITIZED, define), folder


def acted(program: Path, *words: str, stdin: int = subprocess.PIPE) -> dict[str, Any]:
    done = subprocess.run(
        [program, *words], stdin=stdin, capture_output=True, text=True, timeout=60, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize(
    ("how", "address"), [("v4", "127.0.0.1"), ("v6", "::1"), ("mapped", "127.0.0.1")]
)
def test_each_end_has_its_bytes(program: Path, how: str, address: str) -> None:
    """Two ends of one connection, both here; the first byte of one may be its handshake's."""
    if how != "v4" and not IPV6.exists():
        pytest.skip("this kernel has no IPv6")
    if how == "v6" and LOOPBACK6 not in IPV6.read_text():
        pytest.skip("the loopback has no address of IPv6 here")
    result = acted(program, how, "begin", "send", "end")
    assert (result["count"], result["gap"]) == (2, "")
    assert SENT <= result["sent"] <= SENT + 1
    assert result["received"] == SENT
    assert result["local"][0] == result["peer"][0] == address
    assert result["local"][1] != result["peer"][1]
    assert result["route"] == result["address"] == "lo"


def test_what_was_sent_before_is_not_counted(program: Path) -> None:
    result = acted(program, "v4", "send", "begin", "end")
    assert (result["count"], result["sent"], result["received"], result["gap"]) == (2, 0, 0, "")


def test_a_new_connection_counts_from_its_start(program: Path) -> None:
    result = acted(program, "begin", "v4", "send", "end")
    assert (result["count"], result["gap"]) == (2, "")
    assert SENT <= result["sent"] <= SENT + 1
    assert result["received"] == SENT


def test_a_connection_that_is_closed_takes_its_count_along(program: Path) -> None:
    result = acted(program, "v4", "begin", "send", "close", "end")
    assert result["gap"] == "a connection was closed meanwhile"
    assert SENT <= result["received"] <= SENT + 1  # and the word that it is closed
    result = acted(program, "v4", "begin", "strangers", "send", "close", "end")
    assert result["gap"] == ""  # to a daemon, whose bytes count for nothing
    result = acted(program, "v4", "begin", "close", "end", "begin", "end")
    assert (result["count"], result["gap"]) == (1, "")


def test_many_and_several_descriptors_of_one(program: Path) -> None:
    result = acted(program, "v4", "dup", "begin", "dup", "send", "dup", "end")
    assert (result["count"], result["received"], result["gap"]) == (2, SENT, "")
    result = acted(program, "many", "begin", "send", "many", "send", "end")
    assert (result["count"], result["received"], result["gap"]) == (400, 2 * SENT, "")


@pytest.mark.parametrize("word", ["unix", "idle-udp", "listen", "v4"])
def test_what_carries_nothing_leaves_no_gap(program: Path, word: str) -> None:
    assert acted(program, word, "begin", "end")["gap"] == ""


@pytest.mark.parametrize(
    ("word", "gap"),
    [
        ("udp", "a rank has sockets that are not TCP (UDP, SCTP, raw)"),
        ("child", "a rank has child processes, which may have connections"),
        ("refused", "the kernel does not count the bytes of a connection"),
        ("short", "the kernel does not count the bytes of a connection"),
    ],
)
def test_what_the_walk_cannot_see_is_a_gap(program: Path, word: str, gap: str) -> None:
    assert acted(program, "v4", word, "begin", "end")["gap"] == gap
    assert acted(program, "v4", "begin", word, "end")["gap"] == gap


@pytest.mark.parametrize("word", ["refused", "short", "zeros"])
def test_a_kernel_that_does_not_count_is_tried_first(program: Path, word: str) -> None:
    assert acted(program, "counts")["counts"]
    result = acted(program, word, "counts", "v4", "begin", "send", "end")
    assert not result["counts"]
    assert result["gap"] == "the kernel does not count the bytes of a connection"


# ------------------------------------------------------------------ another /proc


def test_without_a_list_of_open_files_nothing_is_known(in_fake_proc: tuple[Path, Path]) -> None:
    program, _ = in_fake_proc
    result = acted(program, "v4", "begin", "end")
    assert (result["count"], result["gap"]) == (0, "a rank cannot list its open files")


FILES: Mapping[str, str] = {
    "/dev/infiniband/uverbs0": "a rank has an RDMA device open",
    "anon_inode:[io_uring]": "a rank uses io_uring, which may have connections of its own",
    "anon_inode:[eventpoll]": "",
    "/dev/null": "",
    "/dev/infiniband/rdma_cm": "",
}


@pytest.mark.parametrize("target", FILES)
def test_files_with_ways_of_their_own(in_fake_proc: tuple[Path, Path], target: str) -> None:
    """The first file is a device; names that are no open file's are passed over."""
    program, folder = in_fake_proc
    fd, thread = folder / "self/fd", folder / "self/task/7"
    fd.mkdir(parents=True)
    thread.mkdir(parents=True)
    try:
        (fd / "0").symlink_to(target)
        for name in ("999", "x1", "-1", "99999999999", "77 "):
            (fd / name).symlink_to("/dev/infiniband/uverbs0")
        (thread / "children").write_text("")
        with Path(os.devnull).open() as nothing:
            result = acted(program, "begin", "end", stdin=nothing.fileno())
            assert result["gap"] == FILES[target]
            (thread / "children").write_text("4711 ")
            other = acted(program, "begin", "end", stdin=nothing.fileno())
        assert other["gap"] == (
            FILES[target] or "a rank has child processes, which may have connections"
        )
    finally:
        for path in (*fd.iterdir(), thread / "children"):
            path.unlink()
        for empty in (fd, thread, thread.parent, folder / "self"):
            empty.rmdir()


# ------------------------------------------------------------------ routes

NEWROUTE, OIF, SEQUENCE = 24, 4, 7


def answer(*attributes: tuple[int, bytes], kind: int = NEWROUTE, sequence: int = SEQUENCE) -> bytes:
    """A netlink message about a route: header, rtmsg, and attributes padded to four bytes."""
    body = bytes(12)
    for number, data in attributes:
        body += struct.pack("=HH", 4 + len(data), number) + data + bytes(-len(data) % 4)
    return struct.pack("=IHHII", 16 + len(body), kind, 0, sequence, 0) + body


def test_the_interface_is_read_from_any_answer(tmp_path: Path) -> None:
    """Whole answers, answers to another question, and each of them cut short or damaged."""
    program = compile_c("routes.c", tmp_path / "routes", *SANITIZED, "-Wno-unused-function")
    index = struct.pack("=I", 3)
    known = [
        (answer((15, bytes(4)), (1, bytes(16)), (OIF, index)), 3),
        (answer((OIF, index), (8, bytes(3))), 3),
        (answer((1, bytes(4))), 0),
        (answer((OIF, b"ab")), 0),
        (answer((OIF, index), kind=2), 0),  # an error
        (answer((OIF, index), sequence=8), 0),
        (b"", 0),
    ]
    choice = random.Random(6)
    damaged = [data[:end] for data, _ in known for end in range(len(data))]
    for data, _ in known[:-1]:
        for _ in range(200):
            copy = bytearray(data)
            copy[choice.randrange(len(copy))] = choice.randrange(256)
            damaged.append(bytes(copy))
    answers_ = [*(data for data, _ in known), *damaged]
    done = subprocess.run(
        [program], input=b"".join(struct.pack("=I", len(a)) + a for a in answers_),
        capture_output=True, check=True,
    )  # fmt: skip
    result = [int(line) for line in done.stdout.split()]
    assert result[: len(known)] == [index for _, index in known]
    assert len(result) == len(answers_)


# ------------------------------------------------------------------ hosts together

Counted = tuple[int, str, int, int]  # host, interface, sent by its counter, sent by own connections


def together(counted: list[Counted]) -> dict[str, tuple[int, int, int, int]]:
    """Of each interface: sent, what the host sent that sent least, own, and what a counter lacks.
    A host without the interface sent nothing through it."""
    expected = {}
    hosts = range(max(row[0] for row in counted) + 1)
    for name in dict.fromkeys(row[1] for row in counted):
        sent = [sum(r[2] for r in counted if (r[0], r[1]) == (host, name)) for host in hosts]
        mine = [r for r in counted if r[1] == name]
        lacking = max(0, *(own - by for _, _, by, own in mine))
        expected[name] = (sum(sent), min(sent), sum(r[3] for r in mine), lacking)
    return expected


def test_a_counter_that_shows_less_on_one_host_is_not_made_up_for_by_others(
    tmp_path: Path,
) -> None:
    program = compile_c("wires.c", tmp_path / "wires", *SANITIZED, "-Wno-unused-function")
    choice = random.Random(5)
    tries: list[list[Counted]] = [[(0, "e0", 10, 9), (1, "e0", 3, 8), (1, "e1", 5, 5)]]
    for _ in range(50):
        names = [(host, name) for host in range(4) for name in ("e0", "e1", "lo")]
        some = choice.sample(names, choice.randrange(1, len(names)))
        hosts = {0, *(host for host, _ in some)}
        some += [(host, "lo") for host in range(max(hosts)) if (host, "lo") not in some]
        tries.append(
            [(*n, choice.randrange(99), choice.randrange(99)) for n in dict.fromkeys(some)]
        )
    for counted in tries:
        text = "".join(f"{host} {name} 0 {sent} {own}\n" for host, name, sent, own in counted)
        done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
        rows = [line.split() for line in done.stdout.splitlines()]
        assert {row[0]: tuple(map(int, row[1:])) for row in rows} == together(counted)


# ------------------------------------------------------------------ whose ends meet


def answers(ends: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    """The other end of each (key, host, rank, side), as it is to be."""
    expected = []
    for key, _, _, side in ends:
        other = [e for e in ends if e[0] == key and e[3] != side]
        best = (min if side else max)(other, key=lambda e: e[2], default=None)
        expected.append((best[2], best[1]) if best else (-1, 0))
    return expected


@pytest.mark.mpi
def test_ends_that_meet_find_each_other(world: World, tmp_path: Path) -> None:
    prefix = world.mpis[Family.MPICH]
    words = (*SANITIZED, "-Wno-unused-function", "-isystem", prefix / "include",
             prefix / "lib/libmpi.so.12", "-Wl,--allow-shlib-undefined")  # fmt: skip
    program = compile_part(PROBE, "ends.c", tmp_path / "ends", *words)
    choice = random.Random(4)
    for count in (0, 1, 2, 3, 50, 1000):
        keys = [0, 1, 2**64 - 1, *(choice.getrandbits(64) for _ in range(count // 3))]
        ends = [
            (choice.choice(keys), choice.getrandbits(64), choice.randrange(9), choice.randrange(2))
            for _ in range(count)
        ]
        ends = list({(e[0], e[2], e[3]): e for e in ends}.values())  # a rank holds an end once
        text = "".join(f"{key} {host} {rank} {side}\n" for key, host, rank, side in ends)
        done = subprocess.run(
            [program], input=text, capture_output=True, text=True, check=True,
            env={**world.environment(Family.MPICH), "ASAN_OPTIONS": "detect_leaks=0"},
        )  # fmt: skip
        result = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
        assert result == answers(ends)
