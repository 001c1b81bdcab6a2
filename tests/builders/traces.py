"""Node files of traced ranks, as native/trace/slot.h lays them out."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mpigraft.trace.profile.node_file import (
    HEADER,
    MAGIC,
    MIXED,
    NAME_BYTES,
    NAMES,
    PEER,
    RANK,
    ROUTINE,
    SITE,
    SITES,
    SIZE,
    SIZE_CLASSES,
    START,
    THREAD,
    VERSION,
)

ROUTINES = ("Init", "Send", "Recv", "Alltoallv", "Barrier", "Startall", "Finalize")
SPEED = 1e9  # ticks a second
SLOT = 1 << 20


@dataclass
class ARank:
    """One rank; times in ticks. `routines` is {name: (calls, ticks, bytes, waited)}."""

    rank: int = 0
    size: int = 2
    began: int = 1000
    ended: int = 1_000_001_000
    began_ns: int = 1_700_000_000_000_000_000
    state: int = 2
    dropped: int = 0
    speed: float = SPEED
    routines: Mapping[str, tuple[int, int, int, int]] = field(default_factory=dict)
    sizes: Mapping[str, Mapping[int, tuple[int, int, int]]] = field(default_factory=dict)
    mixed: Mapping[str, tuple[int, int, int, int, int]] = field(default_factory=dict)
    peers: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    sites: Iterable[tuple[str, int, int, int, tuple[int, ...]]] = ()
    maps: str = ""
    program: str = "/opt/app\0input\0"
    current: str = ""
    entered: int = 0
    threads: int = 1
    paused: tuple[int, int] = (0, 0)  # ticks, and since when
    paused_before: int = 0  # ticks, at `entered`
    task: Mapping[str, object] | None = (
        None  # as native/preload/task.h; None: it is the task's own process
    )

    def slot(self, names: tuple[str, ...] = ROUTINES) -> bytes:
        data = bytearray(SLOT)
        used = -(-RANK.size // 8) * 8

        def take(block: bytes) -> int:
            nonlocal used
            place = used
            data[place : place + len(block)] = block
            used += -(-len(block) // 8) * 8
            return place

        peers = bytearray(PEER.size * 3 * self.size)
        for (target, kind), counts in self.peers.items():
            PEER.pack_into(peers, (target * 3 + kind) * PEER.size, *counts)
        chain = 0
        for number in range(self.threads):
            rows = []
            for name in names:
                classes = self.sizes.get(name, {})
                table = bytearray(SIZE.size * SIZE_CLASSES)
                for k, one in classes.items():
                    SIZE.pack_into(table, k * SIZE.size, *one)
                routines = {} if number and name == "Init" else self.routines
                calls, ticks, total, waited = routines.get(name, (0, 0, 0, 0))
                place = take(bytes(table)) if classes else 0
                mixed = take(MIXED.pack(*self.mixed[name])) if name in self.mixed else 0
                rows.append(ROUTINE.pack(calls, ticks, total, waited, ticks, 0, place, mixed))
            block = take(bytes(peers)) if self.peers else 0
            current = names.index(self.current) + 1 if self.current else 0
            paused = self.paused_before
            head = THREAD.pack(chain, 100 + number, current, self.entered, block, paused, 0, 0)
            chain = take(head + b"".join(rows))
        sites = 0
        if self.sites:
            table = bytearray(SITE.size * SITES)
            for k, (name, calls, ticks, total, frames) in enumerate(self.sites):
                full = (*frames, *[0] * (8 - len(frames)))
                SITE.pack_into(table, k * SITE.size, names.index(name), calls, ticks, total, *full)
            sites = take(bytes(table))
        maps, program = self.maps.encode(), self.program.encode()
        texts = (take(maps) if maps else 0, len(maps), take(program), len(program))
        task = json.dumps({"pid": 4000 + self.rank} | ({"task": self.task} if self.task else {}))
        RANK.pack_into(
            data, 0, self.state, self.dropped, self.rank, self.size, 4000 + self.rank, 0,
            self.began, self.ended, self.began_ns, self.speed, 20, used, chain, sites, *texts, 0,
            *self.paused, take(task.encode()), len(task),
        )  # fmt: skip
        return bytes(data)


def node_file(ranks: Iterable[ARank], names: tuple[str, ...] = ROUTINES) -> bytearray:
    slots = [one.slot(names) for one in ranks]
    data = bytearray(START) + b"".join(slots)
    HEADER.pack_into(data, 0, MAGIC, VERSION, len(names), SLOT, len(slots))
    for k, name in enumerate(names):
        struct.pack_into(f"{NAME_BYTES}s", data, NAMES + k * NAME_BYTES, name.encode())
    return data


def write_node(folder: Path, host: str, ranks: Iterable[ARank]) -> Path:
    path = folder / f"{host}-0123456789abcdef.trace"
    path.write_bytes(node_file(ranks))
    return path
