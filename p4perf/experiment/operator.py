"""An operator of your own, a function in C, as an experiment over the packet size."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import yaml

from p4perf.errors import BuildError, DataError, Location, UsageError
from p4perf.generators.c.dpdk import OWN_OPERATOR
from p4perf.programs.components.operator import MAX_CODE_BYTES
from p4perf.programs.operators import OPERATORS
from p4perf.results.files import read_text, write_text_atomically
from p4perf.specs import Experiment, load_experiment
from p4perf.targets.base import BuildPlan
from p4perf.testbeds.base import Testbed
from p4perf.testbeds.local import state_folder

SMALLEST, LARGEST = 64, 2048

SIZES_BYTES = (64, 128, 256, 512, 1024, 1500)
"""Packet sizes that are measured where none are named."""

SIGNATURE = "uint64_t operate(uint8_t *packet, uint32_t length)"

_ERROR = re.compile(rf"^{re.escape(OWN_OPERATOR)}:(\d+):(?:(\d+):)? (?:fatal )?error: (.*)$", re.MULTILINE)
_UNDEFINED = "undefined reference to `operate'"
_TWICE = re.compile(r"multiple definition of [`‘']?([A-Za-z_][A-Za-z0-9_]*)")


def read_code(path: Path) -> str:
    where = Location(str(path))
    text = read_text(path)
    if len(text.encode()) > MAX_CODE_BYTES:
        raise DataError(f"is larger than {MAX_CODE_BYTES} B, the limit for an operator", location=where)
    text = text.replace("\r\n", "\n")
    wrong = next((n for n, c in enumerate(text) if not (c.isprintable() or c in "\n\t\f\v")), None)
    if wrong is not None:
        line = text.count("\n", 0, wrong) + 1
        raise DataError(f"has a control character ({text[wrong]!a})", location=Location(str(path), line))
    if not text.strip():
        raise DataError("the file is empty", location=where, hint=f"define {SIGNATURE}")
    return text


def operator_name(path: Path) -> str:
    """A name for the operator of a file: its stem in small letters, digits and underscores."""
    name = re.sub(r"[^a-z0-9]+", "_", path.stem.lower()).strip("_")[:60]
    return name if name[:1].isalpha() and name not in OPERATORS else f"own_{name}".rstrip("_")


def operator_experiment(path: Path, sizes: Sequence[int], repetitions: int | None = None) -> Experiment:
    """The experiment that measures the operator of a C file on packets of some sizes. From now on its code may run.

    Raises:
        UsageError: a size is out of bounds, or there twice.
    """
    for size in sizes:
        if not SMALLEST <= size <= LARGEST:
            raise UsageError(f"--sizes: {size} is not within {SMALLEST} to {LARGEST} bytes")
    if len(set(sizes)) < len(sizes) or not sizes:
        raise UsageError("--sizes: every size once", hint="for example --sizes 64,128,256")
    code, name = read_code(path), operator_name(path)
    write_text_atomically(_accepted(code), "")
    changes: list[tuple[str, object]] = [
        ("name", f"operator/{name.replace('_', '-')}"),
        ("title", f"The operator of {path.name} over packet size"),
        ("sweep.operator", [name]),
        ("sweep.packet_size", sorted(sizes)),
        ("program.parameters.code", code),
    ]
    if repetitions is not None:
        changes.append(("trials.repetitions", repetitions))
    overrides = [
        (key, yaml.safe_dump(value, default_style='"' if isinstance(value, str) else None, width=10**9))
        for key, value in changes
    ]
    return load_experiment("operator/all", overrides=overrides)


def _accepted(code: str) -> Path:
    """The file that says that the user of this machine named a file with this code."""
    return state_folder() / "operators" / hashlib.sha256(code.encode()).hexdigest()


def refuse_strange_code(builds: Iterable[BuildPlan]) -> None:
    """Check that operators in C are those that the user named: specs and runs come from strangers as well.

    Raises:
        UsageError: one is not.
    """
    for build in builds:
        code = build.files.get(OWN_OPERATOR)
        if code is not None and not _accepted(code).is_file():
            raise UsageError(
                "the spec holds an operator in C that was not measured here before, and would run with all your rights",
                key="program.parameters.code",
                hint="read it; p4perf measure FILE.c measures it, and lets this spec or run measure it, too",
            )
        refuse_strange_code(build.parts.values())


def build_operator(path: Path, plan: BuildPlan, testbed: Testbed) -> None:
    """Compile the operator, so that its errors are reported before anything else happens.

    Raises:
        DataError: the compiler refuses it, with its message, line and column; or it does not define ``operate``.
    """
    try:
        testbed.build(plan)
    except BuildError as error:
        raise explained(error, path) from error


def explained(error: BuildError, path: Path) -> BuildError | DataError:
    """The error of the user's operator that made a build fail; the failure itself if the operator is not to blame."""
    if (found := _ERROR.search(error.log)) is not None:
        line, column, message = found.groups()
        lines = read_code(path).split("\n")
        text = lines[int(line) - 1] if int(line) <= len(lines) else None
        where = Location(str(path), int(line), int(column) if column else None, text)
        return DataError(f"the compiler says: {message}", location=where, hint=error.hint)
    if _UNDEFINED in error.log:
        return DataError("defines no function operate", location=Location(str(path)), hint=f"define {SIGNATURE}")
    if (twice := _TWICE.search(error.log)) is not None:
        return DataError(
            f"defines {twice.group(1)}, which is a name of the harness",
            location=Location(str(path)),
            hint="declare the functions and variables of your own as static",
        )
    return error
