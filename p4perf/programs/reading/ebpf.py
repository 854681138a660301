"""A packet filter for ``ebpf_model.p4``, as p4c-ebpf takes it, as a program for v1model, which is read.

A packet that the filter accepts leaves as it came, by port :data:`PORT`; one that it does not accept, and one that its
parser rejects, is dropped.
"""

from __future__ import annotations

import re
from importlib.resources import files
from string import Template

from p4perf.errors import DataError, Location

PORT = 1

_PACKAGE = re.compile(r"^ebpfFilter(?:<.*>)?\((\w+)\(\), (\w+)\(\)\) main;\n?", re.MULTILINE)
_MAPS = re.compile(r"^ *implementation = .*\n", re.MULTILINE)
_COUNTERS = re.compile(r"\bCounterArray\(")
_SKIPS = re.compile(r"\.advance\(|\.extract(?:<.*>)?\(_\)")
_REJECTS = re.compile(r"(?<=[ :])reject;")

_SWITCH = "ebpf_switch.p4"
"""The switch around a filter, with ``$headers``, ``$parser``, ``$control`` and ``$port`` for what is the filter's."""


def filter_control(text: str) -> str | None:
    """The control of a filter, as p4c prints it; None if the text is none."""
    found = _PACKAGE.search(text)
    return found[2] if found else None


def as_v1model(text: str, source: str) -> str:
    """The program for v1model of a filter.

    Args:
        text: the filter as p4c prints it; ``source`` is what messages call it.

    Raises:
        DataError: it is no filter, or it counts, or skips bytes.
    """
    package = _PACKAGE.search(text)
    parser = package and re.search(rf"^parser {package[1]}\(packet_in \w+, out (\w+) \w+\) \{{\n", text, re.MULTILINE)
    if package is None or parser is None:
        raise DataError("is not a packet filter (ebpfFilter) for ebpf_model.p4", location=Location(source))
    if _COUNTERS.search(text):
        raise DataError("has a CounterArray, which is not supported", location=Location(source))
    rejecting = f"{parser[0]}    state p4perf_reject {{\n        verify(false, error.NoMatch);\n"
    rejecting += "        transition accept;\n    }\n"
    if _SKIPS.search(text):
        raise DataError("skips bytes of the packet, which a switch does not send", location=Location(source))
    text = _PACKAGE.sub("", text.replace(parser[0], rejecting))
    text = _MAPS.sub("", _REJECTS.sub("p4perf_reject;", text))
    text = text.replace("#include <ebpf_model.p4>", "#include <v1model.p4>")
    switch = Template(files(__package__).joinpath(_SWITCH).read_text())
    return text + switch.substitute(headers=parser[1], parser=package[1], control=package[2], port=PORT)
