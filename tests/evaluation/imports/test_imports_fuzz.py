"""Whatever a file holds, there is a result or one clear error."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.imports import LOG, counter_csv, csit_test, histogram, make_pos, trex_bench, trex_stats

from p4perf.errors import DataError, UsageError
from p4perf.evaluation.imports import ImportOptions, Named, assemble
from p4perf.plugins import load_plugin

FILES = {
    "counters": ("moongen", counter_csv([1.0, 2.0, 3.0])),
    "printed": ("moongen", LOG),
    "histogram": ("moongen", histogram({100: 5, 200: 7})),
    "statistics": ("trex", trex_stats()),
    "benchmark": ("trex", trex_bench()),
    "test": ("csit", json.dumps(csit_test())),
    "mrr": ("csit", json.dumps(csit_test("mrr"))),
    "table": ("csv", "a,cycles_per_packet\n1,2\n2,3\n"),
}
SPLICES = st.tuples(st.floats(0, 1), st.integers(0, 40), st.binary(max_size=12))
WORDS = st.sampled_from(["nan", "inf", "-1", "1e999", '""', "null", "[]", "{}", "\n", ",", "true", "9" * 400])


def tried(reader, path, options):
    with contextlib.suppress(DataError, UsageError):
        assemble([reader.read(path, options)], options)


@pytest.mark.parametrize("kind", FILES)
@settings(max_examples=60)
@given(splices=st.lists(st.one_of(SPLICES, st.tuples(st.floats(0, 1), st.integers(0, 20), WORDS)), max_size=3))
def test_damaged_files(tmp_path, kind, splices):
    name, text = FILES[kind]
    data = text.encode()
    for where, length, new in splices:
        at = int(where * len(data))
        data = data[:at] + (new.encode() if isinstance(new, str) else new) + data[at + length :]
    path = tmp_path / "file"
    path.write_bytes(data)
    reader = load_plugin("p4perf.importers", name)()
    reader.recognises(path)
    tried(reader, path, ImportOptions(variables=(Named("a"),) if name == "csv" else ()))


@settings(max_examples=60)
@given(data=st.one_of(st.binary(max_size=80), st.text(max_size=80).map(str.encode)), which=st.integers(0, 2))
def test_damaged_folders(tmp_path_factory, data, which):
    path = make_pos(tmp_path_factory.mktemp("pos"), [({"a": n}, 1.0 + n) for n in range(3)])
    name = ("2020-10-07_23-27-11_423961_unknown_run1.loop", "throughput-rx_run1.csv", "other_run1.log")[which]
    (path / "loadgen" / name).write_bytes(data)
    reader = load_plugin("p4perf.importers", "pos")()
    tried(reader, path, ImportOptions())
    tried(reader, path, ImportOptions(skip_damaged=True))
