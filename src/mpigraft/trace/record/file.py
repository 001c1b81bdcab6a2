"""The file of a record: what all ranks recorded, and where it comes from.

A line that names the format, a line of JSON, and the ranks' records one after the other,
compressed together, since ranks resemble each other. The same record gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mpigraft.core.budget import Budget
from mpigraft.core.errors import UsageError
from mpigraft.core.text import join_some
from mpigraft.core.worlds import LAUNCH, list_worlds
from mpigraft.trace.profile.counted import read_counts
from mpigraft.trace.profile.worlds import sort_counts
from mpigraft.trace.record.coding import Damage, read_call
from mpigraft.trace.record.rank_file import read_rank
from mpigraft.trace.record.values import ABIS, CallRecord, Provenance

FIRST = b"mpigraft application record 1\n"
DIFFERS = "the ranks' records are not as long as its second line says"
MARKS = {"Finalize", "Pcontrol"}  # that a replay calls for itself, or not
FAMILIES = ("p2p", "onesided")  # of routines, as a replay names them


@dataclass(frozen=True, slots=True)
class RecordFile:
    """A record's file, read: `parts` are the ranks' records as bytes, `digest` the SHA-256, hex,
    of the file; empty before there is one."""

    parts: tuple[bytes, ...]
    provenance: Provenance
    digest: str = ""

    def match_routines(self, words: str, path: Path) -> str:
        """Return the names of a list as a replay takes them, with commas: those of routines that
        the record has, in any case and with or without MPI_, or of FAMILIES. Raises UsageError."""
        known = {name.lower(): name for name in self._routines(path)}
        known |= {name: name for name in FAMILIES}
        names = words.replace(",", " ").split()
        chosen = [known.get(name.lower().removeprefix("mpi_")) for name in names]
        for name, one in zip(names or [words], chosen or [None], strict=True):
            if one is None:
                listed = ", ".join(sorted(known.values(), key=str.lower))
                raise UsageError.of("replay-only", path=path, name=name, known=listed)
        return ",".join(filter(None, chosen))

    def _routines(self, path: Path) -> frozenset[str]:
        names = {
            read_call(text, rank.routines).routine.name
            for rank in read_record(self, path).ranks
            for text in rank.signatures
        }
        return frozenset(names - MARKS)


def write_record(parts: Sequence[bytes], provenance: Provenance) -> bytes:
    """Return the file for the records of all ranks, in their order."""
    import lzma  # some sites' Python lacks it

    body = lzma.compress(b"".join(parts), preset=6)
    head = {
        "parts": [len(part) for part in parts],
        "sha256": hashlib.sha256(body).hexdigest(),
        **asdict(provenance),
    }
    return FIRST + json.dumps(head, sort_keys=True).encode("ascii") + b"\n" + body


def read_record_file(path: Path) -> RecordFile:
    """Read the file of a record. Raises UsageError for one that is damaged or no such file."""
    try:
        with path.open("rb") as file:
            data = file.read(len(FIRST))
            if data != FIRST:  # of a device, what follows may have no end
                raise UsageError.of("record-foreign", path=path)
            data += file.read()
    except OSError as error:
        raise UsageError.of("record-unreadable", path=path, reason=error.strerror) from error
    try:
        return _read(data, Budget(path, len(data)))
    except Damage as error:
        raise UsageError.of("record-damaged", path=path, reason=str(error)) from error


def _read(data: bytes, budget: Budget) -> RecordFile:
    line, _, body = data[len(FIRST) :].partition(b"\n")
    try:
        head = json.loads(line)
        lengths = [int(length) for length in head.pop("parts")]
        digest = head.pop("sha256")
        provenance = Provenance(**{**head, "notes": tuple(head["notes"])})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damage("its second line is no head of a record") from error
    if hashlib.sha256(body).hexdigest() != digest:
        raise Damage(f"what follows byte {len(data) - len(body)} is not what was written")
    if provenance.abi not in ABIS or not lengths or min(lengths) < 0:
        raise Damage("its second line has no ranks, or an unknown ABI")
    budget.take(unpacked=sum(lengths))
    parts = tuple(_unpack(body, lengths))
    return RecordFile(parts, provenance, hashlib.sha256(data).hexdigest())


def _unpack(body: bytes, lengths: Sequence[int]) -> Iterator[bytes]:
    """Unpack the ranks' records, and nothing that is longer than they. Raises Damage."""
    import lzma

    engine = lzma.LZMADecompressor()
    try:
        for length in lengths:
            part = b"" if engine.eof else engine.decompress(body, length)
            if len(part) != length:
                raise Damage(DIFFERS)
            body = b""  # the engine has it
            yield part
        if not engine.eof and engine.decompress(b"", 1):
            raise Damage(DIFFERS)
    except lzma.LZMAError as error:
        raise Damage(str(error)) from error


def read_record(file: RecordFile, path: Path) -> CallRecord:
    """Return the ranks of a file as values. Raises UsageError."""
    ranks = []
    for number, part in enumerate(file.parts):
        try:
            rank = read_rank(part)
            for text in rank.signatures:
                read_call(text, rank.routines)
        except Damage as error:
            reason = f"rank {number}: {error}"
            raise UsageError.of("record-damaged", path=path, reason=reason) from error
        if (rank.rank, rank.size) != (number, len(file.parts)):
            reason = f"part {number} is of rank {rank.rank} of {rank.size}"
            raise UsageError.of("record-damaged", path=path, reason=reason)
        ranks.append(rank)
    return CallRecord(tuple(ranks), file.provenance)


def collect_ranks(folder: Path, ranks: int = 0) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
    """Read the files of a launch's ranks in a folder, in their order, and notes about what
    of the job is not in it. `ranks` were requested; 0: as many as its largest world has. Raises
    UsageError where it is not what ranks write, or not of all of them."""
    worlds = sort_counts(read_counts(folder), ranks)
    if not worlds or worlds[0].kind != LAUNCH:
        return (), ()
    size, parts = worlds[0].size, {}
    for _, slot in worlds[0].rows:
        path = folder / f"{slot.lineage.key}.record"
        if path.exists():
            parts[slot.rank] = path.read_bytes()
    lacking = [rank for rank in range(size) if rank not in parts]
    if parts and lacking:
        raise UsageError.of("record-incomplete", lacking=len(lacking), size=size, first=lacking[0])
    files: Counter[str] = Counter()
    for _, slot in worlds[0].rows:
        for thread in slot.threads:
            files.update({n: row.calls for n, row in thread.routines.items() if n[:5] == "File_"})
    notes = _lacking([world.label for world in worlds[1:]], files)
    return tuple(parts[rank] for rank in sorted(parts)), tuple(notes)


def _lacking(others: Sequence[tuple[str, int, str]], files: Counter[str]) -> Iterator[str]:
    """Yield what no replay makes: other worlds, and what the ranks read and wrote."""
    if others:
        yield f"other worlds of the job are not recorded: {list_worlds(others)}"
    if files:
        named = join_some([f"{count} of {name}" for name, count in files.most_common()], 8, ", ")
        yield f"MPI-IO is not recorded, and a replay leaves it out: {named}"
