"""Bytes of data in a datatype, from how a program made it."""

from __future__ import annotations

import math
from typing import Any

from mpigraft.trace.record.values import RecordedCall

# Of the predefined datatypes, in the order of PREDEFINED_TYPES (native/calls/record_file.h), for
# compilers of 64-bit Linux.
PREDEFINED = (
    1, 1, 1, 1, 4, 2, 2, 4, 4, 8, 8, 4, 8, 16, 8, 8, 1, 8, 12, 12, 8, 6, 20, 1, 2, 4, 8, 1, 2, 4,
    8, 8, 8, 8, 1, 8, 16, 32, 1, 4, 4, 4, 8, 8, 16, 1, 2, 4, 8, 4, 8, 16, 8, 16, 32, 8, 8, 16,
    1, 8, 16, 32,
)  # fmt: skip
BYTE = -4  # MPI_BYTE, as a record names it


class TypeSizes:
    """Sizes of datatypes by their number in a record, as its calls make them."""

    def __init__(self) -> None:
        self._made: dict[int, int] = {}

    def of(self, number: int) -> int:
        """Return bytes; 0 for a datatype that is not known (a distributed array's, or none)."""
        if number < 0:
            return PREDEFINED[-1 - number] if -1 - number < len(PREDEFINED) else 0
        return self._made.get(number, 0)

    def note(self, call: RecordedCall) -> None:
        """Take in a call that makes a datatype."""
        if not call.routine.name.startswith("Type_") or "A" not in call.routine.fields:
            return
        (new,) = call.of("A")
        assert isinstance(new, int)
        self._made[new] = self._size(call.routine.name, call.values)

    def _size(self, name: str, values: tuple[Any, ...]) -> int:
        match name.removeprefix("Type_").removeprefix("create_"):
            case "contiguous":
                return int(values[0]) * self.of(values[1])
            case "vector" | "hvector" | "indexed_block" | "hindexed_block":
                return int(values[0] * values[1]) * self.of(values[3])
            case "indexed" | "hindexed":
                return int(sum(values[1])) * self.of(values[3])
            case "struct":
                pairs = zip(values[1], values[3], strict=True)
                return sum(int(length) * self.of(kind) for length, kind in pairs)
            case "subarray":
                return int(math.prod(values[2])) * self.of(values[5])
            case "resized" | "dup":
                return self.of(values[0])
        return 0
