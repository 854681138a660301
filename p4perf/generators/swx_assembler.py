"""Instructions of SWX one after another, with labels."""

from __future__ import annotations


class Assembler:
    """Collects instructions. A label is placed before the instruction that it names."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._lines: list[tuple[str | None, list[str]]] = []
        self._waiting: str | None = None
        self._same: dict[str, str] = {}
        self._count = 0

    def label(self, stem: str) -> str:
        """A new label."""
        self._count += 1
        return f"{self._prefix}_{stem.upper()}_{self._count}"

    def place(self, label: str) -> None:
        """Let a label name the next instruction. Several labels of one instruction become one.

        A jump to the next instruction is left out.
        """
        while self._lines and self._waiting is None and self._lines[-1][1] == ["jmp", label]:
            self._waiting, _ = self._lines.pop()
        if self._waiting is None:
            self._waiting = label
        else:
            self._same[label] = self._waiting

    def op(self, name: str, *operands: str) -> None:
        """Append an instruction."""
        self._lines.append((self._waiting, [name, *operands]))
        self._waiting = None

    @property
    def ended(self) -> bool:
        """Whether the next instruction can only be reached by a jump."""
        return bool(self._lines) and self._waiting is None and self._lines[-1][1][0] in ("jmp", "tx", "drop", "return")

    def lines(self) -> list[str]:
        """The instructions as text.

        Raises:
            ValueError: a label names no instruction.
        """
        if self._waiting is not None:
            raise ValueError(f"label {self._waiting} names no instruction")
        used = {self._same.get(w, w) for _, words in self._lines for w in words[1:2] if words[0].startswith("jmp")}
        found = []
        for label, words in self._lines:
            text = " ".join(self._same.get(word, word) for word in words)
            found.append(f"{label} : {text}" if label in used else text)
        return found
