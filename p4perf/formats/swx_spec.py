"""The text of a specification of an SWX pipeline (.spec): its lines, and what they declare.

The format is that of DPDK 22.11, lib/pipeline/rte_swx_pipeline_spec.c: words on lines, braces around what belongs
together, comments behind ``;``, ``#`` or ``//``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from p4perf.errors import DataError, Location

_COMMENT = re.compile(r"(^|\s)(;|#|//).*")
_FIELD = re.compile(r"(?:var)?bit<(\d{1,6})>")

IMMEDIATE_BITS = 64

COMPUTE = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>"}
COMPARE = {"jmpeq": "==", "jmpneq": "!=", "jmplt": "<", "jmpgt": ">"}
JUMPS = ("jmp", "jmpv", "jmpnv", "jmph", "jmpnh", "jmpa", "jmpna", *COMPARE)
"""Instructions by what they do: the operators of those that compute and compare, and all that jump."""


@dataclass(frozen=True, slots=True)
class SpecLine:
    """Words of a line, and the lines between the braces that it opens, if any. What is not there is a ``DataError``."""

    words: tuple[str, ...]
    number: int
    file: str
    body: tuple[SpecLine, ...] | None = None

    def error(self, message: str) -> DataError:
        return DataError(message, location=Location(self.file, self.number))

    def word(self, n: int) -> str:
        if n >= len(self.words):
            raise self.error(f"{' '.join(self.words) or 'an empty line'!r} ends too early")
        return self.words[n]

    def number_at(self, n: int) -> int:
        """A word of it that is a number, decimal or hexadecimal."""
        found = number(self.word(n))
        if found is None:
            raise self.error(f"{self.word(n)!r} is no number")
        return found

    @property
    def lines(self) -> tuple[SpecLine, ...]:
        """The lines between its braces."""
        if self.body is None:
            raise self.error(f"{' '.join(self.words)!r} has no braces")
        return self.body

    def inner(self, keyword: str) -> SpecLine | None:
        """The first of these lines that begins with a keyword."""
        return next((line for line in self.lines if line.words and line.words[0] == keyword), None)


def number(word: str) -> int | None:
    """The value of a constant, None if it is none."""
    try:
        return int(word, 0)
    except ValueError:
        return None


def words_of(line: str) -> tuple[str, ...]:
    """The words of a line of a specification or of entries, without its comment."""
    return tuple(_COMMENT.sub(r"\1", line).split())


def lines_of(text: str, file: str) -> tuple[SpecLine, ...]:
    """All lines outside of braces, with those inside."""
    stack: list[tuple[tuple[str, ...], int, list[SpecLine]]] = [((), 0, [])]
    count = 0
    for count, raw in enumerate(text.splitlines(), 1):
        words = words_of(raw)
        if not words:
            continue
        if words[-1] == "{":
            stack.append((words[:-1], count, []))
        elif words == ("}",):
            if len(stack) == 1:
                raise DataError("closes a brace that is not open", location=Location(file, count))
            opened, begin, body = stack.pop()
            stack[-1][2].append(SpecLine(opened, begin, file, tuple(body)))
        else:
            stack[-1][2].append(SpecLine(words, count, file))
    if len(stack) > 1:
        raise DataError(f"ends before the brace of line {stack[-1][1]} is closed", location=Location(file, count))
    return tuple(stack[0][2])


def labelled(lines: Sequence[SpecLine]) -> tuple[dict[str, int], list[SpecLine]]:
    """Labels by the number of the instruction that they stand before, and the instructions without them.

    Raises:
        DataError: two labels are the same.
    """
    labels: dict[str, int] = {}
    plain: list[SpecLine] = []
    for line in lines:
        words = line.words
        while len(words) > 1 and words[1] == ":":
            if words[0] in labels:
                raise line.error(f"there are two labels {words[0]!r}")
            labels[words[0]] = len(plain)
            words = words[2:]
        if words:
            plain.append(replace(line, words=words))
    return labels, plain


@dataclass(frozen=True)
class Specification:
    """What a specification declares, by name. Unknown headers and fields are a ``DataError`` with their line."""

    structs: dict[str, tuple[tuple[str, int], ...]]
    headers: dict[str, str]
    metadata: str
    actions: dict[str, SpecLine]
    tables: dict[str, SpecLine]
    selectors: dict[str, SpecLine]
    learners: dict[str, SpecLine]
    registers: dict[str, int]
    meters: dict[str, int]
    varying: dict[str, str]
    """Names of the fields of varying width, by their structures."""
    apply: SpecLine

    @cached_property
    def sent(self) -> frozenset[str]:
        """Headers that are emitted, as ``h.NAME``."""
        return frozenset(line.word(1) for line in labelled(self.apply.lines)[1] if line.word(0) == "emit")

    def header_bits(self, operand: str, line: SpecLine) -> int:
        """Width of a header, ``h.NAME``."""
        name = operand.removeprefix("h.")
        if name not in self.headers:
            raise line.error(f"there is no header {operand!r}")
        return sum(bits for _, bits in self.structs[self.headers[name]])

    def bits(self, operand: str, line: SpecLine, arguments: str = "") -> int:
        """Width of an operand: a field, a header, or a constant; ``arguments``: structure of the data of its action."""
        if number(operand) is not None:
            return IMMEDIATE_BITS
        parts = operand.split(".")
        if parts[0] == "h" and len(parts) == 2:
            return self.header_bits(operand, line)
        if parts[0] in ("e", "f"):
            return IMMEDIATE_BITS
        for name, bits in self._struct(parts, line, arguments):
            if name == parts[-1]:
                return bits
        raise line.error(f"there is no field {operand!r}")

    def span_bits(self, first: str, last: str, line: SpecLine) -> int:
        """Width of all fields of a structure from one to another one, as ``hash`` takes them."""
        fields = self._struct(first.split("."), line, "")
        names = [name for name, _ in fields]
        if first.split(".")[-1] not in names or last.split(".")[-1] not in names:
            raise line.error(f"there are no fields from {first} to {last}")
        begin, end = names.index(first.split(".")[-1]), names.index(last.split(".")[-1])
        return sum(bits for _, bits in fields[min(begin, end) : max(begin, end) + 1])

    def argument_bytes(self, action: str) -> int:
        return sum(bits for _, bits in self.structs.get(self.arguments(action), ())) // 8

    def arguments(self, action: str) -> str:
        """Structure of the data of an action, empty if it has none."""
        words = self.actions[action].words if action in self.actions else ()
        return words[words.index("instanceof") + 1] if "instanceof" in words[:-1] else ""

    def _struct(self, parts: list[str], line: SpecLine, arguments: str) -> tuple[tuple[str, int], ...]:
        if parts[0] == "m" and len(parts) == 2:
            return self.structs.get(self.metadata, ())
        if parts[0] == "t" and len(parts) == 2:
            return self.structs.get(arguments, ())
        if parts[0] == "h" and len(parts) == 3 and parts[1] in self.headers:
            return self.structs[self.headers[parts[1]]]
        raise line.error(f"{'.'.join(parts)!r} is no field of a header, of the metadata or of the data of an action")


def read_specification(text: str, file: str) -> Specification:
    """What a specification declares.

    Raises:
        DataError: the text is no specification, or an empty one.
    """
    groups: dict[str, dict[str, SpecLine]] = {
        k: {} for k in ("struct", "header", "action", "table", "selector", "learner")
    }
    registers: dict[str, int] = {}
    meters: dict[str, int] = {}
    metadata, apply = "", None
    for line in lines_of(text, file):
        kind = line.word(0)
        if kind in groups:
            if line.word(1) in groups[kind]:
                raise line.error(f"there are two of {kind} {line.word(1)!r}")
            groups[kind][line.word(1)] = line
        elif kind == "metadata":
            metadata = line.word(2)
        elif kind in ("regarray", "metarray"):
            (registers if kind == "regarray" else meters)[line.word(1)] = line.number_at(3)
        elif kind == "apply":
            apply = line
        elif kind not in ("extobj", "extfunc", "rss", "pragma"):
            raise line.error(f"{kind!r} begins nothing that a specification has")
    if apply is None:
        where = Location(file)
        raise DataError("is not a specification of an SWX pipeline: it has no block 'apply'", location=where)
    if not any(apply.lines):
        raise apply.error("block 'apply' is empty")
    structs = {name: tuple(_fields(line)) for name, line in groups["struct"].items()}
    headers = {}
    for name, line in groups["header"].items():
        headers[name] = line.word(3)
        if headers[name] not in structs:
            raise line.error(f"there is no struct {headers[name]!r}")
    return Specification(
        structs,
        headers,
        metadata,
        groups["action"],
        groups["table"],
        groups["selector"],
        groups["learner"],
        registers,
        meters,
        {name: line.lines[-1].word(1) for name, line in groups["struct"].items() if _varies(line)},
        apply,
    )


def _varies(struct: SpecLine) -> bool:
    return bool(struct.lines) and struct.lines[-1].word(0).startswith("varbit")


def _fields(struct: SpecLine) -> Iterator[tuple[str, int]]:
    for line in struct.lines:
        width = _FIELD.fullmatch(line.word(0))
        if width is None:
            raise line.error(f"{line.word(0)!r} is no type of a field, such as bit<32>")
        bits = int(width.group(1))
        if bits == 0 or bits % 8:
            raise line.error(f"a field of {bits} bit is not a whole number of bytes")
        yield line.word(1), bits
