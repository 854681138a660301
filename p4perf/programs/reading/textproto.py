"""Text of protocol buffers, read without their declarations: messages, numbers, strings and names, each with its line.

The language is that of protobuf.dev's text format specification: fields ``name: value`` or ``name { ... }``, lists in
brackets, adjacent strings that join, comments. Not read are names in brackets (extensions and ``Any``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from p4perf.errors import DataError, Location
from p4perf.programs.reading.tree import MAX_DEPTH

_TOKEN = re.compile(
    r"""(?P<blank>(?:[ \t\r,;]|\#[^\n]*)+) | (?P<line>\n) | (?P<word>[A-Za-z_][\w.]*) | (?P<number>-?[0-9][\w.+]*)
    | (?P<string>"(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*') | (?P<sign>[{}<>\[\]:])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(rb"\\(x[0-9A-Fa-f]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_CLOSING = {"{": "}", "<": ">"}


@dataclass(frozen=True, slots=True)
class Message:
    """A message: its fields in order, and where it begins. A value is a message, bytes (a string), or a word."""

    fields: tuple[tuple[str, Message | bytes | str, Location], ...]
    where: Location

    def each(self, name: str) -> Iterator[Message]:
        """The messages that a field holds."""
        for field, value, where in self.fields:
            if field == name:
                if not isinstance(value, Message):
                    raise DataError(f"{name} is no message", location=where)
                yield value

    def one(self, name: str) -> Message | None:
        """The message that a field holds, None if there is none."""
        found = list(self.each(name))
        if len(found) > 1:
            raise DataError(f"has {name} {len(found)} times", location=self.where)
        return found[0] if found else None

    def word(self, *names: str) -> str | None:
        """A field that is a number, a name or a string, None if there is none of these names."""
        for field, value, where in self.fields:
            if field in names:
                if isinstance(value, Message):
                    raise DataError(f"{field} is a message, not a value", location=where)
                return value.decode(errors="replace") if isinstance(value, bytes) else value
        return None

    def whole(self, name: str, default: int = 0) -> int:
        """A field that is a number from 0."""
        word = self.word(name)
        try:
            number = default if word is None else int(word, 0)
        except ValueError:
            number = -1
        if number < 0:
            raise DataError(f"{name}: {word!r} is not a whole number from 0", location=self.where)
        return number

    def octets(self, name: str) -> int:
        """A field of bytes, which are a number in the order of the network."""
        found = next((value for field, value, _ in self.fields if field == name), b"")
        if not isinstance(found, bytes):
            raise DataError(f"{name} is not a string of bytes", location=self.where)
        return int.from_bytes(found, "big")


def parse_text_proto(text: str, file: str) -> Message:
    """The message that a text is.

    Raises:
        DataError: it is none; with the line.
    """
    return _Parser(text, file).message("", Location(file, 1), 0)


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self._file, self._line = file, 1
        self._tokens = self._scan(text)
        self._kind, self._text = next(self._tokens)

    def _scan(self, text: str) -> Iterator[tuple[str, str]]:
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise self._error(f"{text[at : at + 20].splitlines()[0]!r} is no text of protocol buffers")
            at, kind = found.end(), str(found.lastgroup)
            if kind == "line":
                self._line += 1
            elif kind != "blank":
                yield kind, found[0]
        yield "end", ""

    def _error(self, message: str) -> DataError:
        return DataError(message, location=Location(self._file, self._line))

    def _take(self) -> str:
        text = self._text
        self._kind, self._text = next(self._tokens)
        return text

    def message(self, closing: str, where: Location, depth: int) -> Message:
        """The fields up to a closing sign, which is taken; without one, up to the end."""
        if depth > MAX_DEPTH:
            raise self._error(f"messages are nested more than {MAX_DEPTH} deep")
        found: list[tuple[str, Message | bytes | str, Location]] = []
        while self._text != closing or self._kind == "string":
            if self._kind != "word":
                raise self._error(f"{self._text!r} is no name of a field" if self._text else "ends within a message")
            at, name = Location(self._file, self._line), self._take()
            if self._text == ":":
                self._take()
            elif self._text not in _CLOSING:
                raise self._error(f"needs ':' or '{{' behind {name}")
            if self._text == "[":
                self._take()
                while self._text != "]":
                    found.append((name, self._value(depth), at))
                self._take()
            else:
                found.append((name, self._value(depth), at))
        if closing:
            self._take()
        return Message(tuple(found), where)

    def _value(self, depth: int) -> Message | bytes | str:
        if self._text in _CLOSING:
            where, opening = Location(self._file, self._line), self._take()
            return self.message(_CLOSING[opening], where, depth + 1)
        if self._kind == "string":
            joined = b""
            while self._kind == "string":
                joined += _ESCAPE.sub(_unescaped, self._take()[1:-1].encode())
            return joined
        if self._kind not in ("word", "number"):
            raise self._error(f"{self._text!r} is no value" if self._text else "ends where a value belongs")
        return self._take()


def _unescaped(found: re.Match[bytes]) -> bytes:
    code = found[1]
    if code[:1] == b"x" and len(code) > 1:
        return bytes([int(code[1:], 16)])
    return bytes([int(code, 8) & 0xFF]) if code < b"8" and code.isdigit() else _LETTERS.get(code, code)
