"""What a program and its replay call of MPI, as the tracing library counts it: calls and bytes of
each routine of each rank, and what each rank gives to each other one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mpigraft.core.model import Family
from mpigraft.core.process.command import Completed
from mpigraft.native.programs import REPLAY, TRACE
from mpigraft.trace import collect_ranks
from mpigraft.trace.profile.node_file import RankSlot, read_node_file
from mpigraft.trace.record.prepared import prepare
from mpigraft.trace.record.rank_file import read_rank
from tests.native.native_world import World, abi_of

# Their number depends on timing; and what begins and ends a run.
TIMED = frozenset((
    "Test", "Testall", "Testany", "Testsome", "Waitsome", "Iprobe", "Improbe", "Win_test",
    "Request_get_status", "Init", "Init_thread", "Finalize",
))  # fmt: skip
# Not repeated, or under another name: docs/howto/replay.md says which.
OTHERS = {"Comm_split_type": "Comm_split"}
Key = tuple[object, ...]


def traced(
    world: World,
    family: Family,
    folder: Path,
    *words: str | Path,
    ranks: int,
    options: str,
    fine: bool = True,
) -> Completed:
    """Run a program with the tracing library; its files lie in `folder`. `fine`: it ends well."""
    folder.mkdir()
    trace = world.programs / abi_of(family) / TRACE
    more = {"LD_PRELOAD": str(trace), "MPIGRAFT_TRACE": str(folder)}
    more["MPIGRAFT_TRACE_OPTIONS"] = options
    # MPICH 5.0.2's ch4:ucx loses messages to MPI_ANY_SOURCE where it does not use shared memory,
    # as more ranks than processors do not.
    more |= {"MPIR_CVAR_CH4_NETMOD": "ofi"} if family is Family.MPICH else {}
    done = world.launch(family, *words, ranks=ranks, env=more)
    assert done.ok or not fine, done.text()
    return done


def record_parts(folder: Path, ranks: int) -> list[bytes]:
    """What each rank recorded."""
    parts, notes = collect_ranks(folder, ranks)
    assert (len(parts), notes) == (ranks, ())
    return list(parts)


def counts(folder: Path, routines: frozenset[str]) -> Counter[Key]:
    """Calls and bytes of `routines` by rank, and messages and bytes between ranks."""
    found: Counter[Key] = Counter()
    for path in folder.glob("*.trace"):
        for slot in read_node_file(path):
            _add(found, slot, routines)
    assert found, f"no counts in {folder}"
    return found


def _add(found: Counter[Key], slot: RankSlot, routines: frozenset[str]) -> None:
    for thread in slot.threads:
        for called, row in thread.routines.items():
            name = OTHERS.get(called, called)
            if name in routines and name not in TIMED:
                found[slot.rank, name, "calls"] += row.calls
                found[slot.rank, name, "bytes"] += row.bytes
        for peer, kind, messages, size in thread.peers:
            found[slot.rank, peer, kind, "messages"] += messages
            found[slot.rank, peer, kind, "bytes"] += size


def differences(
    world: World,
    family: Family,
    folder: Path,
    *words: str | Path,
    ranks: int,
    options: tuple[str, ...] = (),
) -> dict[Key, tuple[int, int]]:
    """Where a program's counts and those of its replay with `options` differ: (program, replay).
    Both are of one run of the program, so that one whose calls depend on timing can be compared."""
    traced(world, family, folder / "program", *words, ranks=ranks, options="record,budget=64")
    parts = record_parts(folder / "program", ranks)
    file = folder / "prepared"
    file.write_bytes(prepare(parts, abi_of(family)))
    program = world.programs / abi_of(family) / REPLAY
    replay: list[str | Path] = [program, file, "--gaps", "none", *options]
    traced(world, family, folder / "replay", *replay, ranks=ranks, options="")
    kept = frozenset(one.name for one in read_rank(parts[0]).routines if one.fields)
    one, other = (counts(folder / name, kept) for name in ("program", "replay"))
    return {key: (one[key], other[key]) for key in one | other if one[key] != other[key]}
