"""The world of a job that was started, looked at while its ranks come.

As `start.py`, of the standard library and little of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Iterable

from mpigraft.run.foreground import DONE, END, GO_ON

TYPE_CHECKING = False  # typing itself takes five milliseconds
if TYPE_CHECKING:
    from typing import Any

    from mpigraft.run.cached.start import Document

MAX_DOCUMENT = 16 * 1024 * 1024  # bytes
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)  # of foreign JSON


class StartedWorld:
    """The ranks that have written records so far, read line by line as they come
    (native/witness/rank_record.h says what is in a line).

    It passes only what the full judgement (witness.check_witness) would pass, and leaves the
    rest to that. Each node's file is opened once, and each of its bytes is read once.
    """

    def __init__(self, document: Document, place: str) -> None:
        self.folder = place
        self.ranks: int = document["ranks"]
        self.nodes: int = document["nodes"]
        self.libmpi: list[Any] = document["libmpi"]  # path, device, inode, paths on other CPUs
        self.contents: list[str] = document["contents"]  # its names (native/witness/contents.c)
        self.far: bool = document["far"]  # ranks run under other kernels
        self.builds: dict[str, str] = {}  # content of each part of the MPI, by path
        self.name = re.compile(document["libmpi_name"])
        self.mark: str = document["mark"]  # a file of the generation of a stack
        self.networks: dict[str, list[list[Any]]] = document["networks"]
        self.network = re.compile(document["network_name"])
        self.judged: bool = document["proof"]
        self.files: dict[str, tuple[int, bytearray]] = {}  # handle, the line that is not whole
        self.common: dict[tuple[str, Any], Any] = {}  # by file and digest
        self.records: list[tuple[str, Any]] = []  # file, its line as an object
        self.ended = False
        self.on_course = False  # the first that entered MPI_Init did so in the library due

    def look(self) -> int:
        """For `attached`: whether this world can still become the one that was asked for."""
        if not self.judged:
            return DONE
        if self.whole():
            return DONE
        self.ended = self._spoiled() or self._astray()
        return END if self.ended else GO_ON

    def _spoiled(self) -> bool:
        """Return whether this world can no longer become right: a task's own process is wrong, or
        in every task one below it that the launcher connected. Others may be worlds of their
        own."""
        wrong = [record for record in self.records if self._fits(*record) is False]
        if any("task" not in line for _, line in wrong):
            return True
        return len(wrong) >= self.ranks and len(self._connected(wrong)) >= self.ranks

    def _connected(self, records: list[tuple[str, Any]]) -> list[Any]:
        """Return those of `records` that can be ranks of the launch, without other programs'."""
        from mpigraft.core.worlds import topmost

        own = {id(line) for _, line in records}
        top = topmost(self._lineages() or [])
        return [one for one in top if one.of_launcher and id(one.key[1]) in own]

    def entered(self) -> bool:
        """Return whether any rank came as far as MPI_Init."""
        return bool(self.records or listed(self.folder, "", ".entered"))

    def unfinished(self) -> bool:
        """Return whether more processes entered MPI_Init than came back from it. Below a task's own
        process alone: where each is the only one of its task, nothing is read for each rank."""
        if not any(isinstance(line, dict) and "task" in line for _, line in self.records):
            return False
        notes = (f"{self.folder}/{name}" for name in listed(self.folder, "", ".entered"))
        entered = 0
        for handle in map(open_regular, notes):
            with contextlib.suppress(OSError), os.fdopen(handle, "rb") as file:
                entered += sum(bool(line.strip()) for line in file)
        return entered > len(self.records)

    def _astray(self) -> bool:
        """Return whether one of the first that entered MPI_Init did so in another library than the
        one that was due: it may never come back to say so. Of other nodes paths say it alone: their
        files have other numbers."""
        if (self.far and self.libmpi[2]) or self.records or self.on_course:
            return False
        entered = [own for name in listed(self.folder, "", ".entered") if (own := self._due(name))]
        right = all(self._right(own, {}) for own in entered)
        self.on_course = len(entered) >= self.nodes and right
        return not right

    def _due(self, name: str) -> dict[tuple[int, int], str]:
        """Return the MPI libraries of the first process of a node that entered MPI_Init: of a
        task's own one, or where each rank of the node has entered, of one that the launcher
        connected."""
        handle = open_regular(f"{self.folder}/{name}")
        with contextlib.suppress(OSError, *UNREADABLE), os.fdopen(handle, "rb") as file:
            *lines, _ = file.read(1 << 16).split(b"\n")  # the last is not whole yet
            values = [json.loads(line) for line in filter(None, lines)]
            own = [value for value in values if "task" not in value]
            if not own and len(values) >= self.ranks / self.nodes:
                own = [value for value in values if value["task"]["connected"]]
            mapped = own[0]["libraries"] if own else []
            return {(device, inode): path for path, device, inode in mapped if self._is_mpi(path)}
        return {}

    def _is_mpi(self, path: str) -> bool:
        return bool(self.name.fullmatch(path.removesuffix(" (deleted)").rpartition("/")[2]))

    def whole(self) -> bool:
        """Return whether every rank of the requested world has a record, and all is right."""
        self._read()
        records = self._launched()
        good = [(file, line) for file, line in records if self._fits(file, line)]
        if len(good) != len(records) or any(rest for _, rest in self.files.values()):
            return False
        if sorted(line["rank"] for _, line in good) != list(range(self.ranks)):
            return False
        filled: dict[tuple[str, str], int] = {}
        for file, line in good:
            host = (file, self.common[file, line["map"]]["host"])
            filled[host] = filled.get(host, 0) + 1
        return len(filled) == self.nodes and len({*filled.values()}) == 1

    def _launched(self) -> list[tuple[str, Any]]:
        """Return the records of the launch's world: all, unless some process says that it is not
        the one that the launcher started (native/preload/task.h). All too where this takes the full
        judgement."""
        if not any(isinstance(line, dict) and "task" in line for _, line in self.records):
            return self.records
        from mpigraft.core.worlds import ALONE, LATER, sort_worlds

        lineages = self._lineages()
        if lineages is None:
            return self.records
        first, *others = sort_worlds(lineages, self.ranks)
        later = [one.key for world in others if world.kind == LATER for one in world.members]
        alone = any(world.kind == ALONE for world in others)
        if alone or not all(self._fits(*record) for record in later):
            return self.records
        return [one.key for one in first.members]

    def _lineages(self) -> list[Any] | None:
        """Return the records as the rule for worlds takes them; None: one cannot be read yet."""
        from mpigraft.core.worlds import make_lineage

        lineages = []
        with contextlib.suppress(*UNREADABLE):
            for file, line in self.records:
                shared = self.common[file, line["map"]]
                place = file, line["rank"], shared["size"]
                lineages.append(make_lineage((file, line), place, line, shared.get("program", "")))
            return lineages
        return None

    def _read(self) -> None:
        """Take in what has been written since the last look."""
        for name in listed(self.folder, "", ".ranks"):
            if name not in self.files:
                handle = open_regular(f"{self.folder}/{name}")
                self.files[name] = (handle, bytearray() if handle >= 0 else bytearray(b"?"))
        for name, (handle, rest) in self.files.items():
            while handle >= 0 and (block := os.read(handle, 1 << 20)):
                rest.extend(block)
            *lines, unfinished = rest.split(b"\n") if handle >= 0 else [rest]
            rest[:] = unfinished
            for line in filter(None, lines):
                self._take(name, bytes(line))

    def _take(self, file: str, line: bytes) -> None:
        value: Any = None
        with contextlib.suppress(ValueError, RecursionError, TypeError):
            value = json.loads(line)
            if isinstance(value, dict) and "libraries" in value:
                self.common.setdefault((file, value.get("map")), value)
        self.records.append((file, value))

    def _fits(self, file: str, line: Any) -> bool | None:
        """Return whether a record can be one of that world: its size, and the one libmpi. None:
        the line that it shares with others is not there yet, or it cannot be read."""
        try:
            shared = self.common.get((file, line["map"]))
            if shared is None:
                return None
            libraries = {
                (line["disks"][disk], inode): path
                for path, disk, inode in shared["libraries"]
                if self._is_mpi(path)
            }
            contents = {**shared.get("contents", {}), **shared.get("sums", {})}
            right = self._right(libraries, contents)
            whole = type(line["rank"]) is int and isinstance(shared["host"], str)
            if not (whole and shared["size"] == self.ranks and self._marked(shared["libraries"])):
                return False
            networks = self._networks_right(line["disks"], shared["libraries"], contents)
            if right and not (networks and self._alike(contents)):
                return None  # the full judgement tells which
            return right or (None if self.far and self.libmpi[2] else False)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            return None

    def _right(self, libraries: dict[tuple[int, int], str], contents: dict[str, str]) -> bool:
        """Return whether the MPI libraries of a rank are the one that was asked for: of several
        nodes by its content, since each may have another build at the same path."""
        path, device, inode, *elsewhere = self.libmpi
        if not inode:
            return len(libraries) == 1 and {path, *elsewhere}.issuperset(libraries.values())
        if self.far:
            return len(libraries) == 1 and contents.get(*libraries.values()) in self.contents
        return [*libraries] == [(device, inode)]

    def _marked(self, libraries: list[Any]) -> bool:
        """Return whether a rank has the generation of this node, and not another of the same
        number."""
        return not self.mark or any(path.endswith(f"/{self.mark}") for path, _, _ in libraries)

    def _alike(self, contents: dict[str, str]) -> bool:
        """Return whether the ranks that were read before have the same builds of the MPI's
        parts."""
        known = ((self.builds.setdefault(path, one), one) for path, one in contents.items())
        return not self.far or all(before == one for before, one in known)

    def _networks_right(
        self, disks: list[int], libraries: list[Any], contents: dict[str, str]
    ) -> bool:
        """Return whether of each network library that was due a rank mapped that one, if any."""
        matching: dict[str, bool] = {}
        for path, disk, inode in libraries:
            file = path.removesuffix(" (deleted)").rpartition("/")[2]
            hit = self.network.fullmatch(file) if "lib" in file else None
            if hit and (due := self.networks.get(hit[1])):
                if self.far:
                    same = any(contents.get(path) in row[2:] for row in due)
                else:
                    same = [disks[disk], inode] in due
                matching[hit[1]] = matching.get(hit[1], False) or same
        return all(matching.values())

    def remove(self) -> None:
        """Remove the records and their folder."""
        for handle, _ in self.files.values():
            if handle >= 0:
                os.close(handle)
        unlink_all(f"{self.folder}/{name}" for name in listed(self.folder, "", ""))
        with contextlib.suppress(OSError):
            os.rmdir(self.folder)  # noqa: PTH106


# ------------------------------------------------------------------ files


def open_regular(path: str, most: int = MAX_DOCUMENT) -> int:
    """Return a handle on a regular file of this user that nobody else may write; -1: there is
    none."""
    handle = -1
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        status = os.fstat(handle)
        private = status.st_uid == os.geteuid() and not status.st_mode & 0o022
        if stat.S_ISREG(status.st_mode) and private and status.st_size <= most:
            return handle
        os.close(handle)
    return -1


def listed(place: str, begin: str, end: str) -> list[str]:
    """Return names in a folder that begin and end so: files that are looked for by a pattern."""
    try:
        names = os.listdir(place)  # noqa: PTH208
    except OSError:
        return []
    return sorted(n for n in names if n.startswith(begin) and n.endswith(end))


def unlink_all(paths: Iterable[str]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108
