"""Files of traced ranks: what is in them is read, what is damaged is refused with its place."""

from __future__ import annotations

import contextlib
import re
import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.trace.profile.node_file import HEADER, NAMES, RANK, START, Dropped, read_node_file
from tests.builders.traces import SLOT, ARank, node_file

ROOT = Path(__file__).resolve().parents[3]
FULL = ARank(
    rank=1,
    routines={"Send": (3, 300, 24, 0), "Alltoallv": (2, 5000, 4096, 900)},
    sizes={"Send": {4: (3, 24, 300)}},
    peers={(0, 0): (3, 24), (1, 1): (2, 4096)},
    sites=(("Send", 3, 300, 24, (0x4010, 0x4020)),),
    maps="4000-5000 r-xp 0 0:0 1 /opt/app\n",
)


def test_the_layout_is_that_of_the_header() -> None:
    """Each struct has the length that a C compiler gives the one of slot.h."""
    header = (ROOT / "src/mpigraft/native/trace/slot.h").read_text(encoding="utf-8")
    widths = {"uint32_t": 4, "int32_t": 4, "uint64_t": 8, "int64_t": 8, "double": 8, "char": 1}
    consts = {"SITE_FRAMES": 8}
    sizes = {}
    for name, text in re.findall(r"^struct (\w+) \{(.*?)^\};", header, re.MULTILINE | re.DOTALL):
        body = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        total = 0
        for kind, fields in re.findall(r"(\w+) ([^;]+);", body):
            for one in fields.split(","):
                count = re.search(r"\[(\w+)\]", one)
                total += widths[kind] * (int(consts.get(count[1], count[1])) if count else 1)
        sizes[name] = total
    from mpigraft.trace.profile import node_file as layout

    known = {
        "trace_file": layout.HEADER, "trace_rank": layout.RANK, "trace_routine": layout.ROUTINE,
        "trace_size": layout.SIZE, "trace_peer": layout.PEER, "trace_thread": layout.THREAD,
        "trace_site": layout.SITE,
    }  # fmt: skip
    assert {name: packed.size for name, packed in known.items()} == {n: sizes[n] for n in known}
    for name in ("TRACE_NAMES", "TRACE_START", "NAME_BYTES", "TRACE_VERSION"):
        value = re.search(rf"\b{name} = (\d+)", header)
        assert value
        assert int(value[1]) in (layout.NAMES, layout.START, layout.NAME_BYTES, layout.VERSION)


def test_ranks_that_had_no_room_do_not_cost_the_others(tmp_path: Path) -> None:
    path = tmp_path / "n1-0.trace"
    data = node_file([FULL, ARank(rank=1)])
    path.write_bytes(data[:-SLOT])
    (one,) = read_node_file(path)
    assert one.rank == FULL.rank
    path.write_bytes(data[: -SLOT + 8])
    with pytest.raises(UsageError):
        read_node_file(path)


def test_what_a_rank_counted_is_read(tmp_path: Path) -> None:
    path = tmp_path / "n1-0.trace"
    path.write_bytes(node_file([FULL, ARank(state=0), ARank(rank=0, threads=3, dropped=33)]))
    one, other = read_node_file(path)  # the slot in between was taken and not filled
    (thread,) = one.threads
    assert set(thread.routines) == {"Send", "Alltoallv"}
    assert thread.routines["Send"].sizes == ((4, 3, 24, 300),)
    assert thread.routines["Alltoallv"].waited == 900
    assert thread.peers == ((0, 0, 3, 24), (1, 1, 2, 4096))
    (site,) = one.sites
    assert (site.routine, site.frames) == ("Send", (0x4010, 0x4020))
    assert one.maps.startswith("4000-")
    assert one.program == "/opt/app\0input"
    assert len(other.threads) == 3
    assert other.dropped == Dropped.THREADS | Dropped.NO_DISK_SPACE


def damaged(offset: int, form: str, value: object) -> bytearray:
    data = node_file([FULL])
    struct.pack_into(form, data, offset, value)
    return data


THREADS = struct.Struct("<IIiiiiQQQdQQ").size  # offset of `threads` in a slot


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (damaged(0, "<4s", b"ELF!"), 0),
        (damaged(16, "<I", 9), 16),
        (damaged(20, "<I", 0), 20),
        (damaged(20, "<I", 100_000), 20),
        (damaged(24, "<Q", 8), 24),
        (damaged(32, "<Q", 1 << 60), 32),
        (damaged(NAMES, "<4s", b"\0\0\0\0"), NAMES),
        (damaged(NAMES, "<4s", b"a\x1b[2"), NAMES),
        (damaged(START, "<I", 7), START),
        (damaged(START + 8, "<i", 9), START + 8),
        (damaged(START + 48, "<d", float("nan")), START + 48),
        (damaged(START + 48, "<d", 1e-300), START + 48),
        (damaged(START + THREADS, "<Q", SLOT), START + SLOT),
        (damaged(START + THREADS, "<Q", RANK.size + 3), START + RANK.size + 3),
        (node_file([FULL])[: START - 1], 0),
        (node_file([FULL])[: START + RANK.size + 100], None),
        (bytearray(b"not a trace"), 0),
        (bytearray(), 0),
    ],
)
def test_a_damaged_file_is_refused_with_its_offset(
    tmp_path: Path, data: bytearray, offset: int | None
) -> None:
    path = tmp_path / "n1-0.trace"
    path.write_bytes(data)
    with pytest.raises(UsageError) as refused:
        read_node_file(path)
    assert str(path) in refused.value.message
    if offset is not None:
        assert f"offset {offset}:" in refused.value.message


def test_threads_in_a_circle_are_refused(tmp_path: Path) -> None:
    data = node_file([FULL])
    (first,) = struct.unpack_from("<Q", data, START + THREADS)
    struct.pack_into("<Q", data, START + first, first)
    path = tmp_path / "n1-0.trace"
    path.write_bytes(data)
    with pytest.raises(UsageError, match="circle"):
        read_node_file(path)


def test_no_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError):
            read_node_file(path)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    changes=st.lists(
        st.tuples(
            st.one_of(
                st.integers(0, HEADER.size),
                st.integers(START, START + RANK.size),
                st.integers(START, START + 8192),
            ),
            st.integers(0, 255),
        ),
        min_size=1,
        max_size=12,
    ),
    cut=st.one_of(st.none(), st.integers(0, START + 8192)),
)
def test_any_damage_is_refused_or_read(
    tmp_path: Path, changes: list[tuple[int, int]], cut: int | None
) -> None:
    data = node_file([FULL])
    for offset, value in changes:
        data[offset] = value
    path = tmp_path / "n1-0.trace"
    path.write_bytes(data[:cut] if cut is not None else data)
    with contextlib.suppress(UsageError):
        assert all(one.size >= 0 for one in read_node_file(path))
