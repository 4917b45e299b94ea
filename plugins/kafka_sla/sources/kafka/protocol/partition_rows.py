"""The layout of Kafka's messages, as far as lists of partitions need it: written and read as columns.

An object for each partition would cost more than all else that a snapshot does. Knows layouts, not what they say.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.void]
"""A structured array: a row for each partition."""
Fields = Sequence[tuple[str, str]]
"""Name and struct's letter of each number of a row, in their order."""
_SHORT, _INT = Struct(">h"), Struct(">i")


def layout(fields: Fields) -> np.dtype[np.void]:
    """As numpy knows it: big-endian, nothing between the numbers."""
    return np.dtype([(name, f">{letter}") for name, letter in fields])


class Writer:
    """Puts a message together; `flexible`: lengths are variable, and tags may follow each structure."""

    def __init__(self, flexible: bool) -> None:
        self._flexible, self._parts = flexible, list[bytes]()

    def numbers(self, letters: str, *values: int) -> None:
        self._parts.append(Struct(f">{letters}").pack(*values))

    def count(self, number: int) -> None:
        self._parts.append(_varint(number + 1) if self._flexible else _INT.pack(number))

    def text(self, text: str) -> None:
        data = text.encode()
        self._parts += [_varint(len(data) + 1) if self._flexible else _SHORT.pack(len(data)), data]

    def rows(self, fields: Fields, **columns: Any) -> None:
        """A list of as many rows as the columns have values; a column may also be one number for all."""
        rows = np.zeros(max(map(np.size, columns.values())), layout([*fields, *self._tags]))
        for name, _ in fields:
            rows[name] = columns[name]
        self.count(len(rows))
        self._parts.append(rows.tobytes())

    def end(self) -> None:
        """The end of a structure: no tags."""
        self._parts.append(b"\0" if self._flexible else b"")

    def written(self) -> bytes:
        return b"".join(self._parts)

    @property
    def _tags(self) -> Fields:
        return [("tags", "B")] if self._flexible else []


class Reader:
    """Takes a message apart, from its first byte on. Raises ValueError, struct.error or IndexError at nonsense."""

    def __init__(self, data: memoryview, flexible: bool) -> None:
        self._data, self._flexible, self._at = data, flexible, 0

    def number(self, letter: str) -> int:
        kind = Struct(f">{letter}")
        (number,) = kind.unpack_from(self._data, self._at)
        self._at += kind.size
        return int(number)

    def count(self) -> int:
        """How many there are of what follows."""
        return self._varint() - 1 if self._flexible else self.number("i")

    def text(self) -> str:
        length = self._varint() - 1 if self._flexible else self.number("h")
        self._at += max(length, 0)
        return str(self._data[self._at - max(length, 0) : self._at], "utf-8")

    def end(self) -> None:
        """The end of a structure; tags are what newer brokers may add."""
        for _ in range(self._varint() if self._flexible else 0):
            self._varint()
            size = self._varint()
            self._at += size

    def rows(self, before: Fields, after: Fields = (), *, text: bool = False) -> Rows:
        """A list of rows: some numbers, a text that nobody needs if there is one, and numbers again.

        They are as long as the first one nearly always, for texts are empty and tags are none: then all are taken at
        once.
        """
        count, begin = self.count(), self._at
        if count <= 0:
            return np.empty(0, layout([*before, *after]))
        self._row(before, after, text)
        width = self._at - begin
        skipped = width - layout([*before, *after]).itemsize - self._flexible
        kind = np.dtype(
            [
                *layout(before).descr,
                *([("text", f"V{skipped}")] if skipped else []),
                *layout(after).descr,
                *([("tags", "u1")] if self._flexible else []),
            ]
        )
        if begin + count * width <= len(self._data):
            rows = np.frombuffer(self._data, kind, count, begin)
            if self._alike(rows, skipped):
                self._at = begin + count * width
                return rows
        self._at = begin
        return np.array([self._row(before, after, text) for _ in range(count)], layout([*before, *after]))

    def _alike(self, rows: Rows, skipped: int) -> bool:
        """Whether each row is laid out as the first one: no tags, and a text of the same length."""
        if self._flexible and rows["tags"].any():
            return False
        if not skipped:
            return True
        texts = np.ascontiguousarray(rows["text"]).view(np.uint8).reshape(len(rows), skipped)
        prefix = texts[:, : _prefix(skipped) if self._flexible else _SHORT.size]
        return bool((prefix == prefix[0]).all())

    def _row(self, before: Fields, after: Fields, text: bool) -> tuple[int, ...]:
        first = [self.number(letter) for _, letter in before]
        if text:
            self.text()
        row = (*first, *(self.number(letter) for _, letter in after))
        self.end()
        return row

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7


def _prefix(size: int) -> int:
    """Bytes of the length of a text that takes so many bytes together with its length."""
    return next(bytes_of for bytes_of in range(1, 6) if len(_varint(size - bytes_of + 1)) == bytes_of)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
