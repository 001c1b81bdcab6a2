"""Rules files of Open MPI's collective algorithms, which it ignores without a word where they are
malformed. Format: Open MPI's docs/tuning-apps/collectives/tuned.rst and ompi/mca/coll/tuned/
coll_tuned_dynamic_file.c.

Words are whole numbers, `#` begins a comment. From 5.0.7 on a file may begin with
rule-file-version-2, with nothing before it. Then: how many collectives; of each its id and how many
communicator sizes; of each the size and how many rules; of each rule bytes, algorithm, topology,
segment, and in version 2 most requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Family, MpiInstall, SettingFile
from mpigraft.knowledge import version_numbers

VARIABLE = "OMPI_MCA_coll_tuned_dynamic_rules_filename"
FIRST_WORD = "rule-file-version-2"
SECOND_FROM, JSON_FROM = (5, 0, 7), (6,)
COLLECTIVES = range(22)  # ids of ompi/mca/coll/base/coll_base_functions.h


def refuse_rules(file: SettingFile, mpi: MpiInstall) -> None:
    """Raise UsageError, with file and line, for rules that this Open MPI would ignore. Nothing for
    another file or family."""
    if file.variable != VARIABLE or mpi.family is not Family.OPENMPI:
        return
    version = version_numbers(mpi.version)
    if file.text.lstrip().startswith("{"):
        if version < JSON_FROM:
            _refuse(file, mpi, 1, "it is JSON, which Open MPI reads from 6.0 on")
        return
    words = list(_words(file.text))
    fields = 4
    if file.text.startswith(FIRST_WORD):
        if version < SECOND_FROM:
            _refuse(file, mpi, 1, "its format is version 2, which Open MPI reads from 5.0.7 on")
        fields, words = 5, words[1:]
    reader = _Reader(file, mpi, words)
    for _ in range(reader.number("how many collectives", least=0)):
        identity = reader.number("the id of a collective")
        if identity not in COLLECTIVES:
            reader.refuse(f"{identity} is no id of a collective")
        for _ in range(reader.number("how many communicator sizes")):
            reader.number("a communicator size")
            last = -1
            for _ in range(reader.number("how many rules", least=1)):
                size = reader.number("bytes of a rule")
                if (last < 0 and size) or size <= last:
                    reader.refuse("rules begin at 0 bytes and ascend")
                last = size
                for _ in range(fields - 1):
                    reader.number("algorithm, topology, segment or requests of a rule")
    reader.end()


class _Reader:
    """Takes one number after the other; an error names file and line."""

    def __init__(self, file: SettingFile, mpi: MpiInstall, words: list[tuple[int, str]]) -> None:
        self.file, self.mpi, self.words, self.place = file, mpi, words, 0

    def number(self, what: str, least: int = 0) -> int:
        if self.place >= len(self.words):
            self.refuse(f"it ends where {what} has to come")
        _, word = self.words[self.place]
        self.place += 1
        if not (word.isascii() and word.isdecimal()) or int(word) < least:
            self.refuse(f"{word!r} is not {what}")
        return int(word)

    def end(self) -> None:
        if self.place < len(self.words):
            self.place += 1
            self.refuse("more follows than its counts say")

    def refuse(self, problem: str) -> None:
        line = self.words[self.place - 1][0] if self.words and self.place else 1
        _refuse(self.file, self.mpi, line, problem)


def _words(text: str) -> Iterator[tuple[int, str]]:
    for line, row in enumerate(text.splitlines(), 1):
        for word in row.partition("#")[0].split():
            yield line, word


def _refuse(file: SettingFile, mpi: MpiInstall, line: int, problem: str) -> None:
    place = f"{Path(file.path)}:{line}"
    raise UsageError.of("setting-rules-invalid", place=place, problem=problem, id=mpi.id)
