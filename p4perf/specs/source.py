"""YAML text becomes a tree of plain values in which every key and value knows its place in the file.

========================  ==========================================================================================
written                   read as
========================  ==========================================================================================
``true`` ``false``        truth value (also ``True``, ``TRUE``, ...)
``null`` ``~`` (nothing)  null
``12`` ``2_000_000``      integer
``0x88B5`` ``0o17``       integer
``1e6`` ``2.5e6``         integer, since it is written with an exponent and is whole (up to 10**18)
``0.5`` ``1e-3`` ``1.``   floating point number
``70%``                   the share: 0.7
``yes`` ``no`` ``on``...  refused: YAML 1.1 reads truth values, YAML 1.2 reads words
``017``                   refused: YAML 1.1 reads octal, YAML 1.2 reads decimal
``.inf`` ``.nan`` 1e999   refused: a spec holds finite numbers only
``1:30`` ``2024-01-01``   a string (no base-60 numbers, no dates)
========================  ==========================================================================================

A quoted word is always a string.

Specs come from other people, so the text is untrusted: no tags, no code, no duplicate keys, and limits on the size of
the file, on its depth and on the number of nodes that its aliases expand to. Whatever is wrong is one
:class:`~p4perf.errors.SpecError` with file, line, column and the line itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml
from typing_extensions import override

from p4perf.errors import Location, SpecError
from p4perf.formats.plain import near_path

Scalar = bool | int | float | str
"""A value that a parameter or a swept variable can have."""

MAX_NUMBER_LENGTH = 64
"""Longest number that is read, in characters."""

MAX_EXPONENT_INTEGER = 10**18
"""Largest magnitude up to which a whole number written with an exponent is an integer."""

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_AMBIGUOUS = frozenset(f(w) for w in ("yes", "no", "on", "off") for f in (str.lower, str.title, str.upper))
_DECIMAL = re.compile(r"[-+]?[0-9][0-9_]*")
_PREFIXED = re.compile(r"[-+]?0(?:x[0-9A-Fa-f][0-9A-Fa-f_]*|o[0-7][0-7_]*)")
_NUMBER_LIKE = re.compile(r"[-+0-9._xoA-Fa-f]+")
_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")
_NON_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def read_plain(word: str) -> Scalar | None:
    if word in _NULLS:
        return None
    if word in _TRUTHS:
        return _TRUTHS[word]
    if word in _AMBIGUOUS:
        raise ValueError(f"{word} is ambiguous in YAML; write true or false, or put the word in quotes")
    if _NON_FINITE.fullmatch(word):
        raise ValueError(f"{word} is not a finite number")
    if word[0] in "+-.0123456789" and (number := _read_number(word.removesuffix("%"))) is not None:
        return number / 100 if word[-1] == "%" else number
    return word


def _read_number(word: str) -> int | float | None:
    if len(word) > MAX_NUMBER_LENGTH:
        if _NUMBER_LIKE.fullmatch(word):
            raise ValueError(f"a number of {len(word)} characters is too long (at most {MAX_NUMBER_LENGTH})")
        return None
    prefixed, decimal = _PREFIXED.fullmatch(word), _DECIMAL.fullmatch(word)
    if not (prefixed or decimal or _FLOAT.fullmatch(word)):
        return None
    digits = word.replace("_", "")
    if prefixed:
        return int(digits, 0)
    if decimal:
        bare = digits.lstrip("+-")
        if len(bare) > 1 and bare[0] == "0":
            raise ValueError(f"{word} starts with a zero, which YAML versions read differently; drop it or use quotes")
        return int(digits)
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{word} is too large for a finite number")
    if "e" in digits.lower() and 0 < abs(value) <= MAX_EXPONENT_INTEGER:
        exact = Decimal(digits)
        if exact == exact.to_integral_value():
            return int(exact)
    return value


_LINE_BREAKS = ("\x85", "\u2028", "\u2029")
"""Further line breaks of YAML 1.1, which PyYAML folds like others unless they are escaped."""


def needs_quotes(text: str) -> bool:
    """Whether a string has to be quoted so that it is read back as itself."""
    if any(line_break in text for line_break in _LINE_BREAKS):
        return True
    try:
        return read_plain(text) != text
    except ValueError:
        return True


MAX_BYTES = 1 << 20
"""Largest spec file, in bytes."""

MAX_DEPTH = 50
"""Deepest nesting of values."""

MAX_NODES = 100_000
"""Most keys and values of a spec, counted after aliases are expanded."""

MAX_LINE = 200
"""Longest line that is quoted in an error, in characters; of a longer one the beginning is quoted."""

_LINE_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class SourceNode:
    """A value of a spec and its place; ``key_place`` is the place of the key that it belongs to, if it has one."""

    content: Mapping[str, SourceNode] | tuple[SourceNode, ...] | Scalar | None
    place: Location
    key_place: Location | None = None

    def plain(self) -> Any:
        """The value as dictionaries, lists and scalars."""
        match self.content:
            case Mapping():
                return {key: child.plain() for key, child in self.content.items()}
            case tuple():
                return [child.plain() for child in self.content]
            case _:
                return self.content

    def child(self, part: str | int) -> SourceNode | None:
        """The value under a key or at an index; None if there is none."""
        if isinstance(self.content, Mapping) and isinstance(part, str):
            return self.content.get(part)
        if isinstance(self.content, tuple) and isinstance(part, int) and 0 <= part < len(self.content):
            return self.content[part]
        return None

    def at(self, path: Sequence[str | int]) -> SourceNode | None:
        """The value at a path; None if there is none."""
        node: SourceNode | None = self
        for part in path:
            node = node.child(part) if node is not None else None
        return node

    def locate(self, path: Sequence[str | int], *, key: bool = False) -> Location:
        """Place of the value at ``path`` (with ``key``: of its key), or of the nearest that exists above it."""
        node = self
        for part in path:
            found = node.child(part)
            if found is None:
                return node.key_place or node.place
            node = found
        return (node.key_place or node.place) if key else node.place

    def moved(self, place: Location) -> SourceNode:
        """The same value, all of it at one place (the command line, say)."""
        match self.content:
            case Mapping():
                return SourceNode({key: child.moved(place) for key, child in self.content.items()}, place, place)
            case tuple():
                return SourceNode(tuple(child.moved(place) for child in self.content), place, place)
            case _:
                return replace(self, place=place, key_place=place)


def read_bytes(path: Path, what: str = "file") -> bytes:
    """The bytes of a spec file, or of what is read as strictly, at most one more than are allowed.

    Raises:
        SpecError: the file cannot be read.
    """
    try:
        if not path.is_file():
            reason = f"there is no such {what}{', it is a directory' if path.is_dir() else ''}"
            raise SpecError(reason, location=Location(str(path)), hint=near_path(path))
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SpecError(f"cannot read the {what}: {reason}", location=Location(ascii(str(path))[1:-1])) from error


def parse_bytes(data: bytes, file: str, *, truth_keys: bool = False) -> SourceNode:
    """Parse the bytes of a spec file, which are UTF-8; ``truth_keys`` as for :func:`parse_text`.

    Raises:
        SpecError: too large, not UTF-8, or one of the errors of :func:`parse_text`.
    """
    if len(data) > MAX_BYTES:
        raise SpecError(f"the file is larger than {MAX_BYTES} bytes, the limit for a spec", location=Location(file))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SpecError("the file is not UTF-8 text", location=Location(file, line)) from error
    return parse_text(text, file, truth_keys=truth_keys)


def parse_text(text: str, file: str, *, truth_keys: bool = False) -> SourceNode:
    """Parse one YAML document.

    Args:
        truth_keys: whether ``true`` and ``false`` may be keys, which are these words then.

    Raises:
        SpecError: broken YAML, a duplicate or non-string key, a tag, an ambiguous or non-finite scalar, or a limit
            exceeded; with its place.
    """
    if len(text) > MAX_BYTES:
        raise SpecError(f"the text is larger than {MAX_BYTES} bytes, the limit for a spec", location=Location(file))
    reader = _Reader(text, file, truth_keys=truth_keys)
    try:
        loader = _Loader(text, reader)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        what = " ".join(part for part in (error.context, error.problem) if part) or "it cannot be parsed"
        if flow := re.search("while parsing a flow (sequence|mapping) expected ',' or '(.)'", what):
            kind = "list" if flow[1] == "sequence" else "mapping"
            what = f"the {kind} that begins here is not closed with {flow[2]}, or lacks a comma"
            raise SpecError(f"this is not YAML: {what}", location=reader.place(error.context_mark)) from error
        unclosed = error.context_mark if "while scanning a quoted" in what or "flow" in what else None
        raise SpecError(f"this is not YAML: {what}", location=reader.place(unclosed or error.problem_mark)) from error
    except yaml.reader.ReaderError as error:
        line = len(_LINE_BREAK.findall(text, 0, error.position)) + 1
        raise SpecError("this is not YAML: a control character", location=Location(file, line)) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise SpecError("this is not YAML: it cannot be parsed", location=Location(file)) from error
    if root is None:
        return SourceNode(None, Location(file, 1, 1))
    return reader.build(root)


class _Reader:
    """Builds nodes of ours from nodes of PyYAML and knows the lines of the text."""

    def __init__(self, text: str, file: str, *, truth_keys: bool = False) -> None:
        self.file = file
        self.lines = _LINE_BREAK.split(text)
        self.count = 0
        self.truth_keys = truth_keys

    def place(self, mark: yaml.Mark | None) -> Location:
        if mark is None:
            return Location(self.file)
        line = self.lines[mark.line] if mark.line < len(self.lines) else ""
        shown = line[:MAX_LINE] if mark.column < MAX_LINE else None
        return Location(self.file, mark.line + 1, mark.column + 1, shown)

    def fail(self, message: str, mark: yaml.Mark | None, hint: str | None = None) -> SpecError:
        return SpecError(message, location=self.place(mark), hint=hint)

    def build(self, node: yaml.Node, key_place: Location | None = None, depth: int = 0) -> SourceNode:
        self.count += 1
        if self.count > MAX_NODES:
            raise self.fail(f"the spec has more than {MAX_NODES} values when its aliases are expanded", node.start_mark)
        if depth >= MAX_DEPTH:
            raise self.fail(f"the spec is nested more than {MAX_DEPTH} levels deep", node.start_mark)
        place = self.place(node.start_mark)
        if isinstance(node, yaml.MappingNode):
            return SourceNode(self.mapping(node, depth), place, key_place)
        if isinstance(node, yaml.SequenceNode):
            return SourceNode(tuple(self.build(child, None, depth + 1) for child in node.value), place, key_place)
        return SourceNode(self.scalar(node) if isinstance(node, yaml.ScalarNode) else None, place, key_place)

    def mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, SourceNode]:
        found: dict[str, SourceNode] = {}
        for key_node, value_node in node.value:
            key = self.scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if type(key) is int:
                key = str(key)  # frame sizes of a mix
            if isinstance(key, bool) and self.truth_keys:
                key = str(key).lower()
            if not isinstance(key, str):
                written = (
                    (key_node.value or "nothing") if isinstance(key_node, yaml.ScalarNode) else "a list or mapping"
                )
                raise self.fail(
                    f"a key must be a word, not {written}", key_node.start_mark, "put it in quotes if it is meant"
                )
            if key == "<<":
                raise self.fail("merge keys are not supported", key_node.start_mark, "use extends")
            if key in found:
                first = found[key].key_place
                line = f" (first in line {first.line})" if first else ""
                raise self.fail(f"duplicate key {key!r}{line}", key_node.start_mark)
            self.count += 1
            found[key] = self.build(value_node, self.place(key_node.start_mark), depth + 1)
        return found

    def scalar(self, node: yaml.ScalarNode) -> Scalar | None:
        if node.style is not None:
            value: Scalar | None = node.value
        else:
            try:
                value = read_plain(node.value)
            except ValueError as error:
                raise self.fail(str(error), node.start_mark) from error
        if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
            raise self.fail("a string holds half of a surrogate pair", node.start_mark)
        return value


class _Loader(yaml.SafeLoader):
    """PyYAML's composer with limits that hold while the text is read (composing is recursive)."""

    def __init__(self, text: str, reader: _Reader) -> None:
        super().__init__(text)
        self._reader = reader
        self._depth = 0
        self._composed = 0

    @override
    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        mark = event.start_mark
        if getattr(event, "tag", None) is not None:
            raise self._reader.fail(f"tags such as {event.tag} are not allowed", mark, "use quotes to make a string")
        self._composed += 1
        if self._composed > MAX_NODES:
            raise self._reader.fail(f"the spec has more than {MAX_NODES} values", mark)
        if self._depth >= MAX_DEPTH:
            raise self._reader.fail(f"the spec is nested more than {MAX_DEPTH} levels deep", mark)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1
