"""Numbers and fields of a record, as bytes and back, as native/calls/record_file.h says."""

from __future__ import annotations

from collections.abc import Sequence

from mpigraft.trace.record.values import RecordedCall, RecordedRoutine

IDS = "tcgowqmABDEGH"  # letters of one number of an object
NUMBERS = "airkx"
MOST = 64  # bits of a number


class Damage(Exception):
    """Bytes that cannot be what they should be; the text says what and where."""


class Bytes:
    """Bytes that are read one after the other. Raises Damage where they end too early."""

    def __init__(self, data: bytes, at: int = 0, end: int | None = None) -> None:
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def unsigned(self) -> int:
        value = shift = 0
        while self.at < self.end and shift < MOST:
            one = self.data[self.at]
            self.at += 1
            value |= (one & 127) << shift
            if one < 128:
                if value >= 1 << MOST:
                    break
                return value
            shift += 7
        raise Damage(f"a number is cut short or too long at byte {self.at}")

    def signed(self) -> int:
        value = self.unsigned()
        return value >> 1 ^ -(value & 1)

    def length(self) -> int:
        length = self.signed()
        if not 0 <= length <= self.end - self.at:
            raise Damage(f"a length is {length} at byte {self.at}")
        return length

    def take(self, length: int) -> bytes:
        if length > self.end - self.at:
            raise Damage(f"{length} bytes are due at byte {self.at}, and {self.end - self.at} left")
        self.at += length
        return self.data[self.at - length : self.at]

    def integers(self) -> tuple[int, ...]:
        """Return an array of numbers, each written as what it is more than the one before."""
        values, last = [], 0
        for _ in range(self.length()):
            last += self.signed()
            values.append(last)
        return tuple(values)


def unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value: int) -> bytes:
    return unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


def integers(values: Sequence[int]) -> bytes:
    steps = [one - before for one, before in zip(values, (0, *values), strict=False)]
    return signed(len(values)) + b"".join(map(signed, steps))


def read_call(data: bytes, routines: Sequence[RecordedRoutine]) -> RecordedCall:
    """Read a signature. Raises Damage."""
    source = Bytes(data)
    number = source.unsigned()
    if number >= len(routines):
        raise Damage(f"a call is of routine {number}, which there is none of")
    routine = routines[number]
    call = RecordedCall(routine, tuple(_field(letter, source) for letter in routine.fields))
    if source.at != source.end:
        raise Damage(f"a call of MPI_{routine.name} has {source.end - source.at} bytes too many")
    return call


def _field(letter: str, source: Bytes) -> object:
    if letter in NUMBERS or letter in IDS:
        return source.signed()
    match letter:
        case "I" | "X":
            return source.integers()
        case "T" | "Q":
            return tuple(source.signed() for _ in range(source.length()))
        case "f":
            return source.take(source.length())
        case "C":
            identity = source.signed()
            if not identity:
                return (0, 0, -1, ())
            return (identity, source.signed(), source.signed(), source.integers())
        case "z":
            return (source.signed(), source.signed()) if source.signed() else ()
        case "Z":
            triples = range(source.length())
            return tuple((source.signed(), source.signed(), source.signed()) for _ in triples)
    raise Damage(f"a field has the unknown letter {letter!r}")


def write_call(number: int, routine: RecordedRoutine, values: Sequence[object]) -> bytes:
    """Write a call of routine `number` as a signature; `values` as `read_call` gives them."""
    parts = [unsigned(number)]
    for letter, value in zip(routine.fields, values, strict=True):
        parts.append(_written(letter, value))
    return b"".join(parts)


def _written(letter: str, value: object) -> bytes:
    if isinstance(value, int):
        return signed(value)
    if isinstance(value, bytes):
        return signed(len(value)) + value
    assert isinstance(value, tuple)
    match letter:
        case "I" | "X":
            return integers(value)
        case "C":
            if not value[0]:
                return signed(0)
            identity, size, rank, members = value
            return b"".join(map(signed, (identity, size, rank))) + integers(members)
        case "z":
            return signed(1) + b"".join(map(signed, value)) if value else signed(0)
        case "Z":
            flat = (number for triple in value for number in triple)
            return signed(len(value)) + b"".join(map(signed, flat))
    return signed(len(value)) + b"".join(map(signed, value))
