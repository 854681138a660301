"""How fast programs and entries are written: all programs of the catalogue, and files of a million entries.

Run ``python benchmarks/generation_speed.py``. The peers run in the same process: a loop over format strings,
and one over a compiled Jinja template, for the same rows.
"""

import time

from jinja2 import Environment

from p4perf.errors import P4PerfError
from p4perf.experiment import point_workload
from p4perf.generators.p4.base import P4Generator
from p4perf.plugins import load_plugin, plugin_names
from p4perf.programs.component import TrafficPlan, build_workload
from p4perf.programs.ir import entry_data_word
from p4perf.specs import load_experiment
from p4perf.specs.loader import list_catalogue

ENTRIES = 1_000_000
MAX_PROGRAMS_S = 10
MAX_ENTRIES_S = 2


def timed(work):
    """CPU seconds of a call, and what it returned."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def programs():
    """The text of all P4 programs of the catalogue; how many there are."""
    generators = [load_plugin("p4perf.generators", name) for name in plugin_names("p4perf.generators")]
    dialects = [kind() for kind in generators if issubclass(kind, P4Generator)]
    count = 0
    for entry in list_catalogue():
        experiment = load_experiment(entry.name)
        for point in experiment.points:
            workload, traffic = point_workload(experiment, point)
            for generator in dialects:
                try:
                    files = generator.generate(workload, traffic)
                except P4PerfError:
                    continue
                count += sum(len(file.text()) > 0 for file in files if not file.entries)
    return count


def rows_of(name):
    """Writes the entries of a table with a dialect; bytes."""
    parameters = {"entries": ENTRIES, "key_bits": 32, "action_data_bytes": 8}
    workload = build_workload([("match_action_table", parameters)], frame_size_bytes=128)
    files = load_plugin("p4perf.generators", name)().generate(workload, TrafficPlan(128))
    (file,) = [f for f in files if f.entries]
    return sum(len(piece) for piece in file.pieces)


def python_rows():
    """The same rows as psa's, formatted one by one."""
    rows = (f"match 0x{i:05x} action set_data port 0x1 data_1 0x{entry_data_word(i, 1):08x}\n" for i in range(ENTRIES))
    return sum(len(row) for row in rows)


def jinja_rows():
    """The same rows, by one template with a loop."""
    text = "{% for i, d in rows %}match 0x{{ i }} action set_data port 0x1 data_1 0x{{ d }}\n{% endfor %}"
    template = Environment(autoescape=False).from_string(text)  # noqa: S701 - no HTML
    rows = ((f"{i:05x}", f"{entry_data_word(i, 1):08x}") for i in range(ENTRIES))
    return sum(len(piece) for piece in template.generate(rows=rows))


def main():
    """Print the times; fail beyond the limits."""
    seconds, count = timed(programs)
    print(f"{count} programs of the catalogue: {seconds:.2f} s of CPU time")
    peers = {name: timed(work)[0] for name, work in (("str.format", python_rows), ("Jinja", jinja_rows))}
    slowest = 0.0
    for name in ("v1model", "psa", "pna", "nfp"):
        took, size = timed(lambda name=name: rows_of(name))
        ratios = ", ".join(f"{peer / took:.1f} times as fast as {which}" for which, peer in peers.items())
        print(f"{name}: {ENTRIES} entries, {size / 1e6:.0f} MB in {took:.2f} s: {ratios}")
        slowest = max(slowest, took)
    assert seconds <= MAX_PROGRAMS_S, seconds
    assert slowest <= MAX_ENTRIES_S, slowest


if __name__ == "__main__":
    main()
