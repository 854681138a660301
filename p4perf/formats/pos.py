"""How the testbed orchestrator pos writes the files of its results: their names, loop files, and outputs.

A file that belongs to a run of the loop has ``_run<number>`` before its last suffix, with as many zeros as there happen
to be. The order of runs means nothing: what a run is only its loop file tells, which is JSON or, of old versions, a
dictionary as Python prints it. Outputs of launched commands are kept as Python prints bytes. Found in the result
folders of pos-artifacts (2020) and in the scripts of its users.
"""

from __future__ import annotations

import ast
import re

RUN = re.compile(r"(?P<stem>.+)_run(?P<number>[0-9]{1,9})(?P<suffix>\.[A-Za-z0-9]+)?(?:_(?P<repetition>[0-9]{1,6}))?")
"""Name of a file that belongs to a run."""

LAUNCHED = re.compile(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_\d+_(?P<name>.+)")
"""Name, without its suffix, of a file of a launched command: when it was launched, and what it is called."""

FINISHED = "finished"
"""Status of a command that ended well."""

_MAX_LOOP = 100_000
_WORDS = re.compile(r"(?<=[:\s])(true|false|null)(?=\s*[,}])")


def loop_values(text: str) -> dict[str, object]:
    """The variables in the text of a loop file.

    Raises:
        ValueError: what is wrong with it, as the rest of a sentence.
    """
    stripped = text.strip()
    if len(stripped) > _MAX_LOOP:
        raise ValueError("is too long for a loop file")
    try:
        # JSON's words are the only thing that Python does not read.
        value = ast.literal_eval(_WORDS.sub(lambda m: f'"{m[1]}"', stripped))
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError("is neither JSON nor a dictionary of Python") from error
    if not isinstance(value, dict) or not value or not all(isinstance(key, str) for key in value):
        raise ValueError("is not a mapping of loop variables")
    return value


def printed(text: str) -> str:
    """What a launched command printed, as text: pos keeps it as Python prints bytes, ``b'...'``.

    Raises:
        ValueError: it begins so, but is damaged.
    """
    stripped = text.strip()
    if not stripped.startswith(("b'", 'b"')):
        return text
    try:
        data = ast.literal_eval(stripped)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError("is not bytes as Python prints them") from error
    return data.decode(errors="replace") if isinstance(data, bytes) else text
